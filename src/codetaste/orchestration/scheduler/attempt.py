"""Run one attempt at a job, and turn the way it ends into an ``AttemptResult``."""

from __future__ import annotations

import math
import traceback
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import Cause, CodetasteError, leaf_errors
from codetaste.orchestration.events import JobStarted
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json, json_copy
from codetaste.orchestration.retry import is_given_up
from codetaste.orchestration.scheduler.earmarks import missing_funds
from codetaste.orchestration.scheduler.scheduled_job import AttemptResult, ScheduledJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.orchestration.job import Handler, Job
    from codetaste.orchestration.journal.recorder import RunRecorder


def exhausted_by(entry: ScheduledJob) -> AttemptResult | None:
    """Return the result of a job whose time or money is used up before it starts; None if enough is left."""
    if entry.budget.clock.time_left_s() <= 0:
        return AttemptResult(Status.TIMEOUT, cause=Cause.DEADLINE, error="not started: no time is left")
    exhausted = "" if entry.job.costs_nothing else missing_funds(entry) or entry.budget.describe_exhausted()
    if exhausted:
        return AttemptResult(Status.BUDGET_EXCEEDED, cause=Cause.BUDGET, error=f"not started: {exhausted}")
    return None


async def run_attempt(
    entry: ScheduledJob, handler: Handler, needs: Mapping[str, Json], record: RunRecorder
) -> AttemptResult:
    """Run the job once. It is cancelled when it exceeds its deadline by the clean-up grace."""
    key = entry.job.key
    number = record.history.job(key).attempts + 1
    record.note({"event": "started", "key": key, "attempt": number})
    record.publish(JobStarted(key, number, entry.budget.clock.time_left_s))
    context = JobContext(
        key=key,
        attempt=number,
        fingerprint=entry.fingerprint,
        budget=entry.budget,
        needs=needs,
        record=record,
    )
    result = AttemptResult.cancelled("stopped while running")
    with entry.cancel_scope, entry.budget.deadline(grace_s=record.grace.seconds) as deadline:
        result = await _run(handler, entry.job, context)
    stopped = result.status in {Status.FAILED, Status.CANCELLED}
    if stopped and entry.cancel_scope.cancel_called:
        return AttemptResult.cancelled(result.error)
    if stopped and deadline.cancel_called:
        return AttemptResult(Status.TIMEOUT, cause=Cause.DEADLINE, error="stopped: time limit exceeded")
    return result


async def _run(handler: Handler, job: Job, context: JobContext) -> AttemptResult:
    try:
        value = json_copy(await handler(job, context))
    except anyio.get_cancelled_exc_class() as error:
        if anyio.current_effective_deadline() == -math.inf:
            raise
        # The job itself was not cancelled: the exception escaped from a scope cancelled inside it.
        return _fault(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # one failing job must not stop the others
        return _result_of_error(error)
    early = context.early_end
    if early is None:
        reached = frozenset(context.limits_reached)
        return AttemptResult(Status.DONE, value, limits_reached=reached, shortfall=context.shortfall)
    return AttemptResult(_status(early), value, early.cause, _one_line(early))


def _result_of_error(error: BaseException) -> AttemptResult:
    """Classify by the first unexpected exception in ``error``, else by its first exception."""
    leaves = list(leaf_errors(error))
    faults = [leaf for leaf in leaves if not isinstance(leaf, CodetasteError)]
    if faults:
        return _fault(error, shown=faults[0])
    first = leaves[0]
    cause = first.cause if isinstance(first, CodetasteError) else Cause.FAULT
    retry_after_s = getattr(first, "retry_after_s", None)
    # That of a model's script.
    script_error = first.__cause__ if cause is Cause.SETUP else None
    trace = "".join(traceback.format_exception(script_error)) if script_error else ""
    return AttemptResult(
        _status(first), None, cause, _one_line(first), trace, retry_after_s, final=is_given_up(first)
    )


def _fault(error: BaseException, *, shown: BaseException | None = None) -> AttemptResult:
    shown = shown or error
    text = f"{type(shown).__name__}: {_one_line(shown)}"
    trace = "".join(traceback.format_exception(error))
    return AttemptResult(Status.FAILED, None, Cause.FAULT, text, traceback=trace, final=True)


def _status(error: BaseException) -> Status:
    cause = getattr(error, "cause", None)
    return {Cause.BUDGET: Status.BUDGET_EXCEEDED, Cause.DEADLINE: Status.TIMEOUT}.get(
        cause or Cause.FAULT, Status.FAILED
    )


def _one_line(error: BaseException) -> str:
    return "; ".join(str(error).split("\n"))
