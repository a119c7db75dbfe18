"""Which waiting job starts next: its resources are free, its budget can carry it, and it is still of use.

A job that the budget can never carry ends here and says so, without having taken anything.
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

_MONEY = "budget"  # what a job waits for whose money is in flight elsewhere


class Starts:
    """The jobs of one session that wait for nothing but to be started.

    Args:
        record: where waits and capacities are noted.
        budget: of the whole run.
        capacities: how much there is of each resource.
        conclude: ends a job that cannot be started.
        go_on: is called when jobs that waited for money can have it.
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
        self._record, self._conclude, self._go_on = record, conclude, go_on
        self._admission: Admission[Entry] = Admission(capacities)
        self._means = Means(budget, self._freed)
        self.largest = dict(capacities)
        """The most there has been of each resource: what a job may ask for."""

    def push(self, entry: Entry) -> None:
        """Let ``entry`` wait for its turn."""
        self._admission.push(entry, entry.job.lane, entry.resources)

    def pop(self) -> Entry | None:
        """Return the next job that may start, with all it needs for that; None when there is none now."""
        while (entry := self._admission.pop()) is not None:
            verdict = not_carried(entry, self._record) or self._useless(entry)
            if verdict is not None:
                self._conclude(entry, verdict)
                self.give_back(entry)
            elif self._paid_for(entry):
                return entry
            else:
                self._admission.give_back(entry.job.lane, entry.resources)
        return None

    def give_back(self, entry: Entry) -> None:
        """Free what ``entry`` held."""
        self._admission.give_back(entry.job.lane, entry.resources)
        self._means.withdraw(entry)

    def clear(self) -> list[Entry]:
        """Return all that wait, and let nothing wait any more."""
        return [*self._admission.clear(), *self._means.clear()]

    def resize(self, resource: str, capacity: float) -> None:
        """Let there be ``capacity`` of ``resource`` from now on; see ``Scheduler.resize``.

        Raises:
            ConfigError: nobody provides the resource, or the capacity is negative or not finite.
        """
        if resource not in self.largest:
            known = ", ".join(sorted(self.largest)) or "none"
            raise ConfigError(f"nobody provides the resource {resource!r} (there are: {known})")
        if not (math.isfinite(capacity) and capacity >= 0):
            raise ConfigError(f"{resource} = {capacity}: write a number that is not negative")
        self._admission.resize(resource, capacity)
        self.largest[resource] = max(capacity, self.largest[resource])
        self._record.note({"event": "capacity", "resource": resource, "capacity": capacity})

    def _paid_for(self, entry: Entry) -> bool:
        """Whether the money for a job is there; otherwise it waits."""
        if entry.job.least is None or begun(entry, self._record) or self._means.promise(entry):
            return True
        self._record.note({"event": "wait", "key": entry.job.key, "what": _MONEY})
        self._record.publish(WaitStarted(entry.job.key, _MONEY))
        entry.waits_since = anyio.current_time()
        return False

    def _useless(self, entry: Entry) -> Verdict | None:
        """End the jobs that no budget can carry among those that need this one; say so if none is left."""
        if not entry.job.for_others or not entry.dependents:
            return None
        for dependent in entry.dependents:
            untouched = dependent.outcome is None and not self._record.history.job(dependent.job.key).attempts
            if untouched and (verdict := no_means(dependent)) is not None:
                self._conclude(dependent, verdict)
        if any(dependent.outcome is None for dependent in entry.dependents):
            return None
        return Verdict(Status.SKIPPED, cause=Cause.NEED, error="not started: no job that needs it can run")

    def _freed(self, entries: list[Entry]) -> None:
        """Queue those again who have waited for money; they had their turn already."""
        for entry in reversed(entries):
            waited_s = round(anyio.current_time() - entry.waits_since, 3)
            key = entry.job.key
            self._record.note({"event": "waited", "key": key, "what": _MONEY, "waited_s": waited_s})
            self._record.publish(WaitEnded(key, _MONEY, waited_s))
            self._admission.push_first(entry, entry.job.lane, entry.resources)
        self._go_on()
