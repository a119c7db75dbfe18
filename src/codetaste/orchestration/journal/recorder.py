"""``RunRecorder``: writes each journal line of a session, folds it into the history, notifies observers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from codetaste.orchestration.events import MoneyChanged
from codetaste.orchestration.paid_call import PaidCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.orchestration.budget.budget import Budget
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
        # Calls that may still be settled, by name.
        self._open_calls: dict[str, PaidCall] = {}

    async def write(self, line: dict[str, Json]) -> None:
        """Fold and write ``line``; returns when it is durable.

        Raises:
            StorageFull: the line is not durable.
        """
        await self._queue(line).wait_durable()

    def _queue(self, line: dict[str, Json]) -> CommitGroup:
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

    async def record_effect(self, key: str, fingerprint: str, name: str, value: Json) -> None:
        """Record an effect, durably."""
        line: dict[str, Json] = {"event": "effect", "key": key, "fingerprint": fingerprint, "name": name}
        line["value"] = value
        await self.write(line)

    async def reserve(
        self, key: str, fingerprint: str, effect: str, reservation: Reservation, note: Json
    ) -> PaidCall:
        """Make a granted reservation durable; releases it if that fails or is cancelled."""
        granted = reservation.granted
        paid = PaidCall(self, key, self.history.next_call_name(key, effect), reservation, note)
        line: dict[str, Json] = {
            "event": "reserved",
            "call": paid.call,
            "key": key,
            "fingerprint": fingerprint,
            "effect": effect,
            "path": list(reservation.budget.path),
            "usd": str(granted.usd),
            "tokens": granted.tokens,
        }
        if note is not None:
            line["note"] = note
        try:
            group = self._queue(line)
        except Exception:  # the journal has no line of this call
            reservation.release()
            raise
        try:
            await group.wait_durable()
        except BaseException:
            paid.release()
            raise
        self._open_calls[paid.call] = paid
        self.publish_money_change(key, reservation.budget)
        return paid

    def unsettled_calls(
        self, key: str, fingerprint: str, effect: str, budget: Budget
    ) -> tuple[PaidCall, ...]:
        """Return the calls for an effect that are unsettled and no longer in flight."""
        unsettled: list[PaidCall] = []
        for call in self.history.unsettled_calls(key, fingerprint, effect):
            paid = self._open_calls.get(call.call)
            if paid is None:
                node = budget.chain[0].find(call.path)
                paid = PaidCall(self, key, call.call, node.adopt(call.granted), call.note)
                self._open_calls[call.call] = paid
            if not paid.open:
                unsettled.append(paid)
        return tuple(unsettled)

    def drop_call(self, call: str) -> None:
        """Drop a call that is settled or released."""
        self._open_calls.pop(call, None)

    def publish_money_change(self, key: str, node: Budget) -> None:
        """Publish snapshots of ``node`` and of the whole run."""
        if self.observers.has_observers:
            self.publish(MoneyChanged(key, node.snapshot(), node.chain[0].snapshot()))
