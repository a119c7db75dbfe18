"""Planned trials of a run without an output folder, from its journal: failed, refused, or not ended yet.

A report that reads folders alone would drop them from every mean.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.core.text import printable
from codetaste.errors import Cause, JournalError
from codetaste.evaluation.trials.records import ProblemKind, TrialRecord, TrialSource, TrialStatus
from codetaste.evaluation.trials.untrusted_files import FileProblem
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import JOURNAL_FILE, check_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from codetaste.evaluation.trials.context import ReadContext
    from codetaste.orchestration.journal.history import JobHistory

_KEY = re.compile(
    r"infer/(?P<agent>.+)/(?P<track>instructed|open)/(?P<mode>direct|plan|multiplan)"
    r"/(?P<instance>[^/]+?)(?:/attempt-(?P<attempt>\d{1,6}))?/(?:plan|judge|execute)"
)
_EVENTS = ("session", "job", "started", "retry", "ended", "resumed", "rerun")
_STARTS = tuple(f'{{"event":"{event}"'.encode() for event in _EVENTS)
_Identity = tuple[str, str, str, str, int]
INTERRUPTED = "it was interrupted"
"""Start of ``why`` for a trial with only the partial outputs of an interrupted execution."""
_REFUSED = frozenset({Cause.REFUSED, Cause.BUDGET})
_LIVE = frozenset({"queued", "running", "retrying", "interrupted", "cancelled"})


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
    except (OSError, JournalError) as error:
        text = f"cannot be read: trials that left no folder are not counted ({printable(str(error))})"
        context.add_problem(JOURNAL_FILE, FileProblem(ProblemKind.UNREADABLE, text))
        return list(known), []
    trials: dict[_Identity, list[tuple[JobHistory, str]]] = {}
    for key in history.jobs:
        if found := _KEY.fullmatch(key):
            agent, track, mode, instance, attempt = found.groups()
            job = history.jobs[key], causes.get(key, "")
            trials.setdefault((agent, track, mode, instance, int(attempt or 1)), []).append(job)
    corrected = [_with_final_status(each, trials.get(_identity(each), [])) for each in known]
    known_identities = {_identity(each) for each in known}
    missing = [
        _completed(_record(identity, jobs, run, context), known, context)
        for identity, jobs in trials.items()
        if identity not in known_identities
    ]
    return corrected, missing


def _identity(record: TrialRecord) -> _Identity:
    return record.agent, record.track, record.mode, record.instance, record.attempt


def _with_final_status(record: TrialRecord, jobs: Sequence[tuple[JobHistory, str]]) -> TrialRecord:
    """Return an interrupted trial as failed if its jobs have ended."""
    if record.status is not TrialStatus.NOT_SCORED or not record.why.startswith(INTERRUPTED) or not jobs:
        return record
    status, why, _ = _outcome(jobs)
    return record if status is TrialStatus.NOT_SCORED else replace(record, status=status, why=why)


def _lines(path: Path, causes: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the journal lines on inference jobs; add the cause of each ended job to ``causes`` by its key."""
    with path.open("rb") as file:
        for raw in file:
            if not raw.startswith(_STARTS) or not raw.endswith(b"\n"):
                continue
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError) as error:
                raise JournalError("it has a damaged line") from error
            if line.get("event") == "session" or str(line.get("key", "")).startswith("infer/"):
                if line.get("cause"):
                    causes[line["key"]] = str(line["cause"])
                yield line


def _record(
    identity: _Identity,
    jobs: Sequence[tuple[JobHistory, str]],
    run: Path,
    context: ReadContext,
) -> TrialRecord:
    agent, track, mode, instance, attempt = identity
    status, why, reason = _outcome(jobs)
    return TrialRecord(
        run=context.run_name,
        source=TrialSource.CODETASTE,
        agent=agent,
        model="",
        harness="",
        track=track,
        mode=mode,
        instance=instance,
        repository=instance.rpartition("-")[0].replace("__", "/", 1),
        language="",
        category="",
        attempt=attempt,
        finish_reason=reason,
        status=status,
        why=why,
        folder=run,
    )


def _outcome(jobs: Sequence[tuple[JobHistory, str]]) -> tuple[TrialStatus, str, str]:
    """Return the status of a trial with these jobs, the reason in one line, and its finish reason."""
    for job, cause in jobs:
        if job.state in _LIVE:
            return TrialStatus.NOT_SCORED, f"it has not ended ({job.state})", ""
        if job.state in {"done", "skipped"}:
            continue
        why = printable(job.error, 300) or job.state
        refused = cause in _REFUSED and (cause == Cause.REFUSED or not job.attempts)
        reason = job.state if job.state in {"budget_exceeded", "timeout"} else "error"
        return (TrialStatus.REFUSED if refused else TrialStatus.FAILED), why, reason
    if any(job.state == "skipped" for job, _ in jobs):
        return TrialStatus.FAILED, "an earlier step gave no result", "error"
    return TrialStatus.NOT_SCORED, "its folder is missing", ""


def _completed(record: TrialRecord, known: Sequence[TrialRecord], context: ReadContext) -> TrialRecord:
    """Fill in fields that a job key does not contain, from other records and the benchmark."""
    for each in known:
        if each.agent == record.agent and each.model:
            record = replace(record, model=each.model, harness=each.harness)
            break
    for each in known:
        if each.instance == record.instance:
            record = replace(
                record, repository=each.repository, language=each.language, category=each.category
            )
            break
    for instance in context.benchmark.instances if context.benchmark is not None else ():
        if instance.id == record.instance:
            return replace(
                record,
                repository=f"{instance.owner}/{instance.repo}",
                language=instance.language,
                category=printable(instance.category),
            )
    return record
