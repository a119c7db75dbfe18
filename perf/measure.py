"""CPU time, wall time and peak memory of a command and all that it starts; ours and a peer's in turns.

CPU seconds (user + system) repeat better than wall time on a shared machine, so ratios are of CPU unless a
row says otherwise. The sides alternate, in reverse order in every second round, so that a change of the
machine's speed affects both. ::

    python perf/measure.py --rounds 5 --ours "codetaste --version" --peer "python3 --version"

The command runs below a small process that adopts orphans, so a process that forks twice to leave its parent
is counted too; one that ends later than ``_LATE_S`` after the command is not. Memory is the highest peak of
any single process, not a sum, and at least that of the small process (17 MB).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_LATE_S = 5.0
_IMPORT_CPU_S = 0.12
"""CPU seconds of ``import pydantic, cyclopts`` on the machine and day for which the targets were set."""
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Use:
    """The use of one run of a command; ``rss`` in bytes, ``output`` is its standard output."""

    cpu_s: float
    wall_s: float
    rss: int
    output: str


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the smallest and the largest of ``count`` values."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise ``values``."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def format(self, unit: str) -> str:
        """Return "median unit (low–high)"."""
        low, middle, high = map(_short, (self.low, self.median, self.high))
        return f"{middle}{unit}" if self.count == 1 else f"{middle}{unit} ({low}–{high})"


def _short(value: float) -> str:
    """Format a figure with three digits, and a whole number in full."""
    return f"{value:.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"


def ratio(over: Sequence[float], under: Sequence[float]) -> Spread:
    """Return the ratio of the medians, with the smallest and largest ratio of one round."""
    each = [a / b for a, b in zip(over, under, strict=True)]
    return Spread(statistics.median(over) / statistics.median(under), min(each), max(each), len(each))


def measured(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 3600.0,
    codes: Sequence[int] = (0,),
) -> Use:
    """Run ``command`` once; its standard error goes to ours.

    Raises:
        SystemExit: the command ended with a code that is not among ``codes``.
    """
    with tempfile.TemporaryDirectory() as scratch:
        figures = Path(scratch, "figures")
        small = [sys.executable, "-I", "-S", __file__, "--adopt", str(figures), *map(str, command)]
        environment, stdout = {**os.environ, **(env or {})}, Path(scratch, "stdout")
        environment.pop(
            "PYTHONDONTWRITEBYTECODE", None
        )  # compiled modules are stored, as on a user's machine
        with stdout.open("wb") as output:
            subprocess.run(small, cwd=cwd, env=environment, stdout=output, check=True, timeout=timeout_s)
        text = stdout.read_text("utf-8", "replace")
        used = json.loads(figures.read_text())
    if used["code"] not in codes:
        sys.exit(f"{shlex.join(map(str, command))}: ended with {used['code']}\n{text[-2000:]}")
    return Use(used["cpu_s"], used["wall_s"], used["rss"], text)


def interleaved(sides: Mapping[str, Callable[[], Use]], rounds: int) -> dict[str, list[Use]]:
    """Run every side once in each round, in reverse order in every second round."""
    uses: dict[str, list[Use]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in sides if number % 2 == 0 else reversed([*sides]):
            uses[name].append(sides[name]())
            last = uses[name][-1]
            print(f"  {name}: {last.cpu_s:.2f} s CPU, {last.wall_s:.2f} s wall", file=sys.stderr, flush=True)
    return uses


def machine() -> dict[str, Any]:
    """Describe the machine and the date."""
    processor = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory = next(
        (int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0
    )
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": processor,
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**20, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def slowness(imports_s: Sequence[float] = ()) -> float:
    """Return how many times as long this machine takes as the one of the targets; 1 if it is faster.

    The yardstick is the import of pydantic and cyclopts; ``imports_s`` are its CPU seconds if they are known.
    """
    command = (sys.executable, "-c", "import pydantic, cyclopts")
    taken_s = imports_s or [measured(command).cpu_s for _ in range(9)]
    return max(1.0, round(statistics.median(taken_s) / _IMPORT_CPU_S, 2))


def versions(python: str | Path, *names: str) -> dict[str, str]:
    """Return the versions of packages that ``python`` has."""
    script = "import importlib.metadata as m, sys; print(*(m.version(n) for n in sys.argv[1:]))"
    done = subprocess.run([str(python), "-c", script, *names], check=True, capture_output=True, text=True)
    return dict(zip(names, done.stdout.split(), strict=True))


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


@dataclass(slots=True)
class Report:
    """Rows of measured figures with the machine; ``missed`` lists the missed targets.

    A maximum of a row that is ``scaled`` is multiplied by ``slowness``.
    """

    title: str
    about: dict[str, Any] = field(default_factory=machine)
    slowness: float = 1.0
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(
        self,
        name: str,
        values: Sequence[float] | Spread,
        unit: str,
        *,
        most: float | None = None,
        least: float | None = None,
        scaled: bool = False,
    ) -> None:
        """Add a figure; it misses its target when its median is above ``most`` or below ``least``."""
        spread = values if isinstance(values, Spread) else Spread.of(values)
        slower = self.slowness if scaled else 1.0
        met = (most is None or spread.median <= most * slower) and (least is None or spread.median >= least)
        row = {"unit": unit, "most": most, "slower": slower, "least": least, "met": met}
        self.rows.append({"name": name, **asdict(spread), **row})

    @property
    def missed(self) -> list[str]:
        """The figures that miss their targets."""
        return [row["name"] for row in self.rows if not row["met"]]

    def end(self, *, as_json: bool) -> int:
        """Print everything, and return the exit code: 1 when a target is missed."""
        if as_json:
            print(json.dumps({"title": self.title, "machine": self.about, "rows": self.rows}, indent=2))
            return 1 if self.missed else 0
        print(f"{self.title}\n" + ", ".join(f"{key} {value}" for key, value in self.about.items()) + "\n")
        print("| figure | median (low–high) | rounds | target |\n| --- | --- | --- | --- |")
        for row in self.rows:
            spread = Spread(row["median"], row["low"], row["high"], row["count"])
            bounds = (("≤", row["most"]), ("≥", row["least"]))
            target = " ".join(f"{sign} {bound:g}{row['unit']}" for sign, bound in bounds if bound is not None)
            if target and row["slower"] > 1:
                target += f", here × {row['slower']:g}"
            verdict = f"{target}: {'met' if row['met'] else 'MISSED'}" if target else ""
            print(f"| {row['name']} | {spread.format(row['unit'])} | {row['count']} | {verdict} |")
        return 1 if self.missed else 0


def arguments(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """Return a parser with the options of every script, ``--rounds`` and ``--json``."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds, help=f"rounds of each side (default {rounds})")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser


def add_comparison(report: Report, name: str, uses: Mapping[str, Sequence[Use]]) -> None:
    """Add CPU, wall and memory of each side, and the ratio of the last side's CPU to the first's."""
    for side, each in uses.items():
        report.add(f"{name}: {side}, CPU", [use.cpu_s for use in each], " s")
        report.add(f"{name}: {side}, wall", [use.wall_s for use in each], " s")
        report.add(f"{name}: {side}, peak memory", [use.rss / 1e6 for use in each], " MB")
    if len(uses) > 1:
        first, *_, last = uses
        cpu = ratio([use.cpu_s for use in uses[last]], [use.cpu_s for use in uses[first]])
        report.add(f"{name}: CPU of {last} / {first}", cpu, " ×")


def _adopt(figures: Path, command: Sequence[str]) -> None:
    """Run ``command`` as its reaper of orphans, and write the use of all of them to ``figures``."""
    import ctypes  # noqa: PLC0415 - only the small process needs it

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    first = os.posix_spawnp(command[0], [*command], os.environ)
    code, wall_s, cpu_s, rss, late = -1, 0.0, 0.0, 0, 0.0
    while not late or time.monotonic() < late:
        try:
            process, status, used = os.wait4(-1, os.WNOHANG if late else 0)
        except ChildProcessError:
            break
        if not process:
            time.sleep(0.01)
            continue
        cpu_s += used.ru_utime + used.ru_stime
        rss = max(rss, used.ru_maxrss * 1024)
        if process == first:
            code, wall_s = os.waitstatus_to_exitcode(status), time.monotonic() - began
            late = time.monotonic() + _LATE_S
    figures.write_text(json.dumps({"code": code, "wall_s": wall_s, "cpu_s": cpu_s, "rss": rss}))


def main() -> int:
    parser = arguments(__doc__, 5)
    parser.add_argument("--ours", required=True, help="our command")
    parser.add_argument("--peer", help="another command for the same work")
    chosen = parser.parse_args()
    commands = {side: text for side in ("ours", "peer") if (text := getattr(chosen, side))}
    sides = {side: (lambda text=text: measured(shlex.split(text))) for side, text in commands.items()}
    report = Report("; ".join(f"{side}: {text}" for side, text in commands.items()))
    add_comparison(report, "command", interleaved(sides, chosen.rounds))
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--adopt"]:
        _adopt(Path(sys.argv[2]), sys.argv[3:])
    else:
        sys.exit(main())
