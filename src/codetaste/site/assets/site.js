"use strict";

/** Data that scripts beside a page hand over, by name. */
const codetaste = {
  data: {},
  receive(name, value) {
    codetaste.data[name] = value;
    document.dispatchEvent(new CustomEvent("codetaste-data", { detail: name }));
  },
};
