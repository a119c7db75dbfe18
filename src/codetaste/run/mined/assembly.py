"""Carry mined candidates through all flows of a config; one that fails is replaced by the next.

Each round is a run of the config over the candidates that are left, in the same folder, with the same journal
and budget: what earlier rounds did is not done again.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.benchmark.layout import MINING_FOLDER
from codetaste.console.streams import notify
from codetaste.core.files import write_atomically
from codetaste.core.paths import cache_dir
from codetaste.errors import Cause, ConfigError
from codetaste.evaluation.validation import ValidationContext, validate_instances
from codetaste.flows.discover.result import DiscoveryResult
from codetaste.orchestration.job import Status
from codetaste.run.config import MINED_BENCHMARK
from codetaste.run.execute import execute_run
from codetaste.run.mined.benchmark import write_mined_benchmark
from codetaste.run.mined.mining import mine, plan_mining
from codetaste.run.plan import plan_config
from codetaste.run.services import open_scan_context

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from codetaste.flows.mine.candidates import MinedCandidate
    from codetaste.report.summary import Summary, SummaryLine
    from codetaste.run.limits import RuntimeLimits
    from codetaste.run.plan import RunOptions, RunPlan
    from codetaste.run.signals import StopRequest

DROPPED_FILE = "dropped.json"
"""In the folder of mining: the candidates that a later step dropped, and why."""
_FINAL = frozenset({Cause.MALFORMED, Cause.RULE})
"""Why a job fails because of its instance. What the machine or a provider is to blame for may end well in
another session, and so drops nothing."""
_STEPS = ("sources/", "describe/", "discover/", "environment/")
"""The jobs that make an instance. A trial that fails says nothing about it."""


@dataclass(slots=True)
class Assembly:
    """What came of a run with ``[mine]``.

    Attributes:
        candidates: all of them, the best first.
        dropped: why a candidate left the run, by instance id.
        chosen: those that passed all steps so far.
        summary: of the last round; None if there was none.
    """

    candidates: list[MinedCandidate]
    dropped: dict[str, str]
    chosen: list[MinedCandidate] = field(default_factory=list)
    summary: Summary | None = None


async def assemble(limits: RuntimeLimits, path: Path, options: RunOptions, stop: StopRequest) -> Assembly:
    """Mine candidates, and run the other flows of the config on as many as are wanted.

    Raises:
        ConfigError: the config cannot be used.
        JournalError: the run directory is in use, damaged, or full.
        ToolMissing: something that a flow needs is not installed.
        SandboxError: agents cannot be contained on this machine.
    """
    candidates = await mine(plan_mining(limits, path), options, stop)
    folder = limits.directory
    assembly = Assembly(candidates, await to_thread.run_sync(_read_dropped, folder))
    mining = limits.config.mine
    wanted = len(candidates) if mining is None or mining.instances is None else mining.instances
    share = None if mining is None else mining.test_share
    while not stop.reason:
        left = [each for each in candidates if each.instance.id not in assembly.dropped]
        assembly.chosen = left[:wanted]
        await to_thread.run_sync(write_mined_benchmark, folder / MINED_BENCHMARK, assembly.chosen, share)
        if not assembly.chosen or not _has_flows(limits):
            break
        planned = plan_config(limits.config, path)
        assembly.summary = await execute_run(planned, options, stop)
        if stop.reason:
            break
        lost = dict(_lost(assembly.summary.lines, assembly.chosen))
        left_ids = {each.instance.id for each in assembly.chosen}.difference(lost)
        lost |= await _unsound(planned, left_ids)
        if not lost:
            break
        for name, reason in lost.items():
            notify(f"{name} leaves the run: {reason}")
        assembly.dropped |= lost
        await to_thread.run_sync(_write_dropped, folder, assembly.dropped)
    return assembly


def _has_flows(limits: RuntimeLimits) -> bool:
    config = limits.config
    return bool(config.describe or config.discover or config.environment or config.tracks)


def _lost(lines: Iterable[SummaryLine], chosen: Sequence[MinedCandidate]) -> Iterable[tuple[str, str]]:
    """Yield the instances that a step of this round failed at for good, and why."""
    names = {each.instance.id for each in chosen}
    for line in lines:
        outcome = line.outcome
        name = next((part for part in outcome.key.split("/") if part in names), "")
        if not name or not outcome.key.startswith(_STEPS):
            continue
        if outcome.status is Status.FAILED and outcome.cause in _FINAL:
            yield name, f"{line.title}: {outcome.error}"
        elif outcome.shortfall is not None and outcome.key.startswith("environment/"):
            if outcome.shortfall.transient:
                continue
            yield name, f"{line.title}: {outcome.shortfall.text}"
        elif outcome.key.startswith("discover/") and outcome.usable:
            result = DiscoveryResult.from_json(outcome.value)
            if not result.rules:
                yield name, f"{line.title}: no rule was found"


async def _unsound(planned: RunPlan, names: Collection[str]) -> dict[str, str]:
    """Return which of the instances ``names`` score the golden or an empty patch wrongly, and why."""
    config, found = planned.limits.config, dict[str, str]()
    if config.mine is None or not config.mine.check or config.discover is None:
        return found
    cache = await to_thread.run_sync(cache_dir, notify)
    for model in dict.fromkeys(config.discover.models):
        root = planned.limits.directory / "discover" / model
        if not names or not await to_thread.run_sync(root.is_dir):
            continue
        benchmark = await to_thread.run_sync(open_benchmark, root)
        instances = [each for each in benchmark.instances if each.id in names]
        scan = await open_scan_context(benchmark, planned.resolved.rules(), cache)
        with tempfile.TemporaryDirectory(prefix="codetaste-check-") as scratch:
            context = ValidationContext(benchmark, scan.scanner, scan.cache, Path(scratch), scan.engine.label)
            for each in await validate_instances(context, instances, lambda _result: None):
                if each.problems:
                    found[each.instance] = f"check of the rules of {model}: {'; '.join(each.problems)}"
    return found


def _read_dropped(folder: Path) -> dict[str, str]:
    path = folder / MINING_FOLDER / DROPPED_FILE
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; remove it to try all candidates again") from None
    return {str(name): str(reason) for name, reason in data.items()}


def _write_dropped(folder: Path, dropped: Mapping[str, str]) -> None:
    text = json.dumps(dropped, indent=1, sort_keys=True) + "\n"
    write_atomically(folder / MINING_FOLDER / DROPPED_FILE, text.encode())
