"""``PaidCall``: one call that costs money, from its reservation to its settlement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.orchestration.journal.journal import json_copy

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from codetaste.orchestration.budget.cost import Cost
    from codetaste.orchestration.budget.reservation import Reservation
    from codetaste.orchestration.journal.journal import Json
    from codetaste.orchestration.journal.lines import ReservedLine, SettledLine, UnknownLine
    from codetaste.orchestration.journal.recorder import RunRecorder


class PaidCall:
    """A call with reserved money, used as ``async with``: unless settled or released it ends as unknown.

    ``call`` names this call in the run and stays the same after a resume; ``granted`` is its maximum cost;
    ``note`` is the note of the reservation.
    """

    __slots__ = ("_record", "_reservation", "call", "granted", "key", "note")

    @classmethod
    async def start(
        cls, record: RunRecorder, effect: tuple[str, str, str], reservation: Reservation, note: Json = None
    ) -> PaidCall:
        """Make a granted reservation durable, with its ``note``; releases it if that fails or is cancelled.

        ``effect`` is the key and fingerprint of the job, and the name of the effect that the call gives.

        Raises:
            StorageFull: the reservation could not be recorded and was released; do not make the call.
        """
        key, fingerprint, name = effect
        granted = reservation.granted
        paid = cls(record, key, record.history.next_call_name(key, name), reservation, note)
        line: ReservedLine = {
            "event": "reserved",
            "call": paid.call,
            "key": key,
            "fingerprint": fingerprint,
            "effect": name,
            "path": list(reservation.budget.path),
            "usd": str(granted.usd),
            "tokens": granted.tokens,
        }
        if note is not None:
            line["note"] = note
        try:
            group = record.queue(line)
        except Exception:  # the journal has no line of this call
            reservation.release()
            raise
        try:
            await group.wait_durable()
        except BaseException:
            paid.release()
            raise
        record.reservations[paid.call] = reservation
        record.publish_money_change(key, reservation.budget)
        return paid

    def __init__(
        self, record: RunRecorder, key: str, call: str, reservation: Reservation, note: Json
    ) -> None:
        self.key, self.call, self.note = key, call, note
        self.granted: Cost = reservation.granted
        self._record, self._reservation = record, reservation

    @property
    def open(self) -> bool:
        """Whether the call may still be in flight: neither settled, released nor unknown."""
        return self._reservation.open

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not awaited, so that a cancellation cannot interrupt it: the line is queued and soon durable. If it
        # is lost, a reservation without a settlement means the same.
        self.mark_unknown()

    async def settle(self, cost: Cost, value: Json = None) -> None:
        """Charge the cost of the call, and record ``value`` as its effect unless that is None.

        Both are one line of the journal, durable on return. If the effect was recorded before, the first
        value stays.

        Raises:
            StorageFull: neither is durable. The reservation will count as unknown in the next session.
        """
        value = json_copy(value)
        self._reservation.settle(cost)
        line: SettledLine = {
            "event": "settled",
            "call": self.call,
            "usd": str(cost.usd),
            "tokens": cost.tokens,
        }
        if value is not None:
            line["value"] = value
        self._close()
        await self._record.write(line)

    def release(self) -> None:
        """Free the reserved money: the call was certainly never sent, or certainly not billed."""
        if self._reservation.open:
            self._reservation.release()
            self._record.note({"event": "released", "call": self.call})
            self._close()

    @property
    def worst(self) -> Cost:
        """What the call costs at most if nothing holds that is known of its provider, or all that is left."""
        return self._reservation.worst

    def mark_unknown(self, most: Cost | None = None) -> None:
        """Keep the reservation charged, or ``most`` instead; the cost is unknown."""
        if self._reservation.open:
            self._reservation.mark_unknown(most)
            self.granted = self._reservation.granted
            line: UnknownLine = {"event": "unknown", "call": self.call}
            if most is not None:
                line |= {"usd": str(self.granted.usd), "tokens": self.granted.tokens}
            self._record.note(line)
            self._record.publish_money_change(self.key, self._reservation.budget)

    def _close(self) -> None:
        """Forget a call that is settled or released."""
        self._record.reservations.pop(self.call, None)
        self._record.publish_money_change(self.key, self._reservation.budget)
