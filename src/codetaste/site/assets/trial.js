"use strict";

/* What the parts of a trial's page share: data unpacked, hidden characters shown, rows drawn where they are seen. */

const trial = {
  /** Load a script with packed data and return its bytes; it is not held. */
  async bytes(address, name) {
    const text = await codetaste.load(address, name);
    delete codetaste.data[name];
    for (const script of document.querySelectorAll("head script")) {
      if (script.getAttribute("src") === codetaste.link(address)) script.remove();
    }
    if (typeof text !== "string") throw new Error(`${address} has no data`);
    const packed = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  },

  /** Return text with control, bidirectional and invisible characters as ⟨U+202E⟩, as the page has them. */
  visible(text) {
    return text
      .replaceAll("\r\n", "\n")
      .replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g, (found) => `⟨ESC${found.slice(1)}⟩`)
      .replace(trial.hidden, (char) => `⟨U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
  },
  hidden: /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu,

  number: (value) => value.toLocaleString("en"),

  /**
   * Blocks of rows that are drawn when they come near the window, and taken away when they are far from it.
   * blocks: [{height, draw}], the height in pixels until it was drawn; draw returns the nodes, or a promise of them.
   */
  blocks(container, blocks, root = null) {
    const drawn = new Map();
    const show = async (node) => {
      if (drawn.has(node)) return drawn.get(node);
      const done = (async () => {
        const nodes = await blocks[node.dataset.block].draw();
        if (!drawn.has(node)) return;
        node.replaceChildren(...nodes);
        node.style.height = "";
      })();
      drawn.set(node, done);
      return done;
    };
    const hide = (node) => {
      if (!drawn.has(node) || node.contains(document.activeElement)) return;
      drawn.delete(node);
      if (node.firstChild) {
        node.style.height = `${node.offsetHeight}px`;
        node.replaceChildren();
      }
    };
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) entry.isIntersecting ? show(entry.target) : hide(entry.target);
    }, { root, rootMargin: "1200px 0px" });
    const nodes = blocks.map(({ height }, number) => {
      const node = codetaste.element("div", { class: "block", "data-block": number });
      node.style.height = `${height}px`;
      return node;
    });
    container.replaceChildren(...nodes);
    nodes.forEach((node) => observer.observe(node));
    return { show: (number) => show(nodes[number]), node: (number) => nodes[number], stop: () => observer.disconnect() };
  },

  /** Mark one row as the current one, bring it into view and give it the focus. */
  current: null,
  go(row) {
    trial.current?.classList.remove("current");
    trial.current = row;
    row.classList.add("current");
    row.tabIndex = -1;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "center", behavior: "instant" });
  },

  setHash(hash) {
    try { history.replaceState(null, "", `${location.pathname}${location.search}#${hash}`); } catch { /* some browsers forbid it for files */ }
  },

  /** Fragments that are not elements of the page yet: handlers return true if the fragment is theirs. */
  handlers: [],
  async follow() {
    const hash = decoded(location.hash.slice(1));
    if (!hash) return;
    for (const handler of trial.handlers) if (await handler(hash)) return;
    document.getElementById(hash)?.scrollIntoView({ behavior: "instant" });
  },
};

/** Return a fragment as text; an id that has a "%" may be there as it is. */
function decoded(fragment) {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

/** A rule's row opens with the rule's text and every place; returns whether it is open now. */
function toggleRule(cell, rule) {
  const open = cell.querySelector(".rule-more");
  if (open) {
    open.remove();
    return false;
  }
  const places = rule.places.map(([file, path, first, last]) => {
    const text = `${trial.visible(path)}:${first}${last > first ? `–${last}` : ""}`;
    return codetaste.element("li", {}, file ? codetaste.element("a", { href: `#L${file}-${first}` }, text) : `${text} (not in the patch)`);
  });
  const code = codetaste.element("pre", { class: "code", tabindex: 0 }, "…");
  const more = codetaste.element("div", { class: "rule-more" });
  if (places.length) more.append(codetaste.element("p", {}, `${trial.number(rule.matches)} matches:`), codetaste.element("ul", {}, ...places));
  more.append(code);
  cell.append(more);
  codetaste.load(document.querySelector("#rules").dataset.rules, "rules").then(
    (texts) => { code.textContent = texts[rule.anchor] ?? "The text of this rule is not recorded."; },
    () => { code.textContent = "The texts of the rules cannot be loaded."; },
  );
  return true;
}

function prepareRules() {
  for (const rule of codetaste.data.trial?.rules ?? []) {
    const row = document.getElementById(rule.anchor);
    if (!row) continue;
    const cell = row.cells[row.cells.length - 1];
    const button = codetaste.element("button", { type: "button", class: "button small", "aria-label": `Text and places of ${rule.id}`, "aria-expanded": "false", click: () => {
      button.setAttribute("aria-expanded", String(toggleRule(cell, rule)));
    } }, "Rule");
    cell.append(" ", button);
  }
}

document.addEventListener("DOMContentLoaded", () => {
  prepareRules();
  const { add } = codetaste.keys;
  const part = (name) => () => {
    const heading = document.querySelector(`#${name} h2`);
    if (!heading) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    heading.scrollIntoView();
  };
  add("f", "files of the patch", part("patch"));
  add("r", "rules", part("rules"));
  add("t", "transcript", part("transcript"));
  window.addEventListener("hashchange", trial.follow);
});
window.addEventListener("load", trial.follow);
