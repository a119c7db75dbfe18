"""``RunRecorder``: writes each journal line of a session, folds it into the history, notifies observers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from codetaste.orchestration.events import MoneyChanged, Note, WaitEnded, WaitStarted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.orchestration.budget.node import BudgetNode
    from codetaste.orchestration.budget.reservation import Reservation
    from codetaste.orchestration.events import Event, FanOut
    from codetaste.orchestration.grace import Grace
    from codetaste.orchestration.journal.blobs import Blobs
    from codetaste.orchestration.journal.history import History
    from codetaste.orchestration.journal.journal import CommitGroup, Journal, Json
    from codetaste.orchestration.journal.lines import JournalLine
    from codetaste.orchestration.wait import Wait


class RunRecorder:
    """The journal with its folded history, the stored texts, the observers, and the clean-up grace."""

    def __init__(
        self, *, journal: Journal, history: History, blobs: Blobs, observers: FanOut, grace: Grace
    ) -> None:
        self.journal, self.history, self.blobs = journal, history, blobs
        self.observers, self.grace = observers, grace
        self.reservations: dict[str, Reservation] = {}
        """Reservations of calls that may still be settled, by the call's name."""

    async def write(self, line: JournalLine) -> None:
        """Fold and write ``line``; returns when it is durable.

        Raises:
            StorageFull: the line is not durable.
        """
        await self.queue(line).wait_durable()

    def queue(self, line: JournalLine) -> CommitGroup:
        """Fold and queue ``line``; it is durable when the returned group is."""
        line["t"] = round(time.time(), 3)
        group = self.journal.queue(line)
        self.history.apply(line)
        return group

    def note(self, line: JournalLine) -> None:
        """Fold ``line`` and queue it without waiting; losing it in a crash must do no harm."""
        line["t"] = round(time.time(), 3)
        if self.journal.open:
            self.journal.queue(line, deferrable=True)
        self.history.apply(line)

    def note_text(self, key: str, text: str) -> None:
        """Journal and publish a line of text about job ``key``, or about the whole run if that is ""."""
        self.note({"event": "note", "key": key, "text": text})
        self.publish(Note(key, text))

    def start_wait(self, key: str, wait: Wait) -> None:
        """Journal and publish that a job waits."""
        reason, detail = wait.reason.value, wait.detail
        self.note(
            {"event": "wait_started", "key": key, "reason": reason, "detail": detail, "delay_s": wait.delay_s}
        )
        self.publish(WaitStarted(key, wait))

    def end_wait(self, key: str, wait: Wait, waited_s: float) -> None:
        """Journal and publish that a job has waited."""
        reason, detail, waited_s = wait.reason.value, wait.detail, round(waited_s, 3)
        self.note(
            {"event": "wait_ended", "key": key, "reason": reason, "detail": detail, "waited_s": waited_s}
        )
        self.publish(WaitEnded(key, wait, waited_s))

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
