"use strict";

/* What all pages share: data that scripts hand over, tables that sort and filter, keys.
   A page is complete without it. */

const codetaste = {
  /** Data of scripts beside the page, by name. */
  data: {},

  receive(name, value) {
    codetaste.data[name] = value;
    document.dispatchEvent(new CustomEvent("codetaste-data", { detail: name }));
  },

  /** Load a data script by its address below the site's folder; resolves with its data. */
  load(address, name) {
    if (name in codetaste.data) return Promise.resolve(codetaste.data[name]);
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = codetaste.link(address);
      script.onload = () => resolve(codetaste.data[name]);
      script.onerror = () => reject(new Error(`${address} cannot be loaded`));
      document.head.append(script);
    });
  },

  /** Return the link from this page to an address below the site's folder. */
  link: (address) => `${document.body.dataset.root}/${address}`,

  /** Make an element: attributes, then children; texts are texts. */
  element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (typeof value === "function") made.addEventListener(key, value);
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  },

  /** Values of the address: what a view shows is in the query, so that it can be sent. */
  query: {
    get: (name) => new URLSearchParams(location.search).get(name) ?? "",
    set(values) {
      const query = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(values)) value ? query.set(name, value) : query.delete(name);
      const text = query.toString();
      try {
        history.replaceState(null, "", `${location.pathname}${text ? `?${text}` : ""}${location.hash}`);
      } catch { /* Some browsers forbid it for files; the view works without. */ }
    },
  },

  /** Keys: `codetaste.keys.add("n", "next marked line", run)`; "g h" is one after the other. */
  keys: {
    known: new Map(),
    add(key, text, run) { codetaste.keys.known.set(key, { text, run }); },
  },
};

const sortValue = (cell) => {
  const text = cell?.getAttribute("data-value") ?? cell?.textContent.trim() ?? "";
  if (text === "" || text === "–") return null;
  const number = Number(text.replaceAll(",", "").replace(/^[$]/, ""));
  return Number.isNaN(number) ? text.toLowerCase() : number;
};

function compareValues(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

/** Sort the rows of each body; rows without a value stay at the end. */
function sortTable(table, column, direction) {
  const sign = direction === "descending" ? -1 : 1;
  for (const body of table.tBodies) {
    const rows = [...body.rows].map((row, place) => ({ row, place, value: sortValue(row.cells[column]) }));
    rows.sort((a, b) => {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
      return sign * compareValues(a.value, b.value) || a.place - b.place;
    });
    body.replaceChildren(...rows.map((each) => each.row));
  }
  restartRows.get(table)?.();
  for (const head of table.tHead.rows[table.tHead.rows.length - 1].cells) head.removeAttribute("aria-sort");
  heads(table)[column].setAttribute("aria-sort", direction);
}

const heads = (table) => table.tHead.rows[table.tHead.rows.length - 1].cells;

function makeSortable(table) {
  [...heads(table)].forEach((head, column) => {
    if (head.colSpan > 1 || !head.textContent.trim()) return;
    const button = codetaste.element("button", { type: "button", class: "sort" });
    button.append(...head.childNodes);
    head.append(button);
    const first = head.classList.contains("num") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === first ? other : first;
      sortTable(table, column, direction);
      if (table.id) codetaste.query.set({ [`${table.id}.sort`]: `${column}.${direction}` });
    });
  });
  const [column, direction] = codetaste.query.get(`${table.id}.sort`).split(".");
  if (table.id && direction && heads(table)[column]) sortTable(table, Number(column), direction);
}

/** Lay out the first rows of a long table, and more as the reader comes near them: to lay out 1,600 rows
    takes a second, after each change. Words in the other rows are found by the table's own field. */
const ROWS_AT_ONCE = 150;
const restartRows = new WeakMap();

function layOutFirstRows(table) {
  let limit = 0;
  const end = codetaste.element("div");
  const show = (number) => {
    limit = number;
    let place = 0;
    for (const body of table.tBodies) for (const row of body.rows) if (!row.hidden) row.classList.toggle("later", place++ >= limit);
    observer.unobserve(end);
    if (place > limit) observer.observe(end);
  };
  const observer = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) show(limit + ROWS_AT_ONCE);
  }, { root: table.closest(".scroll.tall"), rootMargin: "2000px 0px" });
  const showTarget = () => { if (table.querySelector("tr.later:target, tr.later :target")) show(Infinity); };
  table.after(end);
  restartRows.set(table, () => show(ROWS_AT_ONCE));
  show(ROWS_AT_ONCE);
  for (const event of ["load", "hashchange"]) window.addEventListener(event, showTarget);
}

/** Fields above a table: one for words, one for each column whose head has data-filter="name", and one for
    the marks of rows, if any element has data-mark="text".
    Where data-filters has a name, it is before the names in the query: a page may have other words there. */
function makeFilters(table) {
  const prefix = table.dataset.filters ? `${table.dataset.filters}.` : "";
  const names = [...heads(table)]
    .map((head, column) => ({ head, column, name: head.dataset.filter }))
    .filter((each) => each.name);
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
  const texts = new Map();
  const count = codetaste.element("span", { class: "count", role: "status" });
  const words = codetaste.element("input", { type: "search", size: 18, "data-key": "/" });
  const cellText = (cell) => cell?.getAttribute("data-group") ?? cell?.textContent.trim();
  const fieldOf = (label, name, groups) => {
    const field = codetaste.element("select", {}, codetaste.element("option", { value: "" }, "all"));
    [...new Set(groups.flat())].filter(Boolean).sort().forEach((value) => field.append(codetaste.element("option", { value }, value)));
    return { label, groups, name, field };
  };
  const fields = names.map(({ head, column, name }) => fieldOf(head.textContent.trim(), name, rows.map((row) => [cellText(row.cells[column])])));
  if (table.querySelector("[data-mark]")) {
    const marks = (row) => [...row.querySelectorAll("[data-mark]")].map((each) => each.dataset.mark);
    fields.push(fieldOf("Mark", "mark", rows.map(marks)));
  }

  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = fields.filter(({ field }) => field.value).map(({ groups, field }) => ({ groups, value: field.value }));
    let shown = 0;
    for (const [place, row] of rows.entries()) {
      if (wanted.length && !texts.has(row)) texts.set(row, row.textContent.toLowerCase());
      const visible = wanted.every((word) => texts.get(row).includes(word))
        && chosen.every(({ groups, value }) => groups[place].includes(value));
      if (row.hidden === visible) row.hidden = !visible;
      shown += visible;
    }
    restartRows.get(table)?.();
    count.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
  };
  const changed = () => {
    apply();
    codetaste.query.set(Object.fromEntries([["q", words.value], ...fields.map(({ name, field }) => [name, field.value])].map(([name, value]) => [prefix + name, value])));
  };

  const labelled = (text, field) => codetaste.element("label", { class: "field" }, text, field);
  const bar = codetaste.element("div", { class: "toolbar", role: "search", "aria-label": "Rows" });
  bar.append(labelled("words", words), ...fields.map(({ label, field }) => labelled(label, field)), count);
  (table.closest(".scroll") ?? table).before(bar);
  words.value = codetaste.query.get(`${prefix}q`);
  fields.forEach(({ name, field }) => { field.value = codetaste.query.get(prefix + name); if (field.selectedIndex < 0) field.value = ""; });
  bar.addEventListener("input", changed);
  apply();
  if (rows.length > 2 * ROWS_AT_ONCE) layOutFirstRows(table);
}

/** j and k move among rows with a link, Enter follows it. */
const rowsWithLinks = () => [...document.querySelectorAll("main table.data tbody tr, main [data-row]")].filter(
  (row) => !row.hidden && row.querySelector("a[href]") && row.getClientRects().length,
);

function moveRow(step) {
  const rows = rowsWithLinks();
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("current"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step))];
  rows[at]?.classList.remove("current");
  next.classList.add("current");
  const link = next.querySelector("a[data-main]") ?? next.querySelector("a[href]");
  link.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function showKeys() {
  document.querySelector("#keys")?.remove();
  const body = codetaste.element("tbody");
  for (const [key, { text }] of codetaste.keys.known) {
    const parts = key.split(" ").flatMap((part) => [codetaste.element("kbd", {}, part), " "]);
    body.append(codetaste.element("tr", {}, codetaste.element("td", { class: "nowrap" }, ...parts), codetaste.element("td", {}, text)));
  }
  const close = codetaste.element("button", { type: "button", class: "button", click: () => dialog.close() }, "Close");
  const dialog = codetaste.element("dialog", { id: "keys", "aria-labelledby": "keys-title" },
    codetaste.element("h2", { id: "keys-title" }, "Keys"), codetaste.element("table", {}, body), close);
  document.body.append(dialog);
  dialog.showModal();
}

function standardKeys() {
  const { add } = codetaste.keys;
  add("?", "show these keys", showKeys);
  add("/", "go to the field for words", () => {
    const field = document.querySelector("main input[type=search]");
    if (field) { field.focus(); field.select(); } else location.href = codetaste.link("search/index.html");
  });
  add("j", "next row", () => moveRow(1));
  add("k", "previous row", () => moveRow(-1));
  add("Enter", "follow the row's link", null);
  add("u", "up to the page above", () => document.querySelector(".crumbs li:nth-last-child(2) a")?.click());
  for (const link of document.querySelectorAll(".top li a[data-key]")) {
    add(`g ${link.dataset.key}`, link.textContent, () => { location.href = link.href; });
  }
}

let before = "";
function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const field = event.target.closest?.("input, select, textarea, [contenteditable]");
  if (field) {
    if (event.key === "Escape") { field.blur(); document.querySelector("main").focus(); }
    return;
  }
  const key = before ? `${before} ${event.key}` : event.key;
  const known = codetaste.keys.known.get(key);
  const begins = !before && [...codetaste.keys.known.keys()].some((each) => each.startsWith(`${key} `));
  before = begins ? key : "";
  if (known?.run) { event.preventDefault(); known.run(event); }
}

codetaste.makeSortable = makeSortable;
document.documentElement.classList.add("js");
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.data[data-sortable]")) makeSortable(table);
  for (const table of document.querySelectorAll("table.data[data-filters]")) makeFilters(table);
  document.querySelector("[data-action=keys]")?.addEventListener("click", showKeys);
  standardKeys();
});
document.addEventListener("keydown", pressed);
