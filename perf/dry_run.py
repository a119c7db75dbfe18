"""CPU time of a short command, ``codetaste run --dry-run``, with the start of the program.

Most of it is imports. The import of the two libraries that every such command needs (pydantic and cyclopts)
is the lower bound and shows the present speed of the machine; the peer is Inspect printing its version.
The target is for the machine on which it was set; on a slower one it is scaled by that import.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from measure import Report, Use, arguments, interleaved, machine, measured, ratio, slowness, versions
from peers import peer_python

CONFIG = Path(__file__).resolve().parents[1] / "examples" / "quickstart.toml"
MAX_CPU_S = 0.4


def main() -> int:
    chosen = arguments(__doc__, 15).parse_args()
    inspect, about = peer_python("inspect_ai"), machine()
    command = Path(sys.executable).with_name("codetaste")
    with tempfile.TemporaryDirectory() as folder:
        new = ("--set", f"run.out={folder}")  # the folder of the checkout may have this run

        def run(*words: str | Path) -> Use:
            return measured(words, cwd=Path(folder))

        uses = interleaved(
            {
                "codetaste run --dry-run": lambda: run(command, "run", "--dry-run", CONFIG, *new),
                "python -m codetaste.run --dry-run": lambda: run(
                    sys.executable, "-m", "codetaste.run", "--dry-run", CONFIG, *new
                ),
                "import pydantic, cyclopts": lambda: run(sys.executable, "-c", "import pydantic, cyclopts"),
                "inspect --version": lambda: run(inspect.with_name("inspect"), "--version"),
            },
            chosen.rounds,
        )
    about |= {**versions(sys.executable, "codetaste"), **versions(inspect, "inspect_ai")}
    report = Report("start: a dry run of the quickstart", about)
    ours, module, imports, peer = uses.values()
    report.slowness = slowness([use.cpu_s for use in imports])
    for name, each in uses.items():
        most = MAX_CPU_S if each is ours or each is module else None
        report.add(f"{name}, CPU", [use.cpu_s for use in each], " s", most=most, scaled=True)
        report.add(f"{name}, memory", [use.rss / 1e6 for use in each], " MB")
    times = ratio([use.cpu_s for use in peer], [use.cpu_s for use in ours])
    report.add("CPU of inspect --version / codetaste run --dry-run", times, " ×")
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
