"""Memory and CPU of codetaste with fifty agents at once, and a trial's overhead over its bare command.

Fifty command-line agents in sandboxes call a scripted model through the gateway, edit files, and wait most of
the time; then fifty of our own loop. Memory and CPU are of codetaste's process alone, without sandboxes,
agents and git. Every trial must succeed, and the settled costs must equal the model's bill. Then one trial at
a time, whose program only edits two files: each step's wall time, beside the same script run directly. ::

    python perf/agents.py [--engine bubblewrap] [--socket PATH] [--agents 50] [--files 200]
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from agents_setup import EDIT, EDITOR, OWN, PROGRAM, Setup, make_setup
from anyio import to_thread
from measure import Report, Spread, arguments, machine, ratio, versions
from repositories import git

from codetaste.errors import SandboxError
from codetaste.harness.patch.extract import extract_patch
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.sandbox.base import SandboxSpec
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.provider import open_sandboxes
from codetaste.source.tree.store import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.sandbox.base import SandboxProvider

WORKLOAD = Path(__file__).with_name("agents_workload.py")
MAX_MB = 300.0
STEPS = ("open", "put", "run", "stop", "extract", "close")
LOOPS = {PROGRAM: "command-line agents", OWN: "agents of our own loop"}
ENGINES = ("bubblewrap", "docker")
_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class RunUse:
    """Peak memory and CPU of codetaste's process in a run, and the run's wall time."""

    rss: int
    cpu_s: float
    wall_s: float


def run(
    setup: Setup, harness: str, engine: str, socket: Path | None, *, count: int, sandboxes: int
) -> RunUse:
    """Run a config of ``count`` trials, ``sandboxes`` at once; check that all succeed and the costs agree."""
    config = setup.config(harness, engine, socket, f"{WORKLOAD}:patient", count, sandboxes)
    folder = config.parent
    command = [sys.executable, str(WORKLOAD), str(config), str(folder / "figures.json")]
    began = time.perf_counter()
    with (folder / "out.json").open("wb") as out, (folder / "err").open("wb") as err:
        subprocess.run(
            command, cwd=folder, env=setup.environment, stdout=out, stderr=err, check=True, timeout=_TIMEOUT_S
        )
    wall_s = time.perf_counter() - began
    figures = json.loads((folder / "figures.json").read_text())
    assert figures["code"] == 0, (folder / "err").read_text()[-2000:]
    _check(folder / "runs" / "r", count)
    return RunUse(figures["rss"], figures["cpu_s"], wall_s)


def _check(out: Path, count: int) -> None:
    endings = [json.loads(path.read_text()) for path in out.glob("outputs/**/inference_metadata.json")]
    assert len(endings) == count, len(endings)
    assert {each["finish_reason"] for each in endings} == {"success"}, endings
    assert all(path.stat().st_size for path in out.glob("outputs/**/prediction.diff"))
    settled = _sum(out / "journal.jsonl", lambda line: line["usd"] if line["event"] == "settled" else 0)
    ledger = out / "models" / "m.ledger.jsonl"
    billed = _sum(ledger, lambda line: line["cost_usd"]) if ledger.exists() else Decimal(0)
    assert settled == billed, f"settled {settled}, billed {billed}"


def _sum(path: Path, usd: Any) -> Decimal:  # noqa: ANN401 - a function of a line
    lines = (json.loads(line) for line in path.read_text().splitlines())
    return sum((Decimal(usd(line)) for line in lines), Decimal(0))


def fleet(report: Report, setup: Setup, files: int, engine: str, chosen: Any) -> None:  # noqa: ANN401
    """Measure ``chosen.agents`` at once, of each loop."""
    for harness, name in LOOPS.items():
        title = f"{chosen.agents} {name}, {engine}, {files:,} files"
        uses = []
        for _ in range(chosen.rounds):
            uses.append(
                run(setup, harness, engine, chosen.socket, count=chosen.agents, sandboxes=chosen.agents)
            )
            use = uses[-1]
            print(f"  {title}: {use.cpu_s:.2f} s CPU, {use.wall_s:.1f} s wall", file=sys.stderr, flush=True)
        report.add(f"{title}: peak memory", [use.rss / 1e6 for use in uses], " MB", most=MAX_MB)
        report.add(f"{title}: CPU", [use.cpu_s for use in uses], " s")
        report.add(f"{title}: wall", [use.wall_s for use in uses], " s")


@contextlib.contextmanager
def step(times: dict[str, list[float]], name: str) -> Iterator[None]:
    """Time a step, in milliseconds."""
    began = time.perf_counter()
    yield
    times[name].append(1000 * (time.perf_counter() - began))


async def trial(provider: SandboxProvider, testbed: Testbed, times: dict[str, list[float]]) -> None:
    """Run the steps of a trial once, from opening the sandbox to closing it."""
    async with contextlib.AsyncExitStack() as stack:
        with step(times, "open"):
            sandbox = await stack.enter_async_context(provider.open(SandboxSpec("perf")))
        with step(times, "put"):
            await sandbox.put(testbed_archive(testbed, {"/task_description/description.md": b"Edit.\n"}))
        with step(times, "run"):
            done = await sandbox.run(["/bin/sh", "-ec", EDIT])
        assert done.exit_code == 0, done
        with step(times, "stop"):
            await sandbox.stop()
        with step(times, "extract"):
            extracted = await extract_patch(sandbox, testbed)
        assert extracted.files == 2, extracted
        assert not extracted.problem, extracted
        with step(times, "close"):
            await stack.aclose()


async def time_steps(setup: Setup, engine: str, socket: Path | None, count: int) -> dict[str, list[float]]:
    """Return the milliseconds of each step of ``count`` trials, one after the other."""
    times: dict[str, list[float]] = {name: [] for name in STEPS}
    config = SandboxConfig.model_validate({"engine": engine, "socket": socket})
    with tempfile.TemporaryDirectory(dir=setup.folder) as name:
        folder = Path(name)
        base = folder / "base"
        await to_thread.run_sync(lambda: shutil.copytree(setup.clone, base, ignore=lambda *_: {".git"}))
        testbed = await prepare_testbed(Tree(base, "made"), folder / "cache")
        async with open_sandboxes(config, folder, "perf", _log) as provider:
            await trial(provider, testbed, {name: [] for name in STEPS})
            for _ in range(count):
                await trial(provider, testbed, times)
    return times


def time_bare_script(setup: Setup, count: int) -> list[float]:
    """Return the milliseconds of the same script in the repository itself, without a sandbox."""
    times: dict[str, list[float]] = {"bare": []}
    for _ in range(count):
        with step(times, "bare"):
            subprocess.run(["/bin/sh", "-ec", EDIT], cwd=setup.clone, check=True)
    git(setup.clone, "checkout", "--quiet", ".")
    git(setup.clone, "clean", "--quiet", "-fd")
    return times["bare"]


def overhead(report: Report, setup: Setup, files: int, engine: str, chosen: Any) -> None:  # noqa: ANN401
    """Measure one trial at a time: its steps, all of it in a run, and the same script run directly."""
    count, title = chosen.trials, f"a trial, {engine}, {files:,} files"
    bare_ms = time_bare_script(setup, count)
    times = anyio.run(time_steps, setup, engine, chosen.socket, count)
    for name, each in times.items():
        report.add(f"{title}: {name}", each, " ms")
    whole = [sum(one) for one in zip(*times.values(), strict=True)]
    report.add(f"{title}: the same script run directly", bare_ms, " ms")
    overhead_ms = [steps - script for steps, script in zip(whole, bare_ms, strict=True)]
    report.add(f"{title}: overhead of all steps", overhead_ms, " ms")
    report.add(f"{title}: all steps / run directly", ratio(whole, bare_ms), " ×")
    # Both runs include start and end, so the difference is the time of the additional trials.
    run(setup, EDITOR, engine, chosen.socket, count=1, sandboxes=1)
    in_run = [
        1000 * (many.wall_s - one.wall_s) / count
        for one, many in (
            [run(setup, EDITOR, engine, chosen.socket, count=n, sandboxes=1) for n in (1, count + 1)]
            for _ in range(chosen.rounds)
        )
    ]
    report.add(f"{title}: whole trial in a run", in_run, " ms")
    steps_ms = Spread.of(whole).median
    report.add(f"{title}: journal, outputs and the rest", [each - steps_ms for each in in_run], " ms")


def _log(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _engines(chosen: Any) -> Sequence[str]:  # noqa: ANN401 - parsed arguments
    """Return the engines to measure: bubblewrap, and Docker if it is available with the image."""
    if chosen.engine:
        return chosen.engine

    async def probe() -> None:
        config = SandboxConfig.model_validate({"engine": "docker", "socket": chosen.socket})
        with tempfile.TemporaryDirectory() as name:
            async with open_sandboxes(config, Path(name), "perf", _log):
                pass

    try:
        anyio.run(probe)
    except SandboxError as error:
        _log(f"without containers: {error}")
        return ENGINES[:1]
    return ENGINES


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--engine", nargs="*", choices=ENGINES, help="default: all that are available")
    parser.add_argument("--socket", type=Path, help="socket of the container engine")
    parser.add_argument("--agents", type=int, default=50, help="at once (default 50)")
    parser.add_argument("--files", type=int, nargs="*", default=[200], help="sizes of the tree (default 200)")
    parser.add_argument("--trials", type=int, default=8, help="one after the other (default 8)")
    parser.add_argument("--part", choices=("fleet", "overhead"), help="default: both")
    chosen, about = parser.parse_args(), machine()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    report = Report("agents at work", {**about, **versions(sys.executable, "codetaste")})
    for engine in _engines(chosen):
        for files in chosen.files:
            with tempfile.TemporaryDirectory() as name:
                setup = make_setup(Path(name), files)
                if chosen.part != "overhead":
                    fleet(report, setup, files, engine, chosen)
                if chosen.part != "fleet":
                    overhead(report, setup, files, engine, chosen)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
