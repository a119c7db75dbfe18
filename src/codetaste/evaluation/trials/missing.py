"""Planned trials of a run without an output folder, from its journal: failed, refused, or not ended yet.

A report that reads folders alone would drop them from every mean.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import FinishReason
from codetaste.benchmark.trial_identity import trial_of_step
from codetaste.core.text import printable
from codetaste.errors import Cause, JournalError
from codetaste.evaluation.trials.records import (
    ProblemKind,
    TrialMetadata,
    TrialRecord,
    TrialScores,
    TrialSource,
    TrialStatus,
)
from codetaste.orchestration.journal.history import LIVE_STATES, History, JobState
from codetaste.orchestration.journal.journal import JOURNAL_FILE, check_format, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from codetaste.benchmark.trial_identity import TrialIdentity
    from codetaste.evaluation.trials.context import ReadContext
    from codetaste.orchestration.journal.history import JobHistory

_EVENTS = frozenset({"job", "started", "retry", "ended", "resumed", "rerun"})
_INFRASTRUCTURE = frozenset(cause for cause in Cause if cause.is_infrastructure)
_NOT_ENDED = LIVE_STATES | {JobState.INTERRUPTED, JobState.CANCELLED}
_FINISH_REASONS = {
    JobState.BUDGET_EXCEEDED: FinishReason.BUDGET_EXCEEDED,
    JobState.TIMEOUT: FinishReason.TIMEOUT,
}
_Jobs = list[tuple["JobHistory", str]]
"""The jobs of a trial, each with the cause of its end, "" for none."""


def reconcile_with_journal(
    run: Path, known: Sequence[TrialRecord], context: ReadContext
) -> tuple[list[TrialRecord], list[TrialRecord]]:
    """Return ``known`` corrected by the journal of ``run``, and records of the planned trials missing there.

    An interrupted trial may still continue; where the journal shows that it ended, its status becomes final.

    Raises:
        JournalError: the journal has another format.
    """
    path = run / JOURNAL_FILE
    if not path.is_file():
        return list(known), []
    causes: dict[str, str] = {}
    check_format(path)
    try:
        history = History(_lines(path, causes))
    except JournalError as error:
        text = f"cannot be read: trials that left no folder are not counted ({printable(str(error))})"
        context.add_problem(JOURNAL_FILE, ProblemKind.UNREADABLE, text)
        return list(known), []
    trials: dict[TrialIdentity, _Jobs] = {}
    for key, job in history.jobs.items():
        if identity := trial_of_step(key):
            trials.setdefault(identity, []).append((job, causes.get(key, "")))
    corrected = []
    for record in known:
        jobs = trials.pop(record.identity, [])
        before = record.scores.status
        if jobs and (
            record.metadata.interruption or before in {TrialStatus.FAILED, TrialStatus.INFRASTRUCTURE}
        ):
            status, why, _ = _outcome(jobs)
            if status not in {before, TrialStatus.NOT_SCORED}:
                record = replace(record, scores=replace(record.scores, status=status, reason=why))  # noqa: PLW2901
        corrected.append(record)
    return corrected, [_record(identity, jobs, run, known, context) for identity, jobs in trials.items()]


def _lines(path: Path, causes: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the journal lines on steps of trials; add the cause of each end to ``causes`` by job key."""
    for _, line in read_lines(path):
        if line["event"] == "session":
            yield line
        elif line["event"] in _EVENTS and trial_of_step(key := str(line.get("key", ""))):
            if line.get("cause"):
                causes[key] = str(line["cause"])
            yield line


def _record(
    identity: TrialIdentity, jobs: _Jobs, run: Path, known: Sequence[TrialRecord], context: ReadContext
) -> TrialRecord:
    """Return the record of a trial; what its job keys do not contain is from the benchmark or ``known``."""
    agent, track, mode, instance, attempt = identity
    status, why, finish_reason = _outcome(jobs)
    repository, language, category = instance.rpartition("-")[0].replace("__", "/", 1), "", ""
    same_agent = next((each.metadata for each in known if each.agent == agent and each.metadata.model), None)
    same_instance = next((each for each in known if each.instance == instance), None)
    if same_instance is not None:
        repository, language = same_instance.repository, same_instance.language
        category = same_instance.category
    for listed in context.benchmark.instances if context.benchmark is not None else ():
        if listed.id == instance:
            repository, language = f"{listed.owner}/{listed.repo}", listed.language
            category = printable(listed.category)
            break
    return TrialRecord(
        run=context.run_name,
        agent=agent,
        track=track,
        mode=mode,
        instance=instance,
        repository=repository,
        language=language,
        category=category,
        attempt=attempt,
        folder=run,
        metadata=TrialMetadata(
            model=same_agent.model if same_agent else "",
            harness=same_agent.harness if same_agent else "",
            source=TrialSource.CODETASTE,
            finish_reason=finish_reason or "",
        ),
        scores=TrialScores(status, why),
    )


def _outcome(jobs: _Jobs) -> tuple[TrialStatus, str, FinishReason | None]:
    """Return the status of a trial with these jobs, the reason in one line, and its finish reason."""
    for job, cause in jobs:
        if job.state in _NOT_ENDED:
            return TrialStatus.NOT_SCORED, f"it has not ended ({job.state})", None
        if job.state in {JobState.DONE, JobState.SKIPPED}:
            continue
        status = TrialStatus.FAILED
        if cause == Cause.REFUSED or (cause == Cause.BUDGET and not job.attempts):
            status = TrialStatus.REFUSED
        elif cause in _INFRASTRUCTURE:
            status = TrialStatus.INFRASTRUCTURE
        why = printable(job.error, 300) or job.state
        return status, why, _FINISH_REASONS.get(job.state, FinishReason.ERROR)
    if any(job.state is JobState.SKIPPED for job, _ in jobs):
        return TrialStatus.FAILED, "an earlier step gave no result", FinishReason.ERROR
    return TrialStatus.NOT_SCORED, "its folder is missing", None
