"""What a live view costs the run that it shows: 1,000 jobs with and without a page that is open.

Each job makes four calls of a model that answers after half a second. The page is what a browser asks for:
the page itself, then its changes as often as the page is told to.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Report, Use, arguments, interleaved, machine, measured, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
COUNT, PERMITS = 1000, 100
MAX_SHARE = 0.02
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Page:
    """An open page: it asks for its changes until it is closed."""

    def __init__(self, address: str) -> None:
        self.requests, self.bytes = 0, 0
        self._folder = address.rpartition("/")[0]
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def close(self) -> None:
        """Stop asking."""
        self._closed.set()
        self._thread.join()

    def _follow(self) -> None:
        self._get("index.html")
        version, wait_s = "", 0.0
        while not self._closed.wait(wait_s):
            changes: dict[str, Any] = json.loads(self._get(f"changes.json?since={version}"))
            version, wait_s = changes["version"], changes["next_s"]

    def _get(self, name: str) -> bytes:
        with urllib.request.urlopen(f"{self._folder}/{name}") as answer:
            body: bytes = answer.read()
        self.requests, self.bytes = self.requests + 1, self.bytes + len(body)
        return body


@contextmanager
def viewer(run: Path) -> Iterator[dict[str, float]]:
    """Serve a run with one page open; the figures are complete after the block."""
    command = [sys.executable, "-m", "codetaste", "view", str(run), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    page = Page(process.stdout.readline().strip())
    figures: dict[str, float] = {}
    started, began = cpu_s(process.pid), time.monotonic()
    try:
        yield figures
    finally:
        page.close()
        took = time.monotonic() - began
        figures |= {"cpu": (cpu_s(process.pid) - started) / took, "kB": page.bytes / 1000 / took}
        process.send_signal(signal.SIGINT)
        process.communicate()


def main() -> int:
    chosen = arguments(__doc__, 5).parse_args()
    shares: list[float] = []
    sizes: list[float] = []

    def run(*, watched: bool) -> Use:
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder, "watched")
            command = [sys.executable, HERE / "workload.py", "slow", str(COUNT), str(PERMITS), run]
            if not watched:
                return measured(command, cwd=HERE)
            with viewer(run) as figures:
                use = measured(command, cwd=HERE)
            shares.append(figures["cpu"])
            sizes.append(figures["kB"])
            return use

    uses = interleaved(
        {"alone": lambda: run(watched=False), "watched": lambda: run(watched=True)}, chosen.rounds
    )
    report = Report(
        f"live view: {COUNT} jobs of four calls", machine() | versions(sys.executable, "codetaste")
    )
    cpu = {name: [use.cpu_s for use in each] for name, each in uses.items()}
    wall = {name: [use.wall_s for use in each] for name, each in uses.items()}
    report.add("the run alone, CPU", cpu["alone"], " s")
    report.add("the run with an open page, CPU", cpu["watched"], " s")
    report.add("the run alone, wall", wall["alone"], " s")
    report.add("the run with an open page, wall", wall["watched"], " s")
    more = [(one - other) / other for one, other in zip(cpu["watched"], cpu["alone"], strict=True)]
    report.add("more CPU of the run, part of its own", [100 * each for each in more], " %")
    report.add(
        "the viewer, CPU by time", [100 * each for each in shares], " % of a core", most=100 * MAX_SHARE
    )
    report.add("what the page loads", sizes, " kB/s")
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
