"""One call that costs money, from its reservation to its settlement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.orchestration.journal import plain

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from codetaste.orchestration.budget import Reservation
    from codetaste.orchestration.journal import Json
    from codetaste.orchestration.money import Cost
    from codetaste.orchestration.record import Record


class Paid:
    """Use it as ``async with``: whoever leaves without ``settle`` or ``release`` is charged as unknown.

    ``call`` names this call in the run and stays the same after a resume; ``granted`` is what it may cost;
    ``note`` is what was given to ``pay``.
    """

    __slots__ = ("_record", "_reservation", "call", "granted", "key", "note")

    def __init__(self, record: Record, key: str, call: str, reservation: Reservation, note: Json) -> None:
        self.key, self.call, self.note = key, call, note
        self.granted: Cost = reservation.granted
        self._record, self._reservation = record, reservation

    @property
    def open(self) -> bool:
        """Whether the call may still be in flight: neither settled, released nor given up."""
        return self._reservation.open

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not awaited, so that no cancellation comes between: the line is queued and soon durable, and if it
        # never is, a reservation without a settlement means the same.
        self.unknown()

    async def settle(self, cost: Cost, value: Json = None, *, soon: bool = False) -> None:
        """Charge what the call cost, and record the effect it was made for as ``value`` unless that is None.

        Both are one line of the journal, durable on return. Where the effect has been recorded before, the
        first value stays. ``soon``: nobody waits for it, and so it keeps nobody waiting (``Journal.queue``).

        Raises:
            StorageFull: neither is durable. The reservation will count as unknown in the next session.
        """
        value = plain(value)
        self._reservation.settle(cost)
        line: dict[str, Json] = {
            "event": "settled",
            "call": self.call,
            "usd": str(cost.usd),
            "tokens": cost.tokens,
        }
        if value is not None:
            line["value"] = value
        self._record.forget(self.call)
        self._record.money_changed(self.key, self._reservation.budget)
        await self._record.write(line, soon=soon)

    def release(self) -> None:
        """Give the money back: the call was certainly never sent, or certainly not billed."""
        if self._reservation.open:
            self._reservation.release()
            self._record.forget(self.call)
            self._record.note({"event": "released", "call": self.call})
            self._record.money_changed(self.key, self._reservation.budget)

    def unknown(self) -> None:
        """Keep the reservation charged: the call was sent, and nobody knows what it cost."""
        if self._reservation.open:
            self._reservation.unknown()
            self._record.note({"event": "unknown", "call": self.call})
            self._record.money_changed(self.key, self._reservation.budget)
