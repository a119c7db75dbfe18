"use strict";

/* Any two systems, chosen by the address: ?a=KEY&b=KEY. The numbers are those of the pages of pairs. */

(() => {
  const { element, link, query } = codetaste;
  const [first, second] = ["a", "b"].map((side) => document.querySelector(`#system-${side}`));
  const shown = document.querySelector("#chosen");

  const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(1));

  /** Return who is right, by the last value of both rows; unknown is "". */
  function agreement(one, other) {
    const [a, b] = [one.at(-1), other.at(-1)];
    if (a === null || b === null) return "";
    return [["both wrong", "only the second"], ["only the first", "both right"]][Number(a)][Number(b)];
  }

  /** Return the link to the page of two systems, or why there is none. */
  function pageOfPair(a, b, pairs) {
    const page = pairs[`${a.key}--${b.key}`] ?? pairs[`${b.key}--${a.key}`];
    if (page) return element("a", { href: link(page) }, "Page of this pair with its tests");
    if (a.key === b.key) return "Both are the same.";
    if (a.agent !== b.agent && a.setting !== b.setting) return "This pair is not tested: the two differ in agent and in track and mode.";
    return `Only the first ${Object.keys(pairs).length} tested pairs have a page; codetaste report --table ${a.setting === b.setting ? "differences" : "modes"} has the test of this one.`;
  }

  function show() {
    const { systems, measures, primary, pairs, instances } = codetaste.data.systems;
    const [a, b] = [first, second].map((field) => systems.find((each) => each.key === field.value));
    query.set({ a: a.key, b: b.key });
    const rows = Object.keys(a.instances).filter((name) => name in b.instances).map((name) => {
      const [one, other] = [a.instances[name], b.instances[name]];
      const [x, y] = [one[primary + 1], other[primary + 1]];
      const effect = x === null || y === null ? null : x - y;
      return { name, one, other, effect, agreement: agreement(one, other) };
    });
    rows.sort((x, y) => Math.abs(y.effect ?? 0) - Math.abs(x.effect ?? 0) || (x.name < y.name ? -1 : 1));
    const counts = ["both right", "only the first", "only the second", "both wrong"].map(
      (name) => element("li", {}, element("span", { class: "chip neutral" }, `${name}: ${rows.filter((row) => row.agreement === name).length}`)),
    );
    const effects = rows.map((row) => row.effect).filter((each) => each !== null);
    const mean = effects.length ? effects.reduce((sum, each) => sum + each, 0) / effects.length : null;
    const text = `${measures[primary]}: first − second is ${mean === null ? "–" : (100 * mean).toFixed(1)} points on ${effects.length} ${effects.length === 1 ? "instance" : "instances"}. `;
    const summary = element("p", {}, text, pageOfPair(a, b, pairs));
    const headers = ["Instance", "Right", "First − second", "First", `${measures[primary]} (first)`, "Second", `${measures[primary]} (second)`];
    const numbers = new Set([2, 4, 6]);
    const head = element("tr", {}, ...headers.map((title, at) => element("th", { scope: "col", class: numbers.has(at) ? "num" : null }, title)));
    const body = element("tbody", {}, ...rows.map((row) => element("tr", {},
      element("th", { scope: "row" }, element("a", { href: link(instances[row.name]) }, row.name)),
      element("td", {}, row.agreement),
      element("td", { class: "num" }, percent(row.effect)),
      element("td", {}, element("a", { href: link(row.one[0]), "data-main": true }, "first patch")),
      element("td", { class: "num" }, percent(row.one[primary + 1])),
      element("td", {}, element("a", { href: link(row.other[0]) }, "second patch")),
      element("td", { class: "num" }, percent(row.other[primary + 1])))));
    const table = element("table", { class: "data" }, element("thead", {}, head), body);
    shown.replaceChildren(element("ul", { class: "chips" }, ...counts), summary,
      element("div", { class: "scroll tall", role: "region", "aria-label": "Instances of the chosen two", tabindex: "0" }, table));
    codetaste.makeSortable(table);
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!first || !first.options.length) return;
    first.value = query.get("a");
    second.value = query.get("b");
    if (first.selectedIndex < 0) first.selectedIndex = 0;
    if (second.selectedIndex < 0) second.selectedIndex = Math.min(1, second.options.length - 1);
    [first, second].forEach((field) => field.addEventListener("change", show));
    document.querySelector("#swap").addEventListener("click", () => {
      [first.value, second.value] = [second.value, first.value];
      show();
    });
    if (query.get("a") || query.get("b")) show();
  });
})();
