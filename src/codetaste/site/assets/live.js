"use strict";

/* A row that is replaced or moved between the press and the release of a button takes the click with it:
   pages change only while no button is down (but the one for menus, whose release may not be told). */
const codetasteLive = (() => {
  const TIMEOUT_MS = 60000;
  let pressed = false;
  const waiting = [];

  function release() {
    // A click follows the release at once.
    setTimeout(() => {
      pressed = false;
      for (const go of waiting.splice(0)) go();
    });
  }
  addEventListener("pointerdown", (event) => { pressed = event.button < 2; }, true);
  for (const event of ["pointerup", "pointercancel", "dragend", "blur"]) addEventListener(event, release, true);

  return {
    /** Resolves with the answer; rejects one that is an error. */
    async fetch(address) {
      const answer = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
      return answer;
    },
    /** Resolves when no button is down. */
    released: () => (pressed ? new Promise((resolve) => { waiting.push(resolve); }) : Promise.resolve()),
  };
})();

/* The overview of runs: asks for itself anew, and keeps what has the focus. */
(() => {
  const runs = document.getElementById("live-runs");
  if (!runs) return;
  const connection = document.getElementById("live-connection");
  const INTERVAL_MS = 3000;

  async function poll() {
    if (!document.hidden && !runs.contains(document.activeElement)) {
      try {
        const answer = await codetasteLive.fetch("index.html");
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        await codetasteLive.released();
        if (!runs.contains(document.activeElement)) {
          runs.replaceChildren(...page.getElementById("live-runs").children);
        }
        connection.textContent = "";
      } catch (error) {
        connection.textContent = `Not current: ${error.message}. Trying again.`;
      }
    }
    setTimeout(poll, INTERVAL_MS);
  }
  setTimeout(poll, INTERVAL_MS);
})();

/* Keeps the page of a run current: asks for what has changed, and puts the server's pieces in place. */
(() => {
  const page = document.getElementById("live");
  if (!page) return;
  const connection = document.getElementById("live-connection");
  const summary = document.getElementById("live-summary");
  const jobs = document.querySelector("#live-jobs tbody");
  const events = document.querySelector("#live-events tbody");
  const filter = document.getElementById("live-filter");
  const shown = document.getElementById("live-shown");
  const MAX_ROWS = 2000;
  const MAX_EVENTS = 200;
  const rows = new Map();
  let head = "";
  let version = page.dataset.version;
  let wait = Number(page.dataset.next) || 1;

  for (const row of jobs.rows) rows.set(row.dataset.id, row);

  /** The row in a piece of the page; the server has escaped all that comes from a run. */
  function parse(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  }

  function before(one, other) {
    const order = Number(one.dataset.order) - Number(other.dataset.order);
    if (order) return order < 0;
    const since = Number(other.dataset.since) - Number(one.dataset.since);
    return since ? since < 0 : one.dataset.id < other.dataset.id;
  }

  /** Puts a row at its place among the rows, which are in order. */
  function place(row) {
    let low = 0;
    let high = jobs.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (before(jobs.rows[middle], row)) low = middle + 1;
      else high = middle;
    }
    jobs.insertBefore(row, jobs.rows[low] || null);
  }

  /** Changes the cells of a row that differ, so that links and what is selected in the others remain. */
  function update(row, now) {
    for (const [column, cell] of [...now.cells].entries()) {
      if (row.cells[column].innerHTML !== cell.innerHTML) row.cells[column].replaceWith(cell);
    }
    const moved = row.dataset.order !== now.dataset.order || row.dataset.since !== now.dataset.since;
    Object.assign(row.dataset, now.dataset);
    return moved;
  }

  function applyJobs(changed) {
    for (const each of changed) {
      const now = parse(each.html);
      const row = rows.get(each.id) ?? now;
      const focused = row.contains(document.activeElement) ? document.activeElement : null;
      const moved = row === now || update(row, now);
      rows.set(each.id, row);
      if (moved) {
        row.remove();
        place(row);
      }
      if (focused && focused !== document.activeElement) {
        (row.contains(focused) ? focused : row.querySelector("a")).focus({ preventScroll: true });
      }
    }
    while (jobs.rows.length > MAX_ROWS) {
      const last = jobs.rows[jobs.rows.length - 1];
      rows.delete(last.dataset.id);
      last.remove();
    }
  }

  function apply(data) {
    if (data.whole) {
      rows.clear();
      jobs.replaceChildren();
      events.replaceChildren();
    }
    version = data.version;
    wait = data.next_s;
    if (head !== data.summary) summary.innerHTML = head = data.summary;
    applyJobs(data.job_rows);
    for (const html of data.event_rows.reverse()) events.prepend(parse(html));
    while (events.rows.length > MAX_EVENTS) events.rows[events.rows.length - 1].remove();
    show();
  }

  function show() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of jobs.rows) {
      const text = words.length ? row.textContent.toLowerCase() : "";
      row.hidden = !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = words.length ? `${count} of ${jobs.rows.length} jobs` : "";
    tick();
  }

  function duration(seconds) {
    const whole = Math.max(0, Math.round(seconds));
    const two = (number) => String(number).padStart(2, "0");
    if (whole < 60) return `${whole}s`;
    if (whole < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
    return `${Math.floor(whole / 3600)}h${two(Math.floor((whole % 3600) / 60))}m`;
  }

  function tick() {
    const now = Date.now() / 1000;
    for (const each of jobs.querySelectorAll("tr:not([hidden]) .elapsed")) {
      const since = Number(each.dataset.elapsed);
      const text = since > 0 ? duration(now - since) : "";
      if (each.textContent !== text) each.textContent = text;
    }
  }

  async function poll() {
    if (!document.hidden) {
      try {
        const answer = await codetasteLive.fetch(`changes.json?since=${encodeURIComponent(version)}`);
        const changes = await answer.json();
        await codetasteLive.released();
        apply(changes);
        connection.textContent = "";
      } catch (error) {
        connection.textContent = `Not current: ${error.message}. Trying again.`;
        wait = Math.min(10, wait * 2);
      }
    }
    setTimeout(poll, wait * 1000);
  }

  filter.value = codetaste.query.get("q");
  filter.addEventListener("input", () => {
    codetaste.query.set({ q: filter.value });
    show();
  });
  show();
  setInterval(tick, 1000);
  setTimeout(poll, wait * 1000);
})();
