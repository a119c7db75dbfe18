"""CPU and wall time of one contained command: ``true`` in the rule agent's shell, beside bubblewrap alone.

CPU is that of all processes that take part, without the start of the calling program.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Report, Use, arguments, interleaved, machine, measured, ratio, versions

COUNT = 100


def contained(count: int, folder: Path) -> None:
    """Run ``true`` ``count`` times in the rule agent's shell."""
    import anyio  # noqa: PLC0415 - only in the measured process

    from codetaste.sandbox.containment.engine import choose_engine  # noqa: PLC0415
    from codetaste.sandbox.local.shell import read_only_shell  # noqa: PLC0415

    async def run() -> None:
        shell = read_only_shell(folder, engine=choose_engine("bubblewrap"))
        for _ in range(count):
            assert (await shell.run(["true"])).exit_code == 0

    anyio.run(run)


def bare(count: int, _folder: Path) -> None:
    """Run ``true`` ``count`` times in a bubblewrap that sees the whole system, read-only."""
    from codetaste.sandbox.containment.engine import choose_engine  # noqa: PLC0415 - only in the measured process

    bwrap = str(choose_engine("bubblewrap").program)
    command = [bwrap, "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "--new-session", "true"]
    for _ in range(count):
        subprocess.run(command, check=True)


def main() -> int:
    chosen, about = arguments(__doc__, 5).parse_args(), machine()
    with tempfile.TemporaryDirectory() as folder:

        def run(side: str, count: int) -> Use:
            return measured([sys.executable, __file__, "--do", side, str(count), folder])

        sides = {(side, count): f"{side} × {count}" for side in ("contained", "bare") for count in (0, COUNT)}
        uses = interleaved(
            {
                name: (lambda side=side, count=count: run(side, count))
                for (side, count), name in sides.items()
            },
            chosen.rounds,
        )
    report = Report("one contained command", {**about, **versions(sys.executable, "codetaste")})
    each: dict[str, list[float]] = {}
    for side, name in (("contained", "in the rule agent's shell"), ("bare", "in bubblewrap alone")):
        pairs = zip(uses[f"{side} × 0"], uses[f"{side} × {COUNT}"], strict=True)
        deltas = [(after.cpu_s - before.cpu_s, after.wall_s - before.wall_s) for before, after in pairs]
        each[side] = [cpu / COUNT * 1000 for cpu, _ in deltas]
        report.add(f"`true` {name}, CPU", each[side], " ms")
        report.add(f"`true` {name}, wall", [wall / COUNT * 1000 for _, wall in deltas], " ms")
    report.add(
        "CPU of the rule agent's shell / bubblewrap alone", ratio(each["contained"], each["bare"]), " ×"
    )
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--do"]:
        {"contained": contained, "bare": bare}[sys.argv[2]](int(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main())
