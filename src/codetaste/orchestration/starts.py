"""Ready queue: selects the next job whose resources are free, whose budget can pay, and that is still useful.

A job that its budget can never pay for ends here with that reason, without taking any resources.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import Cause, ConfigError
from codetaste.orchestration.admission import Admission
from codetaste.orchestration.attempt import Entry, Verdict, begun, no_means, not_carried
from codetaste.orchestration.events import WaitEnded, WaitStarted
from codetaste.orchestration.job import Status
from codetaste.orchestration.means import Means

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.record import Record

_MONEY = "budget"  # name of the wait for money that is in flight elsewhere


class Starts:
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
        record: Record,
        budget: Budget,
        capacities: Mapping[str, float],
        *,
        conclude: Callable[[Entry, Verdict], None],
        go_on: Callable[[], None],
    ) -> None:
        self._record, self._end_job, self._wake = record, conclude, go_on
        self._fair_queue: Admission[Entry] = Admission(capacities)
        self._earmarks = Means(budget, self._requeue)
        self.largest = dict(capacities)
        """The highest capacity so far of each resource: the most that a job may need."""

    def push(self, entry: Entry) -> None:
        """Queue ``entry``."""
        self._fair_queue.push(entry, entry.job.lane, entry.resources)

    def pop(self) -> Entry | None:
        """Return the next job that may start, with resources and earmark taken; None if there is none."""
        while (entry := self._fair_queue.pop()) is not None:
            verdict = not_carried(entry, self._record) or self._no_dependents_left(entry)
            if verdict is not None:
                self._end_job(entry, verdict)
                self.give_back(entry)
            elif self._has_money(entry):
                return entry
            else:
                self._fair_queue.give_back(entry.job.lane, entry.resources)
        return None

    def give_back(self, entry: Entry) -> None:
        """Free the resources and the earmark of ``entry``."""
        self._fair_queue.give_back(entry.job.lane, entry.resources)
        self._earmarks.withdraw(entry)

    def clear(self) -> list[Entry]:
        """Remove and return all waiting jobs."""
        return [*self._fair_queue.clear(), *self._earmarks.clear()]

    def resize(self, resource: str, capacity: float) -> None:
        """Set the capacity of ``resource``; see ``Scheduler.resize``.

        Raises:
            ConfigError: the resource is unknown, or the capacity is negative or not finite.
        """
        if resource not in self.largest:
            known = ", ".join(sorted(self.largest)) or "none"
            raise ConfigError(f"unknown resource {resource!r}; available: {known}")
        if not (math.isfinite(capacity) and capacity >= 0):
            raise ConfigError(f"{resource} = {capacity}: write a number that is not negative")
        self._fair_queue.resize(resource, capacity)
        self.largest[resource] = max(capacity, self.largest[resource])
        self._record.note({"event": "capacity", "resource": resource, "capacity": capacity})

    def _has_money(self, entry: Entry) -> bool:
        """Whether the job has progress or its minimum cost is earmarked; otherwise it waits for money."""
        if entry.job.least is None or begun(entry, self._record) or self._earmarks.promise(entry):
            return True
        self._record.note({"event": "wait", "key": entry.job.key, "what": _MONEY})
        self._record.publish(WaitStarted(entry.job.key, _MONEY))
        entry.waits_since = anyio.current_time()
        return False

    def _no_dependents_left(self, entry: Entry) -> Verdict | None:
        """End unaffordable dependents of a ``prerequisite_only`` job; return its result if none is left."""
        if not entry.job.for_others or not entry.dependents:
            return None
        for dependent in entry.dependents:
            untouched = dependent.outcome is None and not self._record.history.job(dependent.job.key).attempts
            if untouched and (verdict := no_means(dependent)) is not None:
                self._end_job(dependent, verdict)
        if any(dependent.outcome is None for dependent in entry.dependents):
            return None
        return Verdict(Status.SKIPPED, cause=Cause.NEED, error="not started: no job that needs it can run")

    def _requeue(self, entries: list[Entry]) -> None:
        """Put jobs that have waited for money at the head of their lanes: they had their turn already."""
        for entry in reversed(entries):
            waited_s = round(anyio.current_time() - entry.waits_since, 3)
            key = entry.job.key
            self._record.note({"event": "waited", "key": key, "what": _MONEY, "waited_s": waited_s})
            self._record.publish(WaitEnded(key, _MONEY, waited_s))
            self._fair_queue.push_first(entry, entry.job.lane, entry.resources)
        self._wake()
