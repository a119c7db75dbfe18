"""When the next request may be sent: rate limits, refusals and failures, as GitHub asks its clients to obey.

The primary limit is a number of points an hour for each resource ("core" is REST, "graphql"); when it is used
up, requests of that resource wait until it is reset. Secondary limits refuse requests that are too many or
too heavy; then all requests wait, as long as GitHub says, else a minute, and longer when it refuses again.
Failures of the server make all requests wait, too; after fifteen in a row no more are sent. Of the requests
that were under way together one refusal or failure counts.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

import anyio

from codetaste.mining.github.answer import ApiOutcome
from codetaste.orchestration.retry import RetryRule, wait_s

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Mapping

MAX_REFUSALS = 8
_REFUSALS = RetryRule(tries=MAX_REFUSALS, first_s=60.0, max_s=900.0, jitter=0.0)
"""Secondary limits: "wait for at least one minute", then exponentially more (GitHub's documentation)."""
_FAILURES = RetryRule(tries=15, first_s=1.0, max_s=60.0)
"""Ten minutes of outage. One lookup that GitHub cannot answer fails up to four times alone."""
_REPORTED_S = 30.0
"""Longer waits are reported."""
_AFTER_LIMIT_S = (1.0, 5.0)
"""Least and greatest delay after a limit: clocks differ, and all clients wait for the same moment."""
_MAX_HEADER_S = 1e11
_LIMITS = re.compile(r"(?i)secondary rate limit|abuse detection|rate limit (already )?exceeded|rate_limit")


class RequestStopped(Exception):
    """The request is not sent, nor are later ones: ``outcome`` says why."""

    def __init__(self, outcome: ApiOutcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class WallClock:
    """The time of day and how to wait; tests replace both."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


class Pacer:
    """The one place that decides when a request may be sent; shared by all requests of a client.

    It counts ``refusals`` for a limit, ``failures``, and the seconds ``waited_s`` for both.
    """

    def __init__(
        self,
        wait_limit_s: float,
        report: Callable[[str], None],
        rng: random.Random,
        clock: WallClock | None = None,
    ) -> None:
        self._wait_limit_s, self._report, self._rng = wait_limit_s, report, rng
        self._clock = clock or WallClock()
        self._limited_until: dict[str, float] = {}
        """By resource; "" is all of them."""
        self._paused_until = 0.0
        self._failures_in_row = self._waits = 0
        self._last_failure = ""
        self.refusals = self.refusals_in_row = self.failures = 0
        self.waited_s = 0.0
        self._reported_until = 0.0

    async def turn(self, resource: str) -> int:
        """Wait until a request of ``resource`` may be sent; return a number for what comes of it.

        Raises:
            RequestStopped: a limit lasts too long, or the server keeps failing.
        """
        while True:
            if self._failures_in_row >= _FAILURES.tries:
                raise RequestStopped(
                    ApiOutcome.UNAVAILABLE,
                    f"GitHub failed {self._failures_in_row} times in a row, last: {self._last_failure}",
                )
            now = self._clock.now()
            limited_s = max(self._limited_until.get(name, 0.0) - now for name in ("", resource))
            if limited_s > self._wait_limit_s or self.refusals_in_row >= _REFUSALS.tries:
                raise RequestStopped(ApiOutcome.LIMITED, self._describe_limit(limited_s))
            needed_s = max(limited_s, self._paused_until - now)
            if needed_s <= 0:
                return self._waits
            if limited_s > _REPORTED_S and now + limited_s > self._reported_until:
                self._reported_until = now + limited_s
                self._report(f"{self._describe_limit(limited_s)}; waiting")
            self.waited_s += needed_s
            await self._clock.sleep(needed_s)

    def note_success(self) -> None:
        """Record that the server does not fail: earlier failures no longer count."""
        self._failures_in_row = 0

    def note_headers(self, resource: str, headers: Mapping[str, str], turn: int | None = None) -> None:
        """Record that no limit refused a request; the headers say what is left of the primary limit."""
        if turn in {None, self._waits}:  # none was refused since it was sent
            self.refusals_in_row = 0
        remaining, reset = (_number(headers, f"x-ratelimit-{name}") for name in ("remaining", "reset"))
        self.note_remaining(resource, remaining, reset)

    def note_remaining(self, resource: str, remaining: float | None, reset: float | None) -> None:
        """Record what is left of the primary limit until ``reset``, in seconds since 1970."""
        if remaining is not None and remaining < 1 and reset is not None and reset > self._clock.now():
            self._limit(resource, reset)

    def note_refusal(self, resource: str, headers: Mapping[str, str], turn: int | None = None) -> None:
        """Record that a request was refused for a limit; ``turn`` is what ``Pacer.turn`` returned."""
        self.refusals += 1
        self.refusals_in_row = max(1, self.refusals_in_row + self._begins_wait(turn))
        now = self._clock.now()
        requested_s = _retry_after_s(headers, now)
        reset = _number(headers, "x-ratelimit-reset")
        if requested_s is None and _number(headers, "x-ratelimit-remaining") == 0 and reset and reset > now:
            self.note_remaining(resource, 0, reset)
        else:
            # What GitHub asks for counts alone only once; if it refuses again, that was not enough.
            least_s = wait_s(_REFUSALS, self.refusals_in_row, None, self._rng)
            enough = requested_s is not None and self.refusals_in_row == 1
            self._limit("", now + max(requested_s or 0.0, 0.0 if enough else least_s))

    def note_failure(self, reason: str, turn: int | None = None) -> None:
        """Record that a request failed for a reason that may pass."""
        self.failures += 1
        self._failures_in_row = max(1, self._failures_in_row + self._begins_wait(turn))
        self._last_failure = reason
        pause_s = wait_s(_FAILURES, self._failures_in_row, None, self._rng)
        self._paused_until = max(self._paused_until, self._clock.now() + pause_s)

    def _begins_wait(self, turn: int | None) -> bool:
        begins = turn in {None, self._waits}
        self._waits += begins
        return begins

    def _limit(self, resource: str, until: float) -> None:
        until += self._rng.uniform(*_AFTER_LIMIT_S)
        self._limited_until[resource] = max(self._limited_until.get(resource, 0.0), until)

    def _describe_limit(self, limited_s: float) -> str:
        if limited_s <= 0:
            return f"GitHub refused {self.refusals_in_row} requests in a row for its rate limits"
        return f"GitHub's rate limit is used up for {limited_s / 60:,.0f} minutes"


def is_limit(status: int, headers: Mapping[str, str], text: str) -> bool:
    """Whether a refusal with status 200, 403 or 429 is about a rate limit; ``text`` is what it says."""
    return (
        status == HTTPStatus.TOO_MANY_REQUESTS
        or "retry-after" in headers
        or (status != HTTPStatus.OK and _number(headers, "x-ratelimit-remaining") == 0)
        or bool(_LIMITS.search(text))
    )


def _retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    seconds = _number(headers, "retry-after")
    if seconds is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _number(headers: Mapping[str, str], name: str) -> float | None:
    """Return the number in a header; None if there is none, or none that can be meant."""
    text = headers.get(name, "").strip()
    number = float(text[:20]) if text.isascii() and text.isdecimal() else None
    return number if number is not None and number <= _MAX_HEADER_S else None
