"""Take the pictures of docs/images anew: ``python tests/support/site/screenshots.py RUN…``.

The leaderboard, the comparison, the trials, the instances, the rules, the environments and the figures are
those of made-up results; discovery, mining, SWE-Refactor and the live view are those of the runs, such as
runs/quickstart, runs/mine-local and runs/swe-refactor, made of the examples; the overview is that of a run of
SWE-Refactor alone. Each picture has its page wide and narrow, light and dark. ``--only A,B`` takes some.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path.insert(0, str(TESTS))

from PIL import Image  # noqa: E402 - the path is set first
from playwright.sync_api import Browser  # noqa: E402

from codetaste.benchmark.config import BenchmarkConfig  # noqa: E402
from codetaste.results.read import read_results  # noqa: E402
from codetaste.run.resolve import find_benchmark  # noqa: E402
from codetaste.site.output.write import write_site  # noqa: E402
from support.site.browser import open_browser, watched_page  # noqa: E402
from support.site.environments import write_environments  # noqa: E402
from support.site.synthetic import Size, write_results  # noqa: E402

FOLDER = TESTS.parent / "docs" / "images"
WIDE, NARROW, HEIGHT = 1280, 400, 1000
SCALE = 0.5
COLOURS = 64
MADE_UP = {
    "leaderboard": "index.html",
    "compare": "compare/*--*/index.html",
    "trials": "trials/index.html",
    "trial": "trials/*/gpt-5.2/open-plan/*/1/index.html",
    "instance": "instances/*/index.html",
    "rules": "rules/index.html",
    "environments": "environments/index.html",
    "environment": "environments/*/index.html",
    "figures": "figures/index.html",
    "search": "search/index.html",
}
OF_RUNS = {
    "discovery": "discovery/*/*/additive/index.html",
    "rejected": "discovery/*/*/additive/index.html",
    "mining": "mining/index.html",
    "swe-refactor": "swe-refactor/index.html",
    "overview": "swe-refactor/../index.html",
    "answer": "swe-refactor/trials/**/index.html",
}
QUERIES = {"trials": "?outcome=failure", "search": "?q=session", "trial": "#patch", "rejected": "#rejected"}


def main(runs: list[Path], only: set[str]) -> None:
    """Write a picture of each page that the results have, or of those named in ``only``."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, open_browser() as browser:
        try:
            live = _live(runs[:1]) if not only or "live" in only else ()
            for name, address in [*_addresses(Path(scratch), runs), *live]:
                if only and name not in only:
                    continue
                _picture(browser, address).save(FOLDER / f"{name}.png", optimize=True)
        finally:
            stop_live()


def _addresses(scratch: Path, runs: list[Path]) -> Iterator[tuple[str, str]]:
    folder, run = write_results(scratch, Size(instances=24))
    benchmark = find_benchmark(BenchmarkConfig(path=str(folder), repos=None), Path())
    write_environments(run, benchmark.instances)
    write_site(read_results([run], benchmark), scratch / "made-up", "made-up results")
    sites = [(scratch / "made-up", MADE_UP)]
    for number, each in enumerate(runs):
        write_site(read_results([each]), scratch / str(number), each.name)
        sites.append((scratch / str(number), OF_RUNS))
    seen = set[str]()
    for site, pages in sites:
        for name, pattern in pages.items():
            found = next(iter(sorted(site.glob(pattern))), None)
            if found is not None and name not in seen:
                seen.add(name)
                yield name, found.as_uri() + QUERIES.get(name, "")


_servers: list[subprocess.Popen[str]] = []


def _live(runs: list[Path]) -> Iterator[tuple[str, str]]:
    for run in runs:
        command = [sys.executable, "-m", "codetaste", "view", str(run), "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        _servers.append(server)
        assert server.stdout is not None
        found = next(filter(None, (re.search(r"http://\S+", line) for line in server.stdout)))
        yield "live", found[0]


def stop_live() -> None:
    """End the live views."""
    for server in _servers:
        server.terminate()
        server.wait(30)


def _picture(browser: Browser, address: str) -> Image.Image:
    shots = []
    for dark in (False, True):
        for width in (WIDE, NARROW):
            with watched_page(browser, dark=dark, width=width, height=HEIGHT) as page:
                page.goto(address)
                page.wait_for_timeout(600)
                shots.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    gap = 24
    whole = Image.new("RGB", (WIDE + NARROW + gap, 2 * HEIGHT + gap), "grey")
    for number, shot in enumerate(shots):
        whole.paste(shot, ((WIDE + gap) * (number % 2), (HEIGHT + gap) * (number // 2)))
    small = whole.resize((int(whole.width * SCALE), int(whole.height * SCALE)), Image.Resampling.LANCZOS)
    return small.quantize(COLOURS, dither=Image.Dither.NONE)


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("runs", nargs="*", type=Path)
    given = parser.parse_args()
    main(given.runs, {*filter(None, given.only.split(","))})
