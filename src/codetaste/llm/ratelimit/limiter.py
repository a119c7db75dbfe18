"""Rate limiter: hands out permits to send requests, one limiter per provider, key and model.

All callers share the provider's refusals: a refusal, with or without a Retry-After, pauses every caller, and
``ratelimit/adaptive.py`` decides how many requests may be in flight. Waiting callers are served in order of
arrival. A refused caller goes to the end of the queue, so that a request that is refused for its own sake
(too large for the account) does not block the others. When the provider is given up, all waiting callers
fail.

A request that fails may have been billed nevertheless. ``MAX_UNANSWERED`` such requests in a row end a job,
and pause all callers, so that an outage costs a few requests and no budget.

Waiting costs no CPU: each caller sleeps until it gets its permit, and only the first of them has a timer.
"""

from __future__ import annotations

import copy
import math
import random
import time
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import RateLimited
from codetaste.llm.ratelimit.adaptive import STEP_S, AdaptiveLimit
from codetaste.orchestration.retry import mark_given_up, wait_s
from codetaste.orchestration.wait import Wait, WaitReason

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from codetaste.errors import ModelError, ModelSetupError
    from codetaste.llm.ratelimit.adaptive import Backoff
    from codetaste.orchestration.retry import RetryRule

PATIENCE_S = 600.0
"""Seconds for which a provider may refuse every request before it is given up."""


MAX_UNANSWERED = 3
"""Requests of a job in a row that may have been billed and got no reply, until the job ends."""


@dataclass(frozen=True, slots=True)
class LimiterStatistics:
    """A limiter at one moment.

    Attributes:
        limit: requests that may be in flight at once now, between 1 and ``maximum``.
        maximum: the highest value of ``limit``.
        in_flight: permits in use.
        waiting: callers in the queue.
        paused_s: seconds until the end of the pause; 0 without a pause.
        refused: requests that the provider has refused because of its load.
        answered: requests that it has answered.
        gave_up: how many times it was given up.
    """

    limit: int
    maximum: int
    in_flight: int
    waiting: int
    paused_s: float
    refused: int
    answered: int
    gave_up: int


class _Waiter:
    """A caller in the queue. ``timer_s`` is when it wakes by itself; only the first caller has one."""

    __slots__ = ("event", "failure", "permit", "timer_s")

    def __init__(self) -> None:
        self.event = anyio.Event()
        self.permit: Permit | None = None
        self.failure: ModelError | None = None
        self.timer_s = math.inf


class Permit:
    """Permission to send one request now. Always release it; only the first of the three endings counts."""

    __slots__ = ("_active", "_limiter", "_round")

    def __init__(self, limiter: RateLimiter, round_number: int) -> None:
        self._limiter, self._round, self._active = limiter, round_number, True

    @property
    def valid(self) -> bool:
        """Whether the request may still be sent; not if a pause has begun or the limit has fallen since."""
        return self._active and self._limiter.adaptive_limit.is_valid(self._round, time.monotonic())

    def release(self) -> None:
        """Return the permit after a request whose outcome does not indicate the provider's load."""
        if self._active:
            self._active = False
            self._limiter.adaptive_limit.release(self._round)
            self._limiter.hand_out()

    def succeeded(self) -> str:
        """Return the permit after an answer; returns a message if the limit has recovered, else ""."""
        if not self._active:
            return ""
        self._active = False
        return self._limiter.record_success(self._round)

    def refused(self, error: ModelError, rule: RetryRule) -> str:
        """Return the permit after a refusal for the provider's load; returns a message on the pause, or "".

        All callers pause for the time that ``error`` requests, or else for that of ``rule``.

        Raises:
            ModelError: the provider is given up.
        """
        if not self._active:
            return ""
        self._active = False
        return self._limiter.record_refusal(self._round, error, rule)


class UnansweredRequests:
    """Requests to one provider that failed although they may have been billed, since its last answer."""

    def __init__(self) -> None:
        self._in_a_row = 0
        # By job: how many, when the last one failed, and why; and the errors that have ended jobs.
        self._of: dict[str, tuple[int, float, ModelError]] = {}
        self._ended: dict[str, ModelError] = {}

    def record_answer(self, job: str) -> None:
        """Count an answer to a request of ``job``."""
        self._in_a_row = 0
        self._of.pop(job, None)

    def record_failure(self, job: str, sent_s: float, error: ModelError) -> bool:
        """Count a failed request of ``job``, sent at the monotonic time ``sent_s``; too many end the job.

        Return whether so many failed in a row, of whatever jobs, that another one should wait.
        """
        count, failed_s, _ = self._of.get(job, (0, -math.inf, error))
        # Requests that were in flight together fail together, for one reason.
        self._of[job] = (count + (sent_s > failed_s), time.monotonic(), error)
        self._in_a_row += 1
        if self._of[job][0] >= MAX_UNANSWERED:
            self.end(job, f"{MAX_UNANSWERED} requests in a row may have been billed and got no reply")
        return self._in_a_row >= MAX_UNANSWERED

    def end(self, job: str, why: str) -> ModelError | None:
        """End a job whose last requests got no reply: return the error, None if its last one was answered."""
        if job in self._of and job not in self._ended:
            error = self._ended[job] = mark_given_up(self._of[job][2])
            error.args = (f"{error} ({why})",)
        return self.error_of(job)

    def error_of(self, job: str) -> ModelError | None:
        """Return the error that has ended ``job``, None if it may send requests."""
        return copy.copy(self._ended.get(job))


class RateLimiter:
    """Permits for one provider, key and model.

    Args:
        name: for messages; contains no key.
        maximum: the most requests in flight at once.
        patience_s: how long the provider may refuse everything before it is given up; no pause is longer.
        step_s: the longest time until a refusal arrives; after a pause, the limit doubles in this time.
        rng: for the jitter of pauses.

    ``setup_error`` is why no request can be answered, such as a wrong key; the owner sets it.
    """

    def __init__(
        self,
        name: str,
        *,
        maximum: int,
        patience_s: float = PATIENCE_S,
        step_s: float = STEP_S,
        rng: random.Random | None = None,
    ) -> None:
        self.name = name
        self.adaptive_limit = AdaptiveLimit(maximum, patience_s=patience_s, step_s=step_s)
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self.unanswered = UnansweredRequests()
        self._waiters: OrderedDict[_Waiter, None] = OrderedDict()
        self._pause_reason = WaitReason.RATE_LIMIT
        self._gave_up = 0
        self.setup_error: ModelSetupError | None = None
        # The limit in the last message, so that its rise is not reported step by step.
        self._reported_limit = maximum

    def __repr__(self) -> str:
        return f"RateLimiter({self.name!r}, {self.statistics()})"

    @property
    def maximum(self) -> int:
        """The most requests in flight at once. Raising it wakes callers; lowering it stops no request.

        Raises:
            ValueError: it is set below 1.
        """
        return self.adaptive_limit.maximum

    @maximum.setter
    def maximum(self, most: int) -> None:
        self.adaptive_limit.maximum = most
        self.hand_out()

    def statistics(self) -> LimiterStatistics:
        """Return the current state."""
        now = self.adaptive_limit
        return LimiterStatistics(
            limit=now.limit,
            maximum=now.maximum,
            in_flight=now.in_flight,
            waiting=len(self._waiters),
            paused_s=self._paused_s(),
            refused=now.refusals,
            answered=now.successes,
            gave_up=self._gave_up,
        )

    def wait_of(self, model_id: str) -> Wait:
        """Return what a caller of model ``model_id`` waits for now: the end of a pause, or a permit."""
        paused_s = self._paused_s()
        if not paused_s:
            return Wait(WaitReason.PERMIT, model_id)
        return Wait(self._pause_reason, model_id, math.ceil(paused_s))

    def acquire_nowait(self) -> Permit | None:
        """Return a permit if one is free and no other caller waits for it."""
        if self._waiters or not self.adaptive_limit.has_room(now := time.monotonic()):
            return None
        return Permit(self, self.adaptive_limit.start_request(now))

    async def acquire(
        self, while_waiting: Callable[[], AbstractContextManager[object]] = nullcontext[None]
    ) -> Permit:
        """Return a permit, first come, first served; release it. A wait happens inside ``while_waiting()``.

        Raises:
            ModelError: the provider was given up during the wait, for this reason.
        """
        permit = self.acquire_nowait()
        if permit is not None:
            return permit
        waiter = _Waiter()
        self._waiters[waiter] = None
        try:
            with while_waiting():
                return await self._wait(waiter)
        except BaseException:
            if waiter.permit is not None:
                waiter.permit.release()
            elif waiter in self._waiters:
                del self._waiters[waiter]
                self.hand_out()
            raise

    async def _wait(self, waiter: _Waiter) -> Permit:
        self.hand_out()
        while waiter.permit is None:
            if waiter.failure is not None:
                raise waiter.failure
            waiter.event = anyio.Event()
            with anyio.move_on_after(waiter.timer_s - time.monotonic()):
                await waiter.event.wait()
            if not waiter.event.is_set():
                waiter.timer_s = math.inf
                self.hand_out()
        return waiter.permit

    def hand_out(self) -> None:
        """Hand out the free permits, and set the timer of the first waiting caller."""
        now = time.monotonic()
        while self._waiters:
            first = next(iter(self._waiters))
            if not self.adaptive_limit.has_room(now):
                opens_s = self.adaptive_limit.opens_at(now)
                if opens_s < first.timer_s:
                    first.timer_s = opens_s
                    first.event.set()
                return
            del self._waiters[first]
            first.permit = Permit(self, self.adaptive_limit.start_request(now))
            first.event.set()

    def record_success(self, round_number: int) -> str:
        """Count an answer; see ``Permit.succeeded``."""
        self.adaptive_limit.record_success(round_number, time.monotonic())
        self.hand_out()
        limit, most = self.adaptive_limit.limit, self.adaptive_limit.maximum
        if limit >= 2 * self._reported_limit or limit == most > self._reported_limit:
            self._reported_limit = limit
            return f"{self.name}: {limit} of {most} requests at once again"
        return ""

    def record_refusal(self, round_number: int, error: ModelError, rule: RetryRule) -> str:
        """Count a refusal; see ``Permit.refused``."""
        requested_s: float | None = getattr(error, "retry_after_s", None)

        def pause_s(times: int) -> float:
            return wait_s(rule, times, requested_s, self._rng)

        backoff = self.adaptive_limit.record_refusal(
            round_number, time.monotonic(), requested_s, pause_s, billed=not error.unbilled
        )
        limited = isinstance(error, RateLimited)
        self._pause_reason = WaitReason.RATE_LIMIT if limited else WaitReason.OVERLOADED
        if backoff.gave_up:
            raise self._give_up(backoff, error)
        self.hand_out()
        if not backoff.new_round:
            return ""
        self._reported_limit = backoff.limit_after
        message = f"{Wait(self._pause_reason, self.name)}; all calls wait {backoff.pause_s:.1f} s"
        if backoff.limit_after < backoff.limit_before:
            message += f", {backoff.limit_after} instead of {backoff.limit_before} at once after that"
        return message

    def _give_up(self, backoff: Backoff, error: ModelError) -> ModelError:
        """Fail all waiting callers since the provider is given up; returns the error for the refused one."""
        self._gave_up += 1
        message = (
            f"{self.name} is given up: it has answered nothing for {backoff.refused_for_s:.0f} s but "
            f"refused or failed {backoff.refused_rounds} times in a row, the last: {error}; "
            + ("to wait longer, raise rate_limit_timeout of the model, or " if error.unbilled else "")
            + "run again later"
        )
        given_up = copy.copy(error)
        given_up.args = (message,)
        waiters, self._waiters = self._waiters, OrderedDict()
        for waiter in waiters:
            waiter.failure = mark_given_up(copy.copy(given_up))
            waiter.event.set()
        return mark_given_up(given_up)

    def _paused_s(self) -> float:
        return max(0.0, self.adaptive_limit.paused_until_s - time.monotonic())
