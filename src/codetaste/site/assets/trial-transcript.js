"use strict";

/* Conversations: a window of events, loaded piece by piece; words are looked for in all pieces. */

const EVENTS_OF_BLOCK = 40;
const EVENT_HEIGHT = 52;
const SHOWN_CHARS = 4000;
const OPENED_CHARS = 20000;
const HELD_PIECES = 8;
const MAX_HITS = 500;
const FOLDED = new Set(["system", "reasoning", "call", "result"]);
const WORDS = { system: "instructions", user: "message", text: "reply", reasoning: "reasoning", call: "tool call", result: "tool result", note: "note", error: "error", problem: "unreadable" };

/** The conversations of a trial; a few unpacked pieces are held. */
class Conversations {
  constructor(folder, contents) {
    this.folder = folder;
    this.list = contents;
    this.held = new Map();
  }

  piece(conversation, piece) {
    const name = `transcript-${conversation}-${piece}`;
    let events = this.held.get(name);
    this.held.delete(name);
    events ??= trial.bytes(`${this.folder}/${name}.js`, name).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)));
    this.held.set(name, events);
    if (this.held.size > HELD_PIECES) this.held.delete(this.held.keys().next().value);
    return events;
  }

  /** Return the number of the conversation with this key; the last one without a key. */
  byKey(key) {
    const found = this.list.findIndex((each) => each.key === key);
    return found >= 0 ? found : key ? this.list.findIndex((each) => each.key.startsWith(`${key}.`)) : this.list.length - 1;
  }
}

/** The text of an event for people: the arguments of a call one after the other. */
function shownText(event) {
  if (event.k !== "call" || event.long || !event.x.startsWith("{")) return event.x;
  try {
    const texts = Object.entries(JSON.parse(event.x)).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
    return texts.join("\n");
  } catch {
    return event.x;
  }
}

function longText(event) {
  const whole = shownText(event);
  const limit = FOLDED.has(event.k) ? OPENED_CHARS : SHOWN_CHARS;
  const text = codetaste.element("pre", { tabindex: 0 }, trial.visible(whole.slice(0, limit)));
  const nodes = [text];
  if (whole.length > limit) {
    const button = codetaste.element("button", { type: "button", class: "button", click: () => { text.textContent = trial.visible(whole); button.remove(); } }, `Show all ${trial.number(whole.length)} characters`);
    nodes.push(button);
  }
  if (event.long) nodes.push(codetaste.element("p", { class: "muted small" }, `The text has ${trial.number(event.long)} characters; the page has the first ${trial.number(event.x.length)}.`));
  return nodes;
}

/** An amount of dollars with as many decimals as `codetaste report` shows. */
function dollars(usd) {
  return `$${usd.toFixed(usd < 0.1 ? Math.min(12, Math.max(4, 1 - Math.floor(Math.log10(usd)))) : 2)}`;
}

function replyText({ model, usd, s, stop, tokens }) {
  const parts = [];
  if (model) parts.push(model);
  if (usd) parts.push(dollars(usd));
  if (s) parts.push(`${s.toFixed(1)} s`);
  if (tokens) parts.push(`${trial.number(tokens.input ?? 0)} → ${trial.number(tokens.output ?? 0)} tokens`);
  if (stop) parts.push(stop);
  return parts.map(trial.visible).join(" · ");
}

function drawEvent(event, key) {
  const id = `event-${key}-${event.n}`;
  const head = codetaste.element("p", { class: "head" },
    codetaste.element("a", { href: `#${id}` }, `#${event.n}`),
    codetaste.element("span", { class: "kind" }, WORDS[event.k] ?? event.k, event.tool ? `: ${trial.visible(event.tool)}` : ""));
  if (event.t) head.append(codetaste.element("span", {}, `turn ${event.t}`));
  if (event.agent) head.append(codetaste.element("span", {}, trial.visible(event.agent)));
  if (event.error) head.append(codetaste.element("span", { class: "bad-text" }, "✗ failed"));
  if (event.reply) head.append(codetaste.element("span", {}, replyText(event.reply)));
  const made = codetaste.element("article", { class: `event ${event.k}`, id, "aria-label": `Event ${event.n}` }, head);
  if (!FOLDED.has(event.k)) {
    made.append(...longText(event));
    return made;
  }
  const whole = shownText(event);
  const line = whole.slice(0, 400).replace(/\s+/g, " ").trim();
  const first = line.length > 160 || whole.length > 400 ? `${line.slice(0, 160)}…` : line;
  const fold = codetaste.element("details", {}, codetaste.element("summary", {}, trial.visible(first) || "(empty)"));
  fold.addEventListener("toggle", () => { if (fold.open && fold.childElementCount === 1) fold.append(...longText(event)); });
  made.append(fold);
  return made;
}

class TranscriptView {
  constructor(container, conversations) {
    this.container = container;
    this.conversations = conversations;
    this.at = conversations.byKey("");
    this.hiddenKinds = new Set(codetaste.query.get("hide").split(",").filter(Boolean));
    this.events = codetaste.element("div", { class: "events", tabindex: 0, role: "region", "aria-label": "Events" });
    this.found = codetaste.element("div");
    this.about = codetaste.element("p", { class: "muted" });
    container.replaceChildren(this.toolbar(), this.found, this.about, this.events);
    this.choose(this.at);
  }

  toolbar() {
    const bar = codetaste.element("div", { class: "toolbar", role: "search", "aria-label": "Transcript" });
    const labelled = (text, field) => codetaste.element("label", { class: "field" }, text, field);
    if (this.conversations.list.length > 1) {
      this.select = codetaste.element("select", { change: () => this.choose(Number(this.select.value)) },
        ...this.conversations.list.map((each, number) => codetaste.element("option", { value: number }, `${trial.visible(each.title)} (${trial.number(each.size)} events)`)));
      bar.append(labelled("Conversation", this.select));
    }
    this.words = codetaste.element("input", { type: "search", size: 24, keydown: (event) => { if (event.key === "Enter") this.search(); } });
    this.words.value = codetaste.query.get("q");
    bar.append(labelled("Words in all conversations", this.words), codetaste.element("button", { type: "button", class: "button", click: () => this.search() }, "Find"));
    for (const kind of ["system", "reasoning", "call", "result"]) {
      const button = codetaste.element("button", { type: "button", class: "button", "aria-pressed": String(!this.hiddenKinds.has(kind)), click: () => {
        this.hiddenKinds.has(kind) ? this.hiddenKinds.delete(kind) : this.hiddenKinds.add(kind);
        button.setAttribute("aria-pressed", String(!this.hiddenKinds.has(kind)));
        codetaste.query.set({ hide: [...this.hiddenKinds].join(",") });
        this.applyKinds(this.events.querySelectorAll(".event"));
      } }, `${WORDS[kind]}s`.replace("ss", "s").replace("reasonings", "reasoning"));
      bar.append(button);
    }
    return bar;
  }

  applyKinds(nodes) {
    for (const node of nodes) node.classList.toggle("hidden-kind", this.hiddenKinds.has(node.classList[1]));
  }

  choose(number) {
    this.at = number;
    if (this.select) this.select.value = number;
    const each = this.conversations.list[number];
    const parts = [`${trial.number(each.size)} events`, `${trial.number(each.turns)} turns`, `${trial.number(each.chars)} characters`, `from ${each.file}`];
    if (each.problems) parts.push(`${each.problems} parts cannot be read`);
    this.about.textContent = parts.map(trial.visible).join(" · ");
    this.places = [];
    const blocks = [];
    each.pieces.forEach(([first, count], piece) => {
      for (let from = 0; from < count; from += EVENTS_OF_BLOCK) {
        const length = Math.min(EVENTS_OF_BLOCK, count - from);
        this.places.push({ piece, from, first: first + from, length });
        blocks.push({ height: length * EVENT_HEIGHT, draw: () => this.draw(number, piece, from, length) });
      }
    });
    this.blocks?.stop();
    this.events.scrollTop = 0;
    this.blocks = trial.blocks(this.events, blocks, this.events);
  }

  async draw(number, piece, from, length) {
    try {
      const events = await this.conversations.piece(number, piece);
      const nodes = events.slice(from, from + length).map((event) => drawEvent(event, this.conversations.list[number].key));
      this.applyKinds(nodes);
      return nodes;
    } catch (error) {
      return [codetaste.element("p", { class: "note bad" }, `These events cannot be shown: ${error.message}`)];
    }
  }

  async show(number, event) {
    if (number < 0) return false;
    if (number !== this.at) this.choose(number);
    const block = this.places.findIndex((place) => event < place.first + place.length);
    if (block < 0) return false;
    this.blocks.node(block).scrollIntoView({ block: "start", behavior: "instant" });
    await this.blocks.show(block);
    const node = document.getElementById(`event-${this.conversations.list[number].key}-${event}`);
    if (!node) return false;
    node.classList.remove("hidden-kind");
    const fold = node.querySelector("details");
    if (fold) fold.open = true;
    trial.go(node);
    return true;
  }

  async showTurn(number, turn) {
    if (number < 0) return false;
    const pieces = this.conversations.list[number].pieces;
    let piece = pieces.findLastIndex(([, , first]) => first < turn);
    for (piece = Math.max(0, piece); piece < pieces.length; piece++) {
      const event = (await this.conversations.piece(number, piece)).find((each) => each.t >= turn);
      if (event) return this.show(number, event.n);
    }
    return false;
  }

  /** Look for words in all pieces, one after the other; a new search ends the one before. */
  async search() {
    const words = this.words.value.trim().toLowerCase();
    codetaste.query.set({ q: this.words.value.trim() });
    const search = (this.searching = {});
    this.found.replaceChildren();
    if (!words) return;
    const total = this.conversations.list.reduce((sum, each) => sum + each.pieces.length, 0);
    const progress = codetaste.element("progress", { max: total, value: 0, "aria-label": "Pieces searched" });
    const status = codetaste.element("span", { role: "status", class: "muted" });
    const stop = codetaste.element("button", { type: "button", class: "button", click: () => { this.searching = null; } }, "Stop");
    const hits = codetaste.element("ol", { class: "hits", tabindex: 0, "aria-label": "Places found" });
    this.found.replaceChildren(codetaste.element("p", {}, progress, " ", status, " ", stop), hits);
    let searched = 0, number = 0;
    for (const [at, each] of this.conversations.list.entries()) {
      for (let piece = 0; piece < each.pieces.length; piece++) {
        if (this.searching !== search) break;
        try {
          for (const event of await this.conversations.piece(at, piece)) {
            const place = event.x.toLowerCase().indexOf(words);
            if (place < 0 && !(event.tool ?? "").toLowerCase().includes(words)) continue;
            number++;
            if (number <= MAX_HITS) hits.append(this.hit(at, event, place, words.length));
            if (number === 1 && !location.hash) this.show(at, event.n);
          }
        } catch { /* a damaged piece has no hits; its place in the window says so */ }
        progress.value = ++searched;
        status.textContent = `${trial.number(number)} events have these words; ${trial.number(searched)} of ${trial.number(total)} pieces searched`;
      }
    }
    if (this.searching === search || this.searching === null) { progress.remove(); stop.remove(); }
    if (number > MAX_HITS) hits.append(codetaste.element("li", {}, `The first ${MAX_HITS} of ${trial.number(number)} are listed.`));
    if (!number) hits.remove();
  }

  hit(at, event, place, length) {
    const { key, title } = this.conversations.list[at];
    const text = event.x, from = Math.max(0, place - 60);
    const line = (part) => trial.visible(part.replace(/\s+/g, " "));
    const item = codetaste.element("li", {}, codetaste.element("a", { href: `#event-${key}-${event.n}` }, `${trial.visible(title)} #${event.n}`), ` ${WORDS[event.k] ?? event.k}: `);
    if (place >= 0) item.append(line(text.slice(from, place)), codetaste.element("mark", {}, line(text.slice(place, place + length))), line(text.slice(place + length, place + length + 100)));
    return item;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const section = document.querySelector("#transcript");
  const container = document.querySelector("#transcript-view");
  if (!container || !window.DecompressionStream) return;
  let opening = null;
  const open = () => {
    opening ??= codetaste.load(`${section.dataset.folder}/transcript.js`, "transcript").then((contents) => {
      document.querySelector("#transcript-excerpt").remove();
      return new TranscriptView(container, new Conversations(section.dataset.folder, contents));
    });
    return opening;
  };
  const near = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) { near.disconnect(); open(); }
  }, { rootMargin: "800px 0px" });
  near.observe(section);
  trial.handlers.push(async (hash) => {
    const found = /^(event|turn)-(?:(.+)-)?(\d+)$/.exec(hash);
    if (!found) return false;
    const view = await open();
    const number = view.conversations.byKey(found[2] ?? "");
    return found[1] === "event" ? view.show(number, Number(found[3])) : view.showTurn(number, Number(found[3]));
  });
  if (codetaste.query.get("q")) open().then((view) => view.search());
});
