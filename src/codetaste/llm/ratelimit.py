"""Who may send a request to a rate-limited provider, and when: one limiter for a provider, key and model.

All callers share what any of them is told: a refusal with or without a Retry-After holds everybody back,
and how many may send at once follows ``congestion.py``. Those who wait are served in the order in which
they came; a caller that was refused goes to the end, so that a request that is refused for its own sake
(too large for the account) does not stand in the way of the others. When the provider is given up, all who
wait are told at once.

Waiting costs nothing: each caller sleeps until it is handed its slot, and only the first of them has a
timer.
"""

from __future__ import annotations

import math
import random
import time
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import RateLimited
from codetaste.llm.congestion import STEP_S, Congestion
from codetaste.orchestration.retry import give_up, wait_s

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from codetaste.errors import ModelError
    from codetaste.llm.congestion import Refusal
    from codetaste.orchestration.retry import Retry

PATIENCE_S = 600.0
"""Seconds for which a provider may refuse everything before it is given up."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """A limiter at one moment.

    Attributes:
        limit: requests that may be in flight at once now, between 1 and ``most``.
        most: the highest that ``limit`` can be.
        in_flight: slots that are held.
        waiting: callers that wait for one.
        paused_s: seconds until anybody may send; 0 when no pause is on.
        refused: requests that the provider refused for its load, in all.
        answered: requests that it answered, in all.
        gave_up: how many times it was given up.
    """

    limit: int
    most: int
    in_flight: int
    waiting: int
    paused_s: float
    refused: int
    answered: int
    gave_up: int


class _Waiter:
    """A caller in the queue. ``timer_s`` is when it wakes by itself; only the first one does."""

    __slots__ = ("event", "failure", "slot", "timer_s")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.slot: Slot | None = None
        self.failure: RateLimited | None = None
        self.timer_s = math.inf


class Slot:
    """The right to send one request now. Whatever happened to it, ``end`` it; the first report counts."""

    __slots__ = ("_limiter", "_open", "_round")

    def __init__(self, limiter: RateLimiter, of_round: int) -> None:
        self._limiter, self._round, self._open = limiter, of_round, True

    @property
    def current(self) -> bool:
        """Whether the request may still go: if not, all were told to pause since, or the limit fell."""
        return self._open and self._limiter.congestion.current(self._round, time.monotonic())

    def end(self) -> None:
        """Give the slot back; what became of the request says nothing of the provider's load."""
        if self._open:
            self._open = False
            self._limiter.congestion.ended(self._round)
            self._limiter.serve()

    def answered(self) -> str:
        """Give the slot back after an answer; returns what there is to say of it, mostly nothing."""
        if not self._open:
            return ""
        self._open = False
        return self._limiter.answered(self._round)

    def refused(self, error: ModelError, rule: Retry) -> str:
        """Give the slot back after a refusal for the provider's load; returns what there is to say of it.

        Everybody is held back for the time that ``error`` asks for, or else for that of ``rule``.

        Raises:
            RateLimited: the provider is given up.
        """
        if not self._open:
            return ""
        self._open = False
        return self._limiter.refused(self._round, error, rule)


class RateLimiter:
    """Slots of one provider, key and model.

    Args:
        name: for people; never a key.
        most: requests in flight at once, at best.
        patience_s: how long the provider may refuse everything before it is given up; no pause is longer.
        step_s: how long a refusal may take to come; after a pause, the requests allowed double in that time.
        rng: for the jitter of pauses.
    """

    def __init__(
        self,
        name: str,
        *,
        most: int,
        patience_s: float = PATIENCE_S,
        step_s: float = STEP_S,
        rng: random.Random | None = None,
    ) -> None:
        self.name = name
        self.congestion = Congestion(most, patience_s=patience_s, step_s=step_s)
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._waiters: OrderedDict[_Waiter, None] = OrderedDict()
        self._why = ""
        self._gave_up = 0
        # The limit that was last spoken of, so that its climb is not told step by step.
        self._told = most

    def __repr__(self) -> str:
        return f"RateLimiter({self.name!r}, {self.statistics()})"

    @property
    def most(self) -> int:
        """Requests in flight at once, at best. Raised, it lets waiters go; lowered, those in flight finish.

        Raises:
            ValueError: it is set below 1.
        """
        return self.congestion.most

    @most.setter
    def most(self, most: int) -> None:
        self.congestion.most = most
        self.serve()

    def statistics(self) -> Statistics:
        """Return the state of this moment."""
        now = self.congestion
        return Statistics(
            limit=now.limit,
            most=now.most,
            in_flight=now.in_flight,
            waiting=len(self._waiters),
            paused_s=self._paused_s(),
            refused=now.refused_in_all,
            answered=now.answered_in_all,
            gave_up=self._gave_up,
        )

    @property
    def why_waiting(self) -> str:
        """Why a caller that comes now must wait: a rate limit with the seconds that are left, or ""."""
        paused_s = self._paused_s()
        return f"{self._why}, {math.ceil(paused_s)} s" if paused_s else ""

    def take_nowait(self) -> Slot | None:
        """Return a slot if there is one and nobody waits for it."""
        if self._waiters or not self.congestion.room(now := time.monotonic()):
            return None
        return Slot(self, self.congestion.sent(now))

    async def take(
        self, while_waiting: Callable[[], AbstractContextManager[object]] = nullcontext[None]
    ) -> Slot:
        """Return a slot, first come, first served; end it. A wait happens inside ``while_waiting()``.

        Raises:
            RateLimited: the provider was given up meanwhile.
        """
        slot = self.take_nowait()
        if slot is not None:
            return slot
        waiter = _Waiter()
        self._waiters[waiter] = None
        try:
            with while_waiting():
                slot = await self._turn(waiter)
        except BaseException:
            self._withdraw(waiter)
            raise
        return slot

    async def _turn(self, waiter: _Waiter) -> Slot:
        """Sleep until ``waiter`` has its slot."""
        self.serve()
        while waiter.slot is None:
            if waiter.failure is not None:
                raise waiter.failure
            waiter.event = anyio.Event()
            with anyio.move_on_after(waiter.timer_s - time.monotonic()):
                await waiter.event.wait()
            if not waiter.event.is_set():
                waiter.timer_s = math.inf
                self.serve()
        return waiter.slot

    def _withdraw(self, waiter: _Waiter) -> None:
        """Take back what a caller that went away was given, or its place."""
        if waiter.slot is not None:
            waiter.slot.end()
        elif waiter in self._waiters:
            del self._waiters[waiter]
            self.serve()

    def serve(self) -> None:
        """Hand out the slots that are free now, and see that the first who waits wakes in time."""
        now = time.monotonic()
        while self._waiters:
            first = next(iter(self._waiters))
            if not self.congestion.room(now):
                opens_s = self.congestion.opens_s(now)
                if opens_s < first.timer_s:
                    first.timer_s = opens_s
                    first.event.set()
                return
            del self._waiters[first]
            first.slot = Slot(self, self.congestion.sent(now))
            first.event.set()

    def answered(self, of_round: int) -> str:
        """Take an answer into account; see ``Slot.answered``."""
        self.congestion.answered(of_round, time.monotonic())
        self.serve()
        limit, most = self.congestion.limit, self.congestion.most
        if limit >= 2 * self._told or limit == most > self._told:
            self._told = limit
            return f"{self.name}: {limit} of {most} requests at once again"
        return ""

    def refused(self, of_round: int, error: ModelError, rule: Retry) -> str:
        """Take a refusal into account; see ``Slot.refused``."""
        asked_s: float | None = getattr(error, "retry_after_s", None)
        refusal = self.congestion.refused(
            of_round, time.monotonic(), asked_s, lambda times: wait_s(rule, times, asked_s, self._rng)
        )
        self._why = "rate limit (429)" if isinstance(error, RateLimited) else "overloaded"
        if refusal.gave_up:
            raise self._give_up(refusal, error)
        self.serve()
        if not refusal.new:
            return ""
        self._told = refusal.after
        fell = f", {refusal.after} instead of {refusal.before} at once after that"
        return (
            f"{self.name}: {self._why}; all calls wait {refusal.pause_s:.1f} s"
            f"{fell if refusal.after < refusal.before else ''}"
        )

    def _give_up(self, refusal: Refusal, error: ModelError) -> RateLimited:
        """Tell all who wait that the provider is given up; returns the error for the one who was refused."""
        self._gave_up += 1
        said = (
            f"{self.name} is given up: it has answered nothing for {refusal.over_s:.0f} s but "
            f"{refusal.in_a_row} refusals, at last: {error}; "
            "to wait longer, raise rate_limit_patience of the model, or run again later"
        )
        waiters, self._waiters = self._waiters, OrderedDict()
        for waiter in waiters:
            waiter.failure = give_up(RateLimited(said))
            waiter.event.set()
        return give_up(RateLimited(said))

    def _paused_s(self) -> float:
        return max(0.0, self.congestion.paused_until_s - time.monotonic())
