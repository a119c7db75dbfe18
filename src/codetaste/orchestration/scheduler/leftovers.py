"""What a job leaves of its own limits goes to the job that its ``leaves_to`` names.

So two jobs can begin with a part each of a shared budget, and still use all of it. A job that its own limits
end, while a job that may leave it something is running, is suspended. It continues when it gets more of what
it lacked, and ends when it can get no more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from codetaste.orchestration.job import Status
from codetaste.orchestration.wait import Wait, WaitReason

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.orchestration.budget.cost import BudgetLimits
    from codetaste.orchestration.journal.recorder import RunRecorder
    from codetaste.orchestration.scheduler.scheduled_job import AttemptResult, ScheduledJob

_LACKED = {Status.BUDGET_EXCEEDED: ("usd", "tokens"), Status.TIMEOUT: ("wall_s", "working_s")}


class Leftovers:
    """The jobs of a session that leave something to each other, and those that are suspended."""

    def __init__(self, record: RunRecorder) -> None:
        self._record = record
        self._receivers: dict[ScheduledJob, ScheduledJob] = {}
        self._givers: dict[ScheduledJob, list[ScheduledJob]] = {}
        self._suspended: dict[ScheduledJob, tuple[AttemptResult, float]] = {}
        self._final: set[ScheduledJob] = set()

    def connect(self, giver: ScheduledJob, receiver: ScheduledJob) -> None:
        """Let what ``giver`` leaves go to ``receiver``."""
        self._receivers[giver] = receiver
        self._givers.setdefault(receiver, []).append(giver)

    def suspend(self, entry: ScheduledJob, result: AttemptResult) -> bool:
        """Suspend a job that ``result`` would end, if another job may still leave it something."""
        if entry in self._suspended:
            return True
        may_get_more = entry not in self._final and any(
            giver.outcome is None for giver in self._givers.get(entry, ())
        )
        if not (may_get_more and result.status.by_limit):
            return False
        entry.cancel_scope = anyio.CancelScope()
        self._suspended[entry] = (result, anyio.current_time())
        self._record.start_wait(entry.job.key, self._wait(entry))
        return True

    def pass_on(self, giver: ScheduledJob) -> ScheduledJob | None:
        """Move the rest of ``giver``'s own limits; return the job that can continue with it, if it waited.

        A suspended job keeps what it lacks: else two jobs could hand the same rest to each other for ever.
        """
        receiver = self._receivers.get(giver)
        if receiver is None or receiver.outcome is not None:
            return None
        lacking = _LACKED[self._suspended[giver][0].status] if giver in self._suspended else ()
        moved = _move_rest(giver, receiver, lacking)
        if receiver not in self._suspended:
            return None
        result, _ = self._suspended[receiver]
        if not moved.intersection(_LACKED[result.status]):
            return None
        self._take(receiver)
        return receiver

    def take_hopeless(self) -> tuple[ScheduledJob, AttemptResult] | None:
        """Take a suspended job to which no running job can leave anything, with its result; None if none."""
        for entry in self._suspended:
            if all(giver.outcome is not None or giver in self._suspended for giver in self._givers[entry]):
                self._final.add(entry)
                return entry, self._take(entry)
        return None

    def clear(self) -> list[ScheduledJob]:
        """Take and return all suspended jobs."""
        suspended = list(self._suspended)
        for entry in suspended:
            self._take(entry)
        return suspended

    def _take(self, entry: ScheduledJob) -> AttemptResult:
        result, since_s = self._suspended.pop(entry)
        self._record.end_wait(entry.job.key, self._wait(entry), anyio.current_time() - since_s)
        return result

    def _wait(self, entry: ScheduledJob) -> Wait:
        return Wait(WaitReason.LEFTOVER, self._givers[entry][0].job.key)


def _move_rest(giver: ScheduledJob, receiver: ScheduledJob, lacking: Collection[str]) -> set[str]:
    """Move the rest of each limit that both jobs have but ``lacking``; return the names of those moved."""
    budget, other = giver.budget, receiver.budget
    used = {
        "usd": budget.spent.usd + budget.reserved.usd,
        "tokens": budget.spent.tokens + budget.reserved.tokens,
        "wall_s": budget.clock.wall_s,
        "working_s": budget.clock.working_s,
    }
    less: dict[str, object] = {}
    more: dict[str, object] = {}
    for name, amount in used.items():
        limit, theirs = getattr(budget.limits, name), getattr(other.limits, name)
        if name not in lacking and limit is not None and theirs is not None and limit > amount:
            less[name], more[name] = amount, theirs + (limit - amount)
    if more:
        budget.set_limits(_changed(budget.limits, less))
        other.set_limits(_changed(other.limits, more))
    return set(more)


def _changed(limits: BudgetLimits, values: dict[str, object]) -> BudgetLimits:
    return replace(limits, **values)  # type: ignore[arg-type]  # each value has the type of its field
