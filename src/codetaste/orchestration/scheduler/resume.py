"""Resuming jobs: the fingerprint that identifies a job, and the outcomes recorded by earlier sessions."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from codetaste.errors import Cause
from codetaste.orchestration.job import Outcome, Status
from codetaste.orchestration.journal.history import JobState
from codetaste.orchestration.journal.journal import encode
from codetaste.orchestration.scheduler.attempt import exhausted_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.budget.cost import BudgetLimits
    from codetaste.orchestration.journal.history import History
    from codetaste.orchestration.journal.journal import Json
    from codetaste.orchestration.journal.lines import EndedLine, LimitsRow
    from codetaste.orchestration.journal.recorder import RunRecorder
    from codetaste.orchestration.scheduler.scheduled_job import AttemptResult, ScheduledJob

_UNDER_WAY = frozenset({JobState.QUEUED, JobState.INTERRUPTED, JobState.CANCELLED})
_LIMIT_COLUMNS = {Status.BUDGET_EXCEEDED: (0, 1), Status.TIMEOUT: (2, 3)}
"""Columns of a row of limits that can end a job with the status."""


def effective_fingerprint(entry: ScheduledJob, needed: Sequence[ScheduledJob]) -> str:
    """Return a hash of the job's own fingerprint and the results of the jobs it needs."""
    if not needed:
        return entry.job.fingerprint
    text = encode([entry.job.fingerprint, [[need.job.key, need.digest] for need in needed]])
    return hashlib.sha256(text.encode()).hexdigest()


def outcome_digest(outcome: Outcome) -> str:
    """Return the hash of an outcome that goes into the fingerprints of the jobs that need it."""
    return hashlib.sha256(encode([outcome.status.value, outcome.value]).encode()).hexdigest()


def recorded_outcome(entry: ScheduledJob, history: History) -> Outcome | None:
    """Return the outcome that an earlier session recorded for exactly this job, if it is final.

    A job that a limit ended or cut is final if it has a value and that limit has not been raised. One that
    fell short because of the machine is not final.
    """
    job = history.job(entry.job.key)
    ending = job.recorded_ends.get(entry.fingerprint)
    if ending is None:
        return None
    outcome = Outcome(
        entry.job.key,
        Status(ending.status),
        ending.value,
        Cause(ending.cause) if ending.cause else None,
        ending.error,
        job.attempts,
        entry.budget.snapshot(),
        resumed=True,
        shortfall=ending.shortfall,
    )
    cut = any(entry.job.handler_limits.get(name, limit) > limit for name, limit in ending.reached.items())
    transient = ending.shortfall is not None and ending.shortfall.transient
    if cut or transient or not outcome.usable or _raised(outcome.status, ending.limits, entry.budget):
        return None
    return outcome


def discard_history(entry: ScheduledJob, record: RunRecorder) -> None:
    """Discard the recorded work of a job that has ended, so that it runs again.

    An interrupted job continues instead, so that its calls are not paid twice. A recorded result stays if no
    budget or time is left to produce it again.
    """
    key = entry.job.key
    earlier = record.history.jobs.get(key)
    if earlier is None or (earlier.state in _UNDER_WAY and not earlier.recorded_ends):
        return
    exhausted = exhausted_by(entry)
    if exhausted is None or not earlier.recorded_ends:
        record.note({"event": "rerun", "key": key})
        return
    text = exhausted.error.replace("not started", "not done again")
    record.note_text(key, text)


def chain_limits_to_json(budget: Budget) -> list[Json]:
    """Return the limits of the budget chain from the root, one row per node."""
    return [[*limits_to_json(node.limits)] for node in budget.chain]


def limits_to_json(limits: BudgetLimits) -> LimitsRow:
    """Return limits in the journal's form: dollars, tokens, wall seconds, working seconds."""
    usd = None if limits.usd is None else str(limits.usd)
    return usd, limits.tokens, limits.wall_s, limits.working_s


def end_record(entry: ScheduledJob, result: AttemptResult) -> EndedLine:
    """Return the journal line for the end of a job, which ``recorded_outcome`` uses in the next session."""
    line: EndedLine = {
        "event": "ended",
        "key": entry.job.key,
        "fingerprint": entry.fingerprint,
        "status": result.status.value,
    }
    if result.value is not None:
        line["value"] = result.value
    if result.cause is not None:
        line["cause"], line["error"] = result.cause.value, result.error
    if entry.job.inputs:
        line["inputs"] = dict(entry.job.inputs)
    if result.shortfall is not None:
        line["shortfall"] = result.shortfall.to_json()
    if result.traceback:
        line["traceback"] = result.traceback
    if result.status in _LIMIT_COLUMNS:
        line["limits"] = chain_limits_to_json(entry.budget)
    if result.limits_reached:
        limits = entry.job.handler_limits
        line["reached"] = {name: limits[name] for name in sorted(result.limits_reached)}
    return line


def make_outcome(entry: ScheduledJob, result: AttemptResult, history: History) -> Outcome:
    """Return the ``Outcome`` of a job that ended with ``result``."""
    return Outcome(
        entry.job.key,
        result.status,
        result.value,
        result.cause,
        result.error,
        history.job(entry.job.key).attempts,
        entry.budget.snapshot(),
        traceback=result.traceback,
        shortfall=result.shortfall,
    )


def _raised(status: Status, then: Json, budget: Budget) -> bool:
    """Whether a limit of the kind that ended the job is now higher, anywhere in the chain."""
    if status not in _LIMIT_COLUMNS:
        return False
    now = chain_limits_to_json(budget)
    if not isinstance(then, list) or len(then) != len(now):
        return True
    return any(
        _higher(new[kind], old[kind])
        for new, old in zip(now, then, strict=True)
        for kind in _LIMIT_COLUMNS[status]
        if isinstance(new, list) and isinstance(old, list)
    )


def _higher(new: Json, old: Json) -> bool:
    if old is None or new is None:
        return new is None and old is not None
    return float(str(new)) > float(str(old))
