"""Run one attempt at a job, and turn the way it ends into an ``AttemptResult``."""

from __future__ import annotations

import math
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import Cause, CodetasteError
from codetaste.orchestration.events import JobStarted
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal import Json, plain
from codetaste.orchestration.means import lacking
from codetaste.orchestration.retry import given_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.job import Job, Outcome
    from codetaste.orchestration.record import Record


@dataclass(slots=True, eq=False)
class Entry:
    """A job of this session and its progress. ``budget`` is the job's own node."""

    job: Job
    budget: Budget
    resources: Mapping[str, float]
    needs_left: int = 0
    dependents: list[Entry] = field(default_factory=list)
    fingerprint: str = ""
    failures: int = 0
    stop: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    waits_since: float = 0.0
    outcome: Outcome | None = None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an attempt ended; the scheduler decides afterwards whether to retry."""

    status: Status
    value: Json = None
    cause: Cause | None = None
    error: str = ""
    traceback: str = ""
    retry_after_s: float | None = None
    final: bool = False


def not_carried(entry: Entry, record: Record) -> Verdict | None:
    """Return the result of a job that its budget can never pay for; None when it may start.

    A job with recorded progress may always continue: replaying costs nothing, and it can still return a
    partial result.
    """
    return None if begun(entry, record) else no_means(entry)


def begun(entry: Entry, record: Record) -> bool:
    """Whether the journal holds progress that the job can continue from."""
    return record.history.begun(entry.job.key, entry.fingerprint)


def no_means(entry: Entry) -> Verdict | None:
    """Return the result of a job whose time or money is used up before it starts; None if enough is left."""
    if entry.budget.clock.time_left_s() <= 0:
        return Verdict(Status.TIMEOUT, cause=Cause.DEADLINE, error="not started: no time is left")
    exhausted = "" if entry.job.free else lacking(entry) or entry.budget.exhausted()
    if exhausted:
        return Verdict(Status.BUDGET_EXCEEDED, cause=Cause.BUDGET, error=f"not started: {exhausted}")
    return None


async def attempt(entry: Entry, needs: Mapping[str, Json], record: Record) -> Verdict:
    """Run the job once. It is cancelled when it exceeds its deadline by the clean-up grace."""
    key = entry.job.key
    number = record.history.job(key).attempts + 1
    record.note({"event": "started", "key": key, "attempt": number})
    record.publish(JobStarted(key, number))
    context = JobContext(
        key=key,
        attempt=number,
        fingerprint=entry.fingerprint,
        budget=entry.budget,
        needs=needs,
        record=record,
    )
    verdict = Verdict(Status.CANCELLED, cause=Cause.CANCELLED, error="cancelled")
    with entry.stop, entry.budget.deadline(grace_s=record.grace.seconds) as deadline:
        verdict = await _run(entry.job, context)
    stopped = verdict.status in {Status.FAILED, Status.CANCELLED}
    if stopped and entry.stop.cancel_called:
        return Verdict(Status.CANCELLED, cause=Cause.CANCELLED, error=verdict.error)
    if stopped and deadline.cancel_called:
        return Verdict(Status.TIMEOUT, cause=Cause.DEADLINE, error="stopped: time limit exceeded")
    return verdict


async def _run(job: Job, context: JobContext) -> Verdict:
    try:
        value = plain(await job.run(context))
    except anyio.get_cancelled_exc_class() as error:
        if anyio.current_effective_deadline() == -math.inf:
            raise
        # The job itself was not cancelled: the exception escaped from a scope cancelled inside it.
        return _fault(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # one failing job must not stop the others
        return _result_of_error(error)
    early = context.ended_early
    if early is None:
        return Verdict(Status.DONE, value)
    return Verdict(_status(early), value, early.cause, _one_line(early))


def _result_of_error(error: BaseException) -> Verdict:
    """Classify by the first unexpected exception in ``error``, else by its first exception."""
    leaves = list(_leaves(error))
    faults = [leaf for leaf in leaves if not isinstance(leaf, CodetasteError)]
    if faults:
        return _fault(error, shown=faults[0])
    first = leaves[0]
    cause = first.cause if isinstance(first, CodetasteError) else Cause.FAULT
    retry_after_s = getattr(first, "retry_after_s", None)
    return Verdict(
        _status(first), None, cause, _one_line(first), retry_after_s=retry_after_s, final=given_up(first)
    )


def _fault(error: BaseException, *, shown: BaseException | None = None) -> Verdict:
    shown = shown or error
    text = f"{type(shown).__name__}: {_one_line(shown)}"
    trace = "".join(traceback.format_exception(error))
    return Verdict(Status.FAILED, None, Cause.FAULT, text, traceback=trace, final=True)


def _status(error: BaseException) -> Status:
    cause = getattr(error, "cause", None)
    return {Cause.BUDGET: Status.BUDGET_EXCEEDED, Cause.DEADLINE: Status.TIMEOUT}.get(
        cause or Cause.FAULT, Status.FAILED
    )


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error


def _one_line(error: BaseException) -> str:
    return "; ".join(str(error).split("\n"))
