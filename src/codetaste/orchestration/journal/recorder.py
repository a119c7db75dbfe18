"""``RunRecorder``: writes each journal line of a session, folds it into the history, notifies observers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from codetaste.orchestration.events import MoneyChanged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.orchestration.budget.node import BudgetNode
    from codetaste.orchestration.budget.reservation import Reservation
    from codetaste.orchestration.events import Event, FanOut
    from codetaste.orchestration.grace import Grace
    from codetaste.orchestration.journal.blobs import Blobs
    from codetaste.orchestration.journal.history import History
    from codetaste.orchestration.journal.journal import CommitGroup, Journal, Json


class RunRecorder:
    """The journal with its folded history, the stored texts, the observers, and the clean-up grace."""

    def __init__(
        self, *, journal: Journal, history: History, blobs: Blobs, observers: FanOut, grace: Grace
    ) -> None:
        self.journal, self.history, self.blobs = journal, history, blobs
        self.observers, self.grace = observers, grace
        self.reservations: dict[str, Reservation] = {}
        """Reservations of calls that may still be settled, by the call's name."""

    async def write(self, line: dict[str, Json]) -> None:
        """Fold and write ``line``; returns when it is durable.

        Raises:
            StorageFull: the line is not durable.
        """
        await self.queue(line).wait_durable()

    def queue(self, line: dict[str, Json]) -> CommitGroup:
        """Fold and queue ``line``; it is durable when the returned group is."""
        line["t"] = round(time.time(), 3)
        group = self.journal.queue(line)
        self.history.apply(line)
        return group

    def note(self, line: dict[str, Json]) -> None:
        """Fold ``line`` and queue it without waiting; losing it in a crash must do no harm."""
        line["t"] = round(time.time(), 3)
        if self.journal.open:
            self.journal.queue(line, deferrable=True)
        self.history.apply(line)

    def publish(self, event: Event) -> None:
        """Deliver ``event`` to all observers."""
        self.observers.publish(event)

    def effects(self, key: str, fingerprint: str) -> Mapping[str, Json]:
        """Return the recorded effects of a job, by name."""
        return self.history.job(key).effects.get(fingerprint, {})

    def publish_money_change(self, key: str, node: BudgetNode) -> None:
        """Publish snapshots of ``node`` and of the whole run."""
        if self.observers.has_observers:
            self.publish(MoneyChanged(key, node.snapshot(), node.chain[0].snapshot()))
