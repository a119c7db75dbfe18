"""Ready queue: selects the next job whose resources are free, whose budget can pay, and that is still useful.

A job that its budget can never pay for ends here with that reason, without taking any resources.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import Cause, ConfigError
from codetaste.orchestration.job import Status
from codetaste.orchestration.scheduler.attempt import exhausted_by
from codetaste.orchestration.scheduler.earmarks import Earmarks
from codetaste.orchestration.scheduler.fair_queue import FairQueue
from codetaste.orchestration.scheduler.scheduled_job import AttemptResult, ScheduledJob
from codetaste.orchestration.wait import Wait, WaitReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.journal.recorder import RunRecorder

_MONEY = Wait(WaitReason.BUDGET)  # money that is in flight elsewhere


class ReadyQueue:
    """The jobs of one session that are ready to start.

    Args:
        record: journals waits and capacities.
        budget: of the whole run.
        capacities: capacity of each resource.
        end_job: ends a job that cannot be started.
        wake: called when jobs that waited for money can have it.
    """

    def __init__(
        self,
        record: RunRecorder,
        budget: Budget,
        capacities: Mapping[str, float],
        *,
        end_job: Callable[[ScheduledJob, AttemptResult], None],
        wake: Callable[[], None],
    ) -> None:
        self._record, self._end_job, self._wake = record, end_job, wake
        self._fair_queue: FairQueue[ScheduledJob] = FairQueue(capacities)
        self._earmarks = Earmarks(budget, self._requeue)
        self.max_capacities = dict(capacities)
        """The highest capacity so far of each resource: the most that a job may need."""

    def push(self, entry: ScheduledJob) -> None:
        """Queue ``entry``."""
        self._fair_queue.push(entry, entry.job.lane, entry.resources)

    def pop(self) -> ScheduledJob | None:
        """Return the next job that may start, with resources and earmark taken; None if there is none."""
        while (entry := self._fair_queue.pop()) is not None:
            # A job with progress may always continue: replaying costs nothing, and it can still return a
            # partial result.
            progress = self._record.history.has_progress(entry.job.key, entry.fingerprint)
            result = (None if progress else exhausted_by(entry)) or self._no_dependents_left(entry)
            if result is not None:
                self._end_job(entry, result)
                self.release(entry)
            elif progress or entry.job.min_cost is None or self._earmarks.earmark(entry):
                return entry
            else:
                self._record.start_wait(entry.job.key, _MONEY)
                entry.waiting_since = anyio.current_time()
                self._fair_queue.release(entry.job.lane, entry.resources)
        return None

    def release(self, entry: ScheduledJob) -> None:
        """Free the resources and the earmark of ``entry``."""
        self._fair_queue.release(entry.job.lane, entry.resources)
        self._earmarks.release(entry)

    def clear(self) -> list[ScheduledJob]:
        """Remove and return all waiting jobs."""
        return [*self._fair_queue.clear(), *self._earmarks.clear()]

    def resize(self, resource: str, capacity: float) -> None:
        """Set the capacity of ``resource``; see ``Scheduler.resize``.

        Raises:
            ConfigError: the resource is unknown, or the capacity is negative or not finite.
        """
        if resource not in self.max_capacities:
            known = ", ".join(sorted(self.max_capacities)) or "none"
            raise ConfigError(f"unknown resource {resource!r}; available: {known}")
        if not (math.isfinite(capacity) and capacity >= 0):
            raise ConfigError(f"{resource} = {capacity}: write a number that is not negative")
        self._fair_queue.resize(resource, capacity)
        self.max_capacities[resource] = max(capacity, self.max_capacities[resource])
        self._record.note({"event": "capacity", "resource": resource, "capacity": capacity})

    def _no_dependents_left(self, entry: ScheduledJob) -> AttemptResult | None:
        """End unaffordable dependents of a ``prerequisite_only`` job; return its result if none is left."""
        if not entry.job.prerequisite_only or not entry.dependents:
            return None
        self._end_unaffordable(entry.dependents)
        if any(dependent.outcome is None for dependent in entry.dependents):
            return None
        return AttemptResult(
            Status.SKIPPED, cause=Cause.NEED, error="not started: no job that needs it can run"
        )

    def _end_unaffordable(self, entries: list[ScheduledJob]) -> None:
        """End those of ``entries`` that cannot pay for a first attempt, also with what the others leave."""
        untouched = [each for each in entries if not self._record.history.job(each.job.key).attempts]
        ended = True
        while ended:
            waiting = [each for each in untouched if each.outcome is None]
            for each in waiting:
                if each.outcome is None and (result := exhausted_by(each)) is not None:
                    self._end_job(each, result)
            ended = any(each.outcome is not None for each in waiting)

    def _requeue(self, entries: list[ScheduledJob]) -> None:
        """Put jobs that have waited for money at the head of their lanes: they had their turn already."""
        for entry in reversed(entries):
            self._record.end_wait(entry.job.key, _MONEY, anyio.current_time() - entry.waiting_since)
            self._fair_queue.push_first(entry, entry.job.lane, entry.resources)
        self._wake()
