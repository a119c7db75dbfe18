"use strict";

/* The patch file by file: loaded piece by piece, drawn where it is seen, with the rules that match each line. */

const ROW_HEIGHT = 22.4; // 1.4rem, as in trial.css
const ROWS_OF_BLOCK = 100;
const MAX_LINE = 2000;
const KINDS = { a: ["additive", "▲"], r: ["reductive", "▼"], l: ["remaining", "◆"] };

/** The lines of a patch: pieces are loaded when a file needs them. */
class PatchText {
  constructor(folder, name) {
    this.folder = folder;
    this.name = name;
    this.pieces = new Map();
  }

  async of(file) {
    if (file.piece === null || file.piece === undefined) return [];
    if (!this.pieces.has(file.piece)) {
      const name = `${this.name}-${file.piece}`;
      this.pieces.set(file.piece, trial.bytes(`${this.folder}/${name}.js`, name).then((bytes) => new TextDecoder().decode(bytes).split("\n")));
    }
    return (await this.pieces.get(file.piece)).slice(...file.lines);
  }
}

/** Return the rows of a file's hunks: [kind, old number, new number, text, marks]. */
function parseFile(lines, file) {
  const rows = [];
  let old = 0, now = 0, oldLeft = 0, newLeft = 0;
  for (const line of lines) {
    if (!(oldLeft || newLeft)) {
      const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)/.exec(line);
      if (head) {
        [old, oldLeft, now, newLeft] = [+head[1], +(head[2] ?? 1), +head[3], +(head[4] ?? 1)];
        rows.push(["hunk", 0, 0, line, []]);
      } else if (line.startsWith("\\")) rows.push(["hunk", 0, 0, line, []]);
      continue;
    }
    const sign = line[0];
    if (sign === "\\") rows.push(["hunk", 0, 0, line, []]);
    else if (sign === "-") { rows.push(["del", old++, 0, line.slice(1), null]); oldLeft--; }
    else if (sign === "+") { rows.push(["add", 0, now++, line.slice(1), null]); newLeft--; }
    else { rows.push(["same", old++, now++, line.slice(1), null]); oldLeft--; newLeft--; }
  }
  return addMarks(rows, file);
}

function addMarks(rows, file) {
  const at = { old: new Map(), now: new Map() };
  rows.forEach((row) => {
    if (row[1]) at.old.set(row[1], row);
    if (row[2]) at.now.set(row[2], row);
  });
  for (const [kind, side] of [["r", "old"], ["a", "now"], ["l", "now"]]) {
    for (const [first, last, rule] of file[kind] ?? []) {
      const from = last - first > at[side].size ? at[side].keys() : range(first, last);
      for (const number of from) {
        const row = number >= first && number <= last && at[side].get(number);
        if (!row || (kind === "r" && row[0] !== "del") || (kind === "a" && row[0] !== "add")) continue;
        row[4] ??= [];
        if (!row[4].some(([k, r]) => k === kind && r === rule)) row[4].push([kind, rule]);
      }
    }
  }
  return rows;
}

function* range(first, last) { for (let number = first; number <= last; number++) yield number; }

/** One patch of the view: this trial's, or the golden one. */
class PatchModel {
  constructor(data, rules, text) {
    this.files = data.files;
    this.rules = rules;
    this.text = text;
    this.rows = new Map();
    this.byPath = new Map(data.files.map((file, number) => [file.path, number]));
  }

  rowsOf(number) {
    if (!this.rows.has(number)) {
      this.rows.set(number, this.text.of(this.files[number]).then((lines) => parseFile(lines, this.files[number])));
    }
    return this.rows.get(number);
  }
}

const isMarked = (row) => Boolean(row[4]?.length);
const anchor = (number, row) => `L${number + 1}-${row[2] || `o${row[1]}`}`;

function drawRow(model, number, row, own) {
  const [kind, old, now, text, marks] = row;
  const sign = { add: "+", del: "−", same: " ", hunk: "" }[kind];
  const cut = text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}… (${trial.number(text.length)} characters)` : text;
  const made = codetaste.element("div", { class: `row ${kind}${isMarked(row) ? " marked" : ""}` });
  if (kind === "hunk") {
    made.append(codetaste.element("span"), codetaste.element("span"), codetaste.element("span", { class: "text" }, trial.visible(cut)));
    return made;
  }
  if (own) made.id = anchor(number, row);
  const name = (value, what) => (value && own ? codetaste.element("a", { class: "no", href: `#${anchor(number, row)}`, tabindex: -1, "aria-label": `${what} line ${value}` }, value) : codetaste.element("span", { class: "no" }, value || ""));
  const label = codetaste.element("span", { class: "mark" });
  for (const [mark, rule] of (marks ?? []).slice(0, 3)) {
    const [word, shape] = KINDS[mark];
    const id = model.rules[rule]?.id ?? model.rules[rule] ?? "?";
    const target = model.rules[rule]?.anchor ?? `rule-${id}`;
    const text = `${shape} ${word === "remaining" ? "left" : word}: ${id}`;
    label.append(own ? codetaste.element("a", { class: word, href: `#${target}` }, text) : codetaste.element("span", { class: word }, text), " ");
  }
  if (marks?.length > 3) label.append(`and ${marks.length - 3} more`);
  made.append(name(old, "old"), name(now, "new"), codetaste.element("span", { class: "text" }, `${sign} ${trial.visible(cut)}`), label);
  return made;
}

function drawLines(container, model, number, rows, own) {
  const blocks = [];
  for (let first = 0; first < rows.length; first += ROWS_OF_BLOCK) {
    const some = rows.slice(first, first + ROWS_OF_BLOCK);
    blocks.push({ height: some.length * ROW_HEIGHT, draw: () => some.map((row) => drawRow(model, number, row, own)) });
  }
  return trial.blocks(container, blocks);
}

function countsText(file) {
  const [added, removed, hitsAdded, hitsRemoved] = file.counts;
  const parts = [`+${trial.number(added)} (${trial.number(hitsAdded)} matched)`, `−${trial.number(removed)} (${trial.number(hitsRemoved)} matched)`];
  if (file.l) parts.push(`${trial.number(file.l.length)} left`);
  return [...parts, ...(file.notes ?? [])].map(trial.visible).join(" · ");
}

/** The view: a list of files, each folded until it is wanted. */
class PatchView {
  constructor(section, container, own) {
    this.section = section;
    this.container = container;
    this.own = own;
    this.golden = null;
    this.mode = "patch";
    this.panels = [];
  }

  async loadGolden() {
    if (this.golden) return this.golden;
    const folder = this.section.dataset.golden;
    const data = await codetaste.load(`${folder}/golden.js`, "golden");
    this.golden = new PatchModel(data, data.rules, new PatchText(folder, "golden"));
    return this.golden;
  }

  toolbar() {
    const button = (text, mode) => codetaste.element("button", { type: "button", class: "button", "aria-pressed": String(this.mode === mode), click: async () => {
      await this.change(mode);
      this.container.querySelector(`[aria-pressed="true"]`).focus();
    } }, text);
    const modes = [button("This patch", "patch")];
    if (this.section.dataset.golden) modes.push(button("Side by side with the golden patch", "pair"), button("Golden patch", "golden"));
    return codetaste.element("div", { class: "toolbar", role: "group", "aria-label": "View of the patch" }, ...modes,
      codetaste.element("button", { type: "button", class: "button", click: () => this.step(1) }, "Next marked line ", codetaste.element("kbd", {}, "n")),
      codetaste.element("button", { type: "button", class: "button", click: () => this.step(-1) }, "Previous ", codetaste.element("kbd", {}, "p")),
      codetaste.element("button", { type: "button", class: "button", click: () => this.foldAll() }, "Fold all files"));
  }

  /** Return [path, number of the file here, number in the golden patch] of each panel. */
  entries() {
    if (this.mode === "golden") return this.golden.files.map((file, number) => [file.path, null, number]);
    const own = this.own.files.map((file, number) => [file.path, number, this.mode === "pair" ? this.golden.byPath.get(file.path) ?? null : null]);
    if (this.mode === "patch") return own;
    const others = this.golden.files.map((file, number) => [file.path, null, number]).filter(([path]) => !this.own.byPath.has(path));
    return [...own, ...others];
  }

  async change(mode) {
    if (mode !== "patch") await this.loadGolden();
    this.mode = mode;
    codetaste.query.set({ patch: mode === "patch" ? "" : mode });
    this.draw();
  }

  draw() {
    this.panels.forEach((panel) => panel.lines.forEach((lines) => lines.stop()));
    this.panels = this.entries().map(([path, own, golden]) => this.panel(path, own, golden));
    const list = codetaste.element("div", {}, ...this.panels.map((panel) => panel.node));
    this.container.replaceChildren(this.toolbar(), list);
    const first = this.panels.find((panel) => this.isSmall(panel) && this.hasMarks(panel)) ?? this.panels.find((panel) => this.isSmall(panel));
    if (first) this.open(first);
  }

  isSmall(panel) {
    const file = this.model(panel).files[this.number(panel)];
    return file.counts[0] + file.counts[1] < 2000;
  }

  hasMarks(panel) {
    const file = this.model(panel).files[this.number(panel)];
    return file.counts[2] || file.counts[3] || file.l;
  }

  model(panel) { return panel.own === null ? this.golden : this.own; }
  number(panel) { return panel.own ?? panel.golden; }

  panel(path, own, golden) {
    const panel = { path, own, golden, lines: [], opened: null };
    const file = own === null ? this.golden.files[golden] : this.own.files[own];
    const where = this.mode === "pair" && own === null ? "golden patch only · " : this.mode === "pair" && golden === null ? "this patch only · " : "";
    panel.button = codetaste.element("button", { type: "button", "aria-expanded": "false", click: () => (panel.opened ? this.close(panel) : this.open(panel)) },
      codetaste.element("span", { class: "path" }, trial.visible(path)), codetaste.element("span", { class: "counts" }, where + countsText(file)));
    panel.body = codetaste.element("div");
    panel.node = codetaste.element("section", { class: "file", "aria-label": trial.visible(path) }, codetaste.element("h3", own === null ? {} : { id: `F${own + 1}` }, panel.button), panel.body);
    return panel;
  }

  open(panel) {
    panel.opened ??= this.fill(panel);
    panel.button.setAttribute("aria-expanded", "true");
    return panel.opened;
  }

  close(panel) {
    panel.lines.forEach((lines) => lines.stop());
    Object.assign(panel, { lines: [], opened: null });
    panel.body.replaceChildren();
    panel.button.setAttribute("aria-expanded", "false");
  }

  foldAll() { this.panels.forEach((panel) => panel.opened && this.close(panel)); }

  async fill(panel) {
    const sides = this.mode === "pair" ? [[this.own, panel.own, "This patch"], [this.golden, panel.golden, "Golden patch"]] : [[this.model(panel), this.number(panel), ""]];
    const parts = [];
    try {
      for (const [model, number, title] of sides) {
        const part = codetaste.element("div", {}, ...(title ? [codetaste.element("p", {}, title)] : []));
        parts.push(part);
        if (number === null) { part.append(codetaste.element("p", {}, "This file is not changed.")); continue; }
        const rows = await model.rowsOf(number);
        part.append(...this.remarks(model.files[number], rows));
        const lines = codetaste.element("div", { class: "lines", tabindex: 0, role: "region", "aria-label": `Lines of ${trial.visible(panel.path)}${title && `, ${title}`}` });
        part.append(lines);
        if (rows.length) panel.lines.push(drawLines(lines, model, number, rows, model === this.own));
      }
      panel.body.className = this.mode === "pair" ? "pair" : "";
      panel.body.replaceChildren(...parts);
    } catch (error) {
      panel.body.replaceChildren(codetaste.element("p", { class: "note bad" }, `These lines cannot be shown: ${error.message}`));
    }
  }

  remarks(file, rows) {
    const texts = [];
    if (file.piece === null) texts.push("The page does not have these lines: the patch is too long. They are in the run's folder.");
    else if (!rows.length) texts.push("No line changes.");
    return texts.map((text) => codetaste.element("p", { class: "note" }, text));
  }

  /** Show a line, given the place of its row among those of its file. */
  async show(panel, at) {
    await this.open(panel);
    const block = Math.floor(at / ROWS_OF_BLOCK);
    const lines = panel.lines[0];
    if (!lines) return false;
    lines.node(block).scrollIntoView({ block: "center", behavior: "instant" });
    await lines.show(block);
    const row = lines.node(block).children[at % ROWS_OF_BLOCK];
    if (row) trial.go(row);
    this.at = [panel, at];
    return Boolean(row);
  }

  async line(number, wanted) {
    if (this.mode === "golden") await this.change("patch");
    const panel = this.panels.find((each) => each.own === number);
    if (!panel) return false;
    const rows = await this.own.rowsOf(number);
    const old = wanted.startsWith("o");
    const value = Number(old ? wanted.slice(1) : wanted);
    let at = rows.findIndex((row) => row[0] !== "hunk" && (old ? row[1] === value && !row[2] : row[2] === value));
    if (at < 0) at = rows.findIndex((row) => (old ? row[1] : row[2]) >= value);
    return this.show(panel, Math.max(0, at));
  }

  async step(direction) {
    const [panel, at] = this.at ?? [this.panels[direction > 0 ? 0 : this.panels.length - 1], direction > 0 ? -1 : Infinity];
    let place = Math.max(0, this.panels.indexOf(panel));
    let from = this.panels.includes(panel) ? at : -1;
    for (; place >= 0 && place < this.panels.length; place += direction) {
      const each = this.panels[place];
      if (this.hasMarks(each)) {
        const rows = await this.model(each).rowsOf(this.number(each));
        const start = Math.min(rows.length - 1, Math.max(0, from + direction));
        for (let row = from === Infinity ? rows.length - 1 : start; row >= 0 && row < rows.length; row += direction) {
          if (row !== from && isMarked(rows[row])) {
            await this.show(each, row);
            if (each.own !== null) trial.setHash(anchor(each.own, rows[row]));
            return;
          }
        }
      }
      from = direction > 0 ? -1 : Infinity;
    }
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const data = codetaste.data.trial;
  const section = document.querySelector("#patch");
  const container = document.querySelector("#patch-view");
  if (!data?.patch.files.length || !container || !window.DecompressionStream) return;
  const own = new PatchModel(data.patch, data.rules, new PatchText(section.dataset.folder, "patch"));
  const view = new PatchView(section, container, own);
  document.querySelector("#patch-excerpt").remove();
  const mode = codetaste.query.get("patch");
  const ready = ["pair", "golden"].includes(mode) && section.dataset.golden ? view.change(mode) : (view.draw(), Promise.resolve());
  codetaste.keys.add("n", "next marked line", () => view.step(1));
  codetaste.keys.add("p", "previous marked line", () => view.step(-1));
  trial.handlers.push(async (hash) => {
    const found = /^L(\d+)-(o?\d+)$/.exec(hash) ?? /^(F)(\d+)$/.exec(hash);
    if (!found) return false;
    await ready;
    if (found[1] === "F") {
      const panel = view.panels.find((each) => each.own === Number(found[2]) - 1);
      if (panel) { await view.open(panel); panel.button.focus(); panel.node.scrollIntoView(); }
      return true;
    }
    await view.line(Number(found[1]) - 1, found[2]);
    return true;
  });
});
