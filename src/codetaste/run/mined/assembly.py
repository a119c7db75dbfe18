"""Carry mined candidates through all flows of a config; one that fails is replaced by the next.

Each round is a run of the config over the candidates that are left, in the same folder, with the same journal
and budget: what earlier rounds did is not done again.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread

from codetaste.benchmark.benchmark import Benchmark, open_benchmark
from codetaste.benchmark.layout import MINING_FOLDER
from codetaste.console.streams import notify
from codetaste.core.files import write_atomically
from codetaste.core.paths import cache_dir
from codetaste.errors import Cause, ConfigError
from codetaste.evaluation.validation import ValidationContext, recorded_pass, validate_instances
from codetaste.flows.discover.result import DiscoveryResult
from codetaste.flows.environment.publish import ENVIRONMENTS_FOLDER
from codetaste.orchestration.job import Status
from codetaste.orchestration.journal.results import result_from_json
from codetaste.run.config import MINED_BENCHMARK
from codetaste.run.execute import execute_run
from codetaste.run.mined.benchmark import write_mined_benchmark
from codetaste.run.mined.mining import mine, plan_mining
from codetaste.run.mined.texts import find_texts
from codetaste.run.plan import plan_config
from codetaste.run.services import open_scan_context

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from codetaste.flows.mine.candidates import MinedCandidate
    from codetaste.report.summary import Summary, SummaryLine
    from codetaste.run.limits import RuntimeLimits
    from codetaste.run.plan import RunOptions, RunPlan
    from codetaste.run.signals import StopRequest

DROPPED_FILE = "dropped.json"
"""In the folder of mining: the candidates that a later step dropped, and why."""
CHECK = "check"
"""The step that is no job: the rules of an instance have to tell the golden patch from an empty one."""
_FINAL = frozenset({Cause.MALFORMED, Cause.RULE})
"""Why a job fails because of its instance. What the machine or a provider is to blame for may end well in
another session, and so drops nothing."""
_STEPS = frozenset({"sources", "describe", "discover", "environment"})
"""What the keys of the jobs that make an instance begin with. A trial that fails says nothing about it."""


class DroppedCandidate(NamedTuple):
    """Why a candidate left the run, and at which step."""

    step: str
    reason: str


@dataclass(slots=True)
class Assembly:
    """What came of a run with ``[mine]``.

    Attributes:
        candidates: all of them, the best first.
        dropped: the candidates that left the run, by instance id.
        chosen: those that passed all steps so far.
        pending: ids of those of them that have no result of a step yet, by step.
        summary: of the last round; None if there was none.
    """

    candidates: list[MinedCandidate]
    dropped: dict[str, DroppedCandidate]
    chosen: list[MinedCandidate] = field(default_factory=list)
    pending: dict[str, set[str]] = field(default_factory=dict)
    summary: Summary | None = None

    @property
    def candidate_ids(self) -> frozenset[str]:
        """The instance ids of all candidates."""
        return frozenset(each.instance.id for each in self.candidates)


async def assemble(limits: RuntimeLimits, path: Path, options: RunOptions, stop: StopRequest) -> Assembly:
    """Mine candidates, and run the other flows of the config on as many as are wanted.

    Raises:
        ConfigError: the config cannot be used.
        JournalError: the run directory is in use, damaged, or full.
        ToolMissing: something that a flow needs is not installed.
        SandboxError: agents cannot be contained on this machine.
    """
    candidates, context = await mine(plan_mining(limits, path), options, stop)
    folder, root = limits.directory, limits.directory / MINED_BENCHMARK
    assembly = Assembly(candidates, await to_thread.run_sync(_read_dropped, folder))
    mining = limits.config.mine
    wanted = len(candidates) if mining is None or mining.instances is None else mining.instances
    share = None if mining is None else mining.test_share
    while not stop.reason:
        left = [each for each in candidates if each.instance.id not in assembly.dropped]
        assembly.chosen = left[:wanted]
        texts = await find_texts(root, assembly.chosen, context)
        await to_thread.run_sync(write_mined_benchmark, root, assembly.chosen, texts, share)
        if not assembly.chosen or not _has_flows(limits):
            break
        planned = plan_config(limits.config, path)
        assembly.summary = await execute_run(planned, options, stop)
        assembly.pending = _pending(assembly.summary.lines, assembly.chosen)
        if stop.reason:
            break
        lost = dict(_lost(assembly.summary.lines, assembly.chosen))
        done = {each.instance.id for each in assembly.chosen}.difference(lost, *assembly.pending.values())
        lost |= await _unsound(planned, done)
        if not lost:
            break
        for name, each in lost.items():
            notify(f"{name} leaves the run: {each.reason}")
        assembly.dropped |= lost
        await to_thread.run_sync(_write_dropped, folder, assembly.dropped)
    return assembly


def _has_flows(limits: RuntimeLimits) -> bool:
    config = limits.config
    return bool(config.describe or config.discover or config.environment or config.tracks)


def _step_lines(
    lines: Iterable[SummaryLine], chosen: Sequence[MinedCandidate]
) -> Iterator[tuple[str, str, SummaryLine]]:
    """Yield the lines of the steps of instances, each with the instance's id and the step's name."""
    names = {each.instance.id for each in chosen}
    for line in lines:
        step, *parts = line.outcome.key.split("/")
        name = next((part for part in parts if part in names), "")
        if name and step in _STEPS:
            yield name, step, line


def _lost(
    lines: Iterable[SummaryLine], chosen: Sequence[MinedCandidate]
) -> Iterator[tuple[str, DroppedCandidate]]:
    """Yield the instances that a step of this round failed at for good, and why."""
    for name, step, line in _step_lines(lines, chosen):
        outcome, reason = line.outcome, ""
        if outcome.status is Status.FAILED and outcome.cause in _FINAL:
            reason = outcome.error
        elif outcome.shortfall is not None and step == "environment":
            reason = "" if outcome.shortfall.transient else outcome.shortfall.text
        elif (
            step == "discover"
            and outcome.usable
            and not result_from_json(DiscoveryResult, outcome.value).rules
        ):
            reason = "no rule was found"
        if reason:
            yield name, DroppedCandidate(step, f"{line.title}: {reason}")


def _pending(lines: Iterable[SummaryLine], chosen: Sequence[MinedCandidate]) -> dict[str, set[str]]:
    """Return the instances that have no final result of a step, by step."""
    found: dict[str, set[str]] = {}
    for name, step, line in _step_lines(lines, chosen):
        shortfall = line.outcome.shortfall
        if not line.outcome.usable or (shortfall is not None and shortfall.transient):
            found.setdefault(step, set()).add(name)
    return found


async def _unsound(planned: RunPlan, names: Collection[str]) -> dict[str, DroppedCandidate]:
    """Return which of the instances ``names`` score the golden or an empty patch wrongly, and why.

    Tests count where an environment was proven: PASS is that of the test runs which this run has made.
    """
    config, found = planned.limits.config, dict[str, DroppedCandidate]()
    if config.mine is None or not config.mine.check or config.discover is None:
        return found
    cache = await to_thread.run_sync(cache_dir, notify)
    for model in dict.fromkeys(config.discover.models):
        root = planned.limits.directory / "discover" / model
        if not names or not await to_thread.run_sync(root.is_dir):
            continue
        benchmark = await to_thread.run_sync(open_benchmark, root)
        instances = [each for each in benchmark.instances if each.id in names]
        measured = None
        if config.environment is not None:
            environments = planned.limits.directory / ENVIRONMENTS_FOLDER
            measured = await to_thread.run_sync(recorded_pass, Benchmark(environments, ()), instances)
        scan = await open_scan_context(benchmark, planned.resolved.rules(), cache)
        with tempfile.TemporaryDirectory(prefix="codetaste-check-") as scratch:
            label = scan.engine.label
            context = ValidationContext(benchmark, scan.scanner, scan.cache, Path(scratch), label, measured)
            for each in await validate_instances(context, instances, lambda _result: None):
                if each.problems:
                    reason = f"check of the rules of {model}: {'; '.join(each.problems)}"
                    found[each.instance] = DroppedCandidate(CHECK, reason)
    return found


def _read_dropped(folder: Path) -> dict[str, DroppedCandidate]:
    path = folder / MINING_FOLDER / DROPPED_FILE
    try:
        data = json.loads(path.read_bytes())
        return {str(name): DroppedCandidate(str(x["step"]), str(x["reason"])) for name, x in data.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; remove it to try all candidates again") from None


def _write_dropped(folder: Path, dropped: Mapping[str, DroppedCandidate]) -> None:
    data = {name: each._asdict() for name, each in dropped.items()}
    text = json.dumps(data, indent=1, sort_keys=True) + "\n"
    write_atomically(folder / MINING_FOLDER / DROPPED_FILE, text.encode())
