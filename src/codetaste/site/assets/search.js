"use strict";

/* Search by an index of words: shards are loaded when a word begins with their two characters. */

(() => {
  const { element, load, link, query, data } = codetaste;
  const MAX_SHOWN = 200;
  let latest = 0;

  const wordsOf = (text) => text.toLowerCase().match(/[a-z_][a-z0-9_]{1,31}/g) ?? [];

  function numbers(gaps) {
    let at = -1;
    return gaps.split(" ").map((gap) => { at += parseInt(gap, 36) + 1; return at; });
  }

  /** Documents with a word, or with one that begins with it. */
  async function documentsWith(word, beginning) {
    const name = word.slice(0, 2).replaceAll("_", "-");
    if (!data.shards.includes(name)) return new Set();
    const shard = await load(`search/words-${name}.js`, `words-${name}`);
    const found = new Set();
    const take = (gaps) => numbers(gaps).forEach((each) => found.add(each));
    if (Object.hasOwn(shard, word)) take(shard[word]);
    if (beginning) for (const [each, gaps] of Object.entries(shard)) if (each.startsWith(word)) take(gaps);
    return found;
  }

  async function search() {
    const field = document.querySelector("#words");
    const kind = document.querySelector("#kind").value;
    const run = ++latest;
    query.set({ q: field.value, kind });
    const words = wordsOf(field.value);
    const status = document.querySelector("#found");
    const list = document.querySelector("#results");
    if (!words.length || words[0].length < 2) { status.textContent = ""; list.replaceChildren(); return; }
    const sets = await Promise.all(words.map((word, at) => documentsWith(word, at === words.length - 1)));
    if (run !== latest) return;
    const [first, ...rest] = sets.sort((a, b) => a.size - b.size);
    const hits = [...first].filter((each) => rest.every((set) => set.has(each)) && (!kind || data.documents[each][0] === kind));
    hits.sort((a, b) => a - b);
    status.textContent = `${hits.length.toLocaleString("en")} found${hits.length > MAX_SHOWN ? `, the first ${MAX_SHOWN} shown` : ""}`;
    list.replaceChildren(...hits.slice(0, MAX_SHOWN).map((each) => {
      const [what, title, address] = data.documents[each];
      const [page, place] = link(address).split("#");
      const target = what === "trial" ? `${page}?q=${encodeURIComponent(words[words.length - 1])}#transcript` : page + (place ? `#${place}` : "");
      return element("li", { "data-row": true }, element("span", { class: "chip neutral" }, what === "trial" ? "transcript" : what), " ",
        element("a", { href: target }, title));
    }));
  }

  document.addEventListener("DOMContentLoaded", () => {
    const field = document.querySelector("#words");
    field.value = query.get("q");
    document.querySelector("#kind").value = query.get("kind");
    let timer = 0;
    document.querySelector(".toolbar").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 80); });
    if (field.value) search();
  });
})();
