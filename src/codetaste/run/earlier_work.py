"""What earlier sessions of a run did of its planned jobs, and which finished ones would be done again.

A job is done again if an input that decides its result has changed since: a config key, a prompt, the task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from codetaste.case_study.inputs import study_inputs
from codetaste.flows.describe.inputs import description_inputs
from codetaste.flows.discover.inputs import ENGINE_INPUT, pass_inputs
from codetaste.flows.environment.inputs import environment_inputs
from codetaste.flows.infer.inputs import step_inputs
from codetaste.flows.inputs import InputSource, digests_of_inputs
from codetaste.orchestration.journal.history import History, JobState
from codetaste.orchestration.journal.journal import read_lines, replay_line
from codetaste.report.dry_run import EarlierWork, WorkState
from codetaste.swe_refactor.java_image import java_sandbox
from codetaste.swe_refactor.trials.inputs import trial_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.orchestration.journal.history import JobHistory, RecordedEnd
    from codetaste.run.flow_plan import FlowPlan
    from codetaste.run.resolve import ResolvedConfig


@dataclass(frozen=True, slots=True)
class EarlierSessions:
    """What the earlier sessions of a run did.

    Attributes:
        work: what was done of each planned job that calls a model, by key.
        failed: the jobs that have a result, but ended by a fault or a mistake.
        engines: hashes of the rule engine's versions with which a pass has ended, by key.
    """

    work: Mapping[str, EarlierWork]
    failed: frozenset[str]
    engines: Mapping[str, frozenset[str]]

    def with_engine(self, version: str) -> dict[str, EarlierWork]:
        """Return the work as it is with this version of the rule engine."""
        (digest,) = digests_of_inputs({ENGINE_INPUT: version}).values()
        other = {key for key, engines in self.engines.items() if engines and digest not in engines}
        again = {
            key: replace(each, state=WorkState.AGAIN, changed=(*each.changed, ENGINE_INPUT))
            for key, each in self.work.items()
            if key in other and each.state in {WorkState.DONE, WorkState.CUT}
        }
        return {**self.work, **again}


def read_earlier_sessions(journal: Path, resolved: ResolvedConfig, plan: FlowPlan) -> EarlierSessions:
    """Read what the journal of a run says of its planned jobs.

    Raises:
        JournalError: the journal is damaged or has another format.
    """
    history = History()
    for _, line in read_lines(journal):
        replay_line(journal, line, history.apply)
    engines = {
        each.key: frozenset(
            end.inputs[ENGINE_INPUT]
            for end in history.jobs[each.key].recorded_ends.values()
            if ENGINE_INPUT in end.inputs
        )
        for each in plan.passes
        if each.key in history.jobs
    }
    failed = frozenset(key for key, job in history.jobs.items() if job.failed_with_result)
    return EarlierSessions(_find_work(resolved, plan, history), failed, engines)


def _find_work(resolved: ResolvedConfig, plan: FlowPlan, history: History) -> dict[str, EarlierWork]:
    spent_usd, work = history.spent_usd_by_job(), dict[str, EarlierWork]()
    for key, needs, inputs in _planned_inputs(resolved, plan):
        again = [need for need in needs if need in work and work[need].state is WorkState.AGAIN]
        state, changed = _state(history.jobs.get(key), inputs)
        if again and state in {WorkState.DONE, WorkState.CUT}:
            state, changed = WorkState.AGAIN, (*changed, *again)
        work[key] = EarlierWork(state, changed, spent_usd.get(key, Decimal(0)))
    return work


def _planned_inputs(
    resolved: ResolvedConfig, plan: FlowPlan
) -> Iterator[tuple[str, tuple[str, ...], Mapping[str, str]]]:
    """Yield key, needs and hashes of inputs of each job that calls a model, each after those it needs."""
    config = resolved.config
    source = InputSource(resolved.benchmark, resolved.prompts, resolved.model_fingerprints())
    for description in plan.descriptions:
        if config.describe is not None:
            inputs = description_inputs(description, source, config.describe)
            yield description.key, description.needs, digests_of_inputs(inputs)
    for each in plan.passes:
        if config.discover is not None:
            inputs = pass_inputs(each, source, config.discover, resolved.tools)
            yield each.key, each.needs, digests_of_inputs(inputs)
    for task in plan.environments:
        if config.environment is not None:
            inputs = environment_inputs(task, source, config.environment, resolved.adapters)
            yield task.key, (), digests_of_inputs(inputs)
    for step in plan.steps:
        inputs = step_inputs(step, source, config.sandbox, resolved.adapters)
        yield step.key, step.needs, digests_of_inputs(inputs)
    yield from _study_inputs(resolved, plan, source)
    if config.swe_refactor is not None:
        sandbox = java_sandbox(config.sandbox, config.swe_refactor.java)
        for trial in plan.strategy_trials:
            inputs = trial_inputs(trial, source, sandbox, resolved.adapters)
            yield trial.answer_key, (), digests_of_inputs(inputs)


def _study_inputs(
    resolved: ResolvedConfig, plan: FlowPlan, source: InputSource
) -> Iterator[tuple[str, tuple[str, ...], Mapping[str, str]]]:
    for study in plan.studies:
        inputs = study_inputs(study, source, resolved.config.sandbox, resolved.adapters)
        yield study.key, study.needs, digests_of_inputs(inputs)


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
    """Return the names of changed inputs but the engine; an end that has recorded none is unchanged."""
    if not end.inputs:
        return ()
    names = {*end.inputs, *inputs} - {ENGINE_INPUT}
    return tuple(sorted(name for name in names if end.inputs.get(name) != inputs.get(name)))
