"""The site of 1,600 made-up trials: making it, its pages in Chromium, and a trial with a long transcript.

The trials have patches of the sizes in CodeTaste's Table 5. The peer is ``inspect view bundle`` of the same
trials, as logs that ``codetaste export --to inspect`` writes. Times in the browser are until the frame after
the work. Needs Chromium and the extra ``dev``. ::

    python perf/site.py --trials 160
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Report, add_comparison, arguments, interleaved, machine, measured, versions
from peers import peer_python

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.site.browser import open_browser
from support.site.synthetic import PAPER, Size, write_results

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TRIALS, OF_INSTANCE = 1600, 16
MAX_S, MAX_MB = 20.0, 500.0
MAX_PAINT_MS, MAX_BOARD_MS, MAX_TRIALS_MS, MAX_OPEN_MS = 1000.0, 100.0, 300.0, 2000.0
TRANSCRIPT_BYTES = 127_000_000

INTERACT = """async ([table, what]) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  await frame();
  const began = performance.now();
  if (what === "sort") document.querySelectorAll(`#${table} thead button.sort`)[3].click();
  else {
    const field = document.querySelector(".toolbar input");
    field.value = what;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  await frame();
  return performance.now() - began;
}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
SCROLL = """async () => {
  const events = document.querySelector("#transcript .events");
  const began = performance.now();
  events.scrollTop = events.scrollHeight / 2;
  const seen = () => [...events.querySelectorAll(".event")].some((each) => {
    const box = each.getBoundingClientRect(), window = events.getBoundingClientRect();
    return box.bottom > window.top && box.top < window.bottom;
  });
  while (!seen()) await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def write_long_transcript(run: Path) -> None:
    """Append events to the transcript of the run's only trial until it has 127 MB."""
    (path,) = run.rglob("inference.out")
    output = "".join(f"src/module_{line}.py: a line of the output of a command\n" for line in range(600))
    with path.open("a") as file:
        for number in range(TRANSCRIPT_BYTES):
            call = {"type": "call", "id": f"more-{number}", "name": "bash", "arguments": {"command": "rg x"}}
            result = {"type": "result", "call": f"more-{number}", "content": output}
            file.write(json.dumps({"role": "assistant", "content": [call]}) + "\n")
            file.write(json.dumps({"role": "user", "content": [result]}) + "\n")
            if file.tell() >= TRANSCRIPT_BYTES:
                return


def opened(browser: Browser, path: Path) -> tuple[Page, float]:
    """Open a page that nothing is cached of; returns it with its first paint in milliseconds."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(path.as_uri())
    page.wait_for_function(f"() => {PAINT} > 0")
    return page, page.evaluate(PAINT)


def measure_pages(report: Report, browser: Browser, site: Path, rounds: int) -> None:
    """Add first paint and interaction of the leaderboard and of the list of all trials."""
    pages = (
        ("leaderboard", "index.html", "board", MAX_BOARD_MS),
        ("all trials", "trials/index.html", "trials", MAX_TRIALS_MS),
    )
    for name, address, table, most in pages:
        times: dict[str, list[float]] = {
            "first paint": [],
            "sort": [],
            "filter by words": [],
            "all again": [],
        }
        for _ in range(rounds):
            page, paint_ms = opened(browser, site / address)
            times["first paint"].append(paint_ms)
            for action, what in (("sort", "sort"), ("filter by words", "gpt"), ("all again", "")):
                times[action].append(page.evaluate(INTERACT, [table, what]))
            page.context.close()
        for action, values in times.items():
            bound = MAX_PAINT_MS if action == "first paint" else most
            report.add(f"{name}: {action}", values, " ms", most=bound)


def measure_transcript(report: Report, browser: Browser, site: Path, rounds: int) -> None:
    """Add how long a trial's page takes to show its long transcript, and events in its middle."""
    (path,) = (each.with_name("index.html") for each in site.rglob("transcript.js"))
    opens: list[float] = []
    scrolls: list[float] = []
    for _ in range(rounds):
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        began = time.perf_counter()
        page.goto(f"{path.as_uri()}#transcript")
        page.wait_for_selector("#transcript .events .event")
        opens.append(1000 * (time.perf_counter() - began))
        scrolls.append(page.evaluate(SCROLL))
        page.context.close()
    report.add("127 MB transcript: open until events are seen", opens, " ms", most=MAX_OPEN_MS)
    report.add("127 MB transcript: scroll to the middle", scrolls, " ms", most=MAX_TRIALS_MS)


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"default {TRIALS}")
    parser.add_argument("--no-peer", action="store_true", help="do not measure Inspect")
    chosen = parser.parse_args()
    size = replace(PAPER, instances=max(1, chosen.trials // OF_INSTANCE))
    report = Report(f"the site of {size.instances * OF_INSTANCE:,} trials", machine())
    program = Path(sys.executable).parent / "codetaste"
    with tempfile.TemporaryDirectory() as scratch, open_browser() as browser:
        place = Path(scratch)
        _, run = write_results(place, size)
        site, logs, bundle = place / "site", place / "logs", place / "bundle"
        sides = {"ours": lambda: measured([program, "report", run, "-o", site])}
        if not chosen.no_peer:
            inspect = peer_python("inspect_ai")
            report.about |= versions(inspect, "inspect_ai")
            export = measured([program, "export", run, "--to", "inspect", "-o", logs])
            report.add("export of the logs for Inspect, CPU", [export.cpu_s], " s")
            words = ("view", "bundle", "--log-dir", logs, "--output-dir", bundle, "--overwrite")
            sides["inspect view bundle"] = lambda: measured([inspect.with_name("inspect"), *words])
        uses = interleaved(sides, chosen.rounds)
        add_comparison(report, "pages and figures", uses)
        report.add("ours, wall", [use.wall_s for use in uses["ours"]], " s", most=MAX_S)
        report.add("ours, peak memory", [use.rss / 1e6 for use in uses["ours"]], " MB", most=MAX_MB)
        for name, folder in (("the run", run), ("the site", site), ("Inspect's bundle", bundle)):
            report.add(f"size of {name}", [bytes_in(folder) / 1e6], " MB")
        measure_pages(report, browser, site, chosen.rounds)
        _, long_run = write_results(place / "long", Size(instances=1, agents=1, settings=1))
        write_long_transcript(long_run)
        made = measured([program, "report", long_run, "-o", place / "long-site"])
        report.add("127 MB transcript: its site, wall", [made.wall_s], " s")
        report.add("127 MB transcript: its site, peak memory", [made.rss / 1e6], " MB")
        measure_transcript(report, browser, place / "long-site", chosen.rounds)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
