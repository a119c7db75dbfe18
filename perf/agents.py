"""What agents at work cost us: fifty at once in one process, and a trial's overhead over its bare command.

Fifty command-line agents, in boxes, ask a scripted model through the gateway, edit files, and wait most of
the time; then fifty of our own loop. Memory and CPU are of codetaste's process alone: boxes, agents and git
are left out. Every trial must succeed, and all that was settled be what the model billed. Then one trial at
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
from agents_stage import MUTE, MUTE_EDIT, OWN, PROGRAM, Stage, make_stage
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
MOST_MB = 300.0
STEPS = ("open", "put", "run", "stop", "harvest", "close")
LOOPS = {PROGRAM: "command-line agents", OWN: "agents of our own loop"}
ENGINES = ("bubblewrap", "docker")
_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of a config used, in codetaste's own process, and how long it took."""

    rss: int
    cpu_s: float
    wall_s: float


def run(stage: Stage, harness: str, engine: str, socket: Path | None, *, count: int, slots: int) -> Ran:
    """Run a config of ``count`` trials, ``slots`` at once; all must succeed, and the money must agree."""
    config = stage.config(harness, engine, socket, f"{WORKLOAD}:patient", count, slots)
    place = config.parent
    command = [sys.executable, str(WORKLOAD), str(config), str(place / "told.json")]
    began = time.perf_counter()
    with (place / "out.json").open("wb") as out, (place / "err").open("wb") as err:
        subprocess.run(
            command, cwd=place, env=stage.environment, stdout=out, stderr=err, check=True, timeout=_TIMEOUT_S
        )
    wall_s = time.perf_counter() - began
    told = json.loads((place / "told.json").read_text())
    assert told["code"] == 0, (place / "err").read_text()[-2000:]
    _check(place / "runs" / "r", count)
    return Ran(told["rss"], told["cpu_s"], wall_s)


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


def fleet(report: Report, stage: Stage, files: int, engine: str, chosen: Any) -> None:  # noqa: ANN401
    """Measure ``chosen.agents`` at once, of each loop."""
    for harness, name in LOOPS.items():
        title = f"{chosen.agents} {name}, {engine}, {files:,} files"
        rans = []
        for _ in range(chosen.rounds):
            rans.append(run(stage, harness, engine, chosen.socket, count=chosen.agents, slots=chosen.agents))
            said = rans[-1]
            print(f"  {title}: {said.cpu_s:.2f} s CPU, {said.wall_s:.1f} s wall", file=sys.stderr, flush=True)
        report.add(f"{title}: peak memory", [ran.rss / 1e6 for ran in rans], " MB", most=MOST_MB)
        report.add(f"{title}: CPU", [ran.cpu_s for ran in rans], " s")
        report.add(f"{title}: wall", [ran.wall_s for ran in rans], " s")


@contextlib.contextmanager
def step(times: dict[str, list[float]], name: str) -> Iterator[None]:
    """Time a step, in milliseconds."""
    began = time.perf_counter()
    yield
    times[name].append(1000 * (time.perf_counter() - began))


async def trial(boxes: SandboxProvider, testbed: Testbed, times: dict[str, list[float]]) -> None:
    """Go once from nothing to the patch, as a trial does."""
    async with contextlib.AsyncExitStack() as held:
        with step(times, "open"):
            box = await held.enter_async_context(boxes.open(SandboxSpec("perf")))
        with step(times, "put"):
            await box.put(testbed_archive(testbed, {"/task_description/description.md": b"Edit.\n"}))
        with step(times, "run"):
            done = await box.run(["/bin/sh", "-ec", MUTE_EDIT])
        assert done.exit_code == 0, done
        with step(times, "stop"):
            await box.stop()
        with step(times, "harvest"):
            taken = await extract_patch(box, testbed)
        assert taken.files == 2, taken
        assert not taken.problem, taken
        with step(times, "close"):
            await held.aclose()


async def split(stage: Stage, engine: str, socket: Path | None, count: int) -> dict[str, list[float]]:
    """Return how long each step took, ``count`` times, one trial after the other."""
    times: dict[str, list[float]] = {name: [] for name in STEPS}
    config = SandboxConfig.model_validate({"engine": engine, "socket": socket})
    with tempfile.TemporaryDirectory(dir=stage.folder) as name:
        here = Path(name)
        base = here / "base"
        await to_thread.run_sync(lambda: shutil.copytree(stage.clone, base, ignore=lambda *_: {".git"}))
        testbed = await prepare_testbed(Tree(base, "made"), here / "cache")
        async with open_sandboxes(config, here, "perf", _say) as boxes:
            await trial(boxes, testbed, {name: [] for name in STEPS})
            for _ in range(count):
                await trial(boxes, testbed, times)
    return times


def bare(stage: Stage, count: int) -> list[float]:
    """Return how long the same script takes in the repository itself, in milliseconds."""
    times: dict[str, list[float]] = {"bare": []}
    for _ in range(count):
        with step(times, "bare"):
            subprocess.run(["/bin/sh", "-ec", MUTE_EDIT], cwd=stage.clone, check=True)
    git(stage.clone, "checkout", "--quiet", ".")
    git(stage.clone, "clean", "--quiet", "-fd")
    return times["bare"]


def overhead(report: Report, stage: Stage, files: int, engine: str, chosen: Any) -> None:  # noqa: ANN401
    """Measure one trial at a time: its steps, all of it in a run, and the same script run directly."""
    count, title = chosen.trials, f"a trial, {engine}, {files:,} files"
    alone = bare(stage, count)
    times = anyio.run(split, stage, engine, chosen.socket, count)
    for name, each in times.items():
        report.add(f"{title}: {name}", each, " ms")
    whole = [sum(one) for one in zip(*times.values(), strict=True)]
    report.add(f"{title}: the same script run directly", alone, " ms")
    over = [all_of_it - one for all_of_it, one in zip(whole, alone, strict=True)]
    report.add(f"{title}: overhead of all steps", over, " ms")
    report.add(f"{title}: all steps / run directly", ratio(whole, alone), " ×")
    # A run's start and end are in both, so that the difference is that of its further trials.
    run(stage, MUTE, engine, chosen.socket, count=1, slots=1)
    in_run = [
        1000 * (many.wall_s - one.wall_s) / count
        for one, many in (
            [run(stage, MUTE, engine, chosen.socket, count=n, slots=1) for n in (1, count + 1)]
            for _ in range(chosen.rounds)
        )
    ]
    report.add(f"{title}: all of it in a run", in_run, " ms")
    steps_ms = Spread.of(whole).median
    report.add(f"{title}: journal, products and the rest", [each - steps_ms for each in in_run], " ms")


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def _engines(chosen: Any) -> Sequence[str]:  # noqa: ANN401 - parsed arguments
    """Return the engines to measure: bubblewrap, and Docker where it is there with the image."""
    if chosen.engine:
        return chosen.engine

    async def there() -> None:
        config = SandboxConfig.model_validate({"engine": "docker", "socket": chosen.socket})
        with tempfile.TemporaryDirectory() as name:
            async with open_sandboxes(config, Path(name), "perf", _say):
                pass

    try:
        anyio.run(there)
    except SandboxError as error:
        _say(f"without containers: {error}")
        return ENGINES[:1]
    return ENGINES


def main() -> int:
    parser = arguments(__doc__, 3)
    parser.add_argument("--engine", nargs="*", choices=ENGINES, help="default: all that are here")
    parser.add_argument("--socket", type=Path, help="where the container engine listens")
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
                stage = make_stage(Path(name), files)
                if chosen.part != "overhead":
                    fleet(report, stage, files, engine, chosen)
                if chosen.part != "fleet":
                    overhead(report, stage, files, engine, chosen)
    return report.end(as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
