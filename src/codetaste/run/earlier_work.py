"""What earlier sessions of a run did of its planned jobs, and which finished ones would be done again.

A job is done again if an input that decides its result has changed since: a config key, a prompt, the task.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from codetaste.flows.discover.inputs import pass_inputs
from codetaste.flows.infer.inputs import step_inputs
from codetaste.flows.inputs import InputSource, digests_of_inputs
from codetaste.orchestration.journal.history import History, JobState
from codetaste.orchestration.journal.journal import read_lines, replay_line
from codetaste.report.dry_run import EarlierWork, WorkState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.orchestration.journal.history import JobHistory, RecordedEnd
    from codetaste.run.flow_plan import FlowPlan
    from codetaste.run.resolve import ResolvedConfig

ENGINE_INPUT = "rules.opengrep"
"""The input of discovery passes that is known only once the rule engine is found."""


def read_history(journal: Path) -> History:
    """Return the state of a run after its earlier sessions.

    Raises:
        JournalError: the journal is damaged or has another format.
    """
    history = History()
    for _, line in read_lines(journal):
        replay_line(journal, line, history.apply)
    return history


def find_earlier_work(
    resolved: ResolvedConfig, plan: FlowPlan, history: History, engine_version: str = ""
) -> dict[str, EarlierWork]:
    """Return what was done of each planned job that calls a model, by key.

    Without ``engine_version`` a change of the rule engine is not noticed.
    """
    settled, unknown = history.charges(lambda call: call.key)
    work: dict[str, EarlierWork] = {}
    for key, needs, inputs in _planned_inputs(resolved, plan, engine_version):
        usd = sum((costs[key].usd for costs in (settled, unknown) if key in costs), Decimal(0))
        again = [need for need in needs if need in work and work[need].state is WorkState.AGAIN]
        state, changed = _state(history.jobs.get(key), inputs)
        if again and state in {WorkState.DONE, WorkState.CUT}:
            state, changed = WorkState.AGAIN, (*changed, *again)
        work[key] = EarlierWork(state, changed, usd)
    return work


def _planned_inputs(
    resolved: ResolvedConfig, plan: FlowPlan, engine_version: str
) -> Iterator[tuple[str, tuple[str, ...], Mapping[str, str]]]:
    """Yield key, needs and hashes of inputs of each job that calls a model, each after those it needs."""
    config = resolved.config
    source = InputSource(resolved.benchmark, resolved.prompts, resolved.model_fingerprints())
    engine = {ENGINE_INPUT: engine_version} if engine_version else {}
    for each in plan.passes:
        if config.discover is not None:
            inputs = {**pass_inputs(each, source, config.discover, resolved.tools), **engine}
            yield each.key, (), digests_of_inputs(inputs)
    for step in plan.steps:
        inputs = dict(step_inputs(step, source, config.sandbox, resolved.adapters))
        yield step.key, step.needs, digests_of_inputs(inputs)


def _state(job: JobHistory | None, inputs: Mapping[str, str]) -> tuple[WorkState, tuple[str, ...]]:
    """Return what was done of a job, and the inputs that have changed since it ended."""
    if job is None or not (job.recorded_ends or job.effects):
        return WorkState.NEW, ()
    ends = [end for end in job.recorded_ends.values() if end.status is JobState.DONE or end.value is not None]
    if not ends:
        return WorkState.STARTED, ()
    # An earlier end with the same inputs counts, too: its result is used again.
    changed, end = min(((_changed(each, inputs), each) for each in reversed(ends)), key=lambda it: len(it[0]))
    if changed:
        return WorkState.AGAIN, changed
    by_limit = end.status is not JobState.DONE or (end.shortfall is not None and end.shortfall.by_limit)
    return (WorkState.CUT if by_limit else WorkState.DONE), ()


def _changed(end: RecordedEnd, inputs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of changed inputs; an end that has recorded none is taken as unchanged."""
    if not end.inputs:
        return ()
    names = {*end.inputs, *inputs} - ({ENGINE_INPUT} if ENGINE_INPUT not in inputs else set())
    return tuple(sorted(name for name in names if end.inputs.get(name) != inputs.get(name)))
