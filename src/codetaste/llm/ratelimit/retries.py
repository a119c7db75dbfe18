"""Retry state of one model call: whether to try again, and after how long."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from codetaste.errors import Cause
from codetaste.orchestration.retry import RETRY_TABLE, retry_delay_s

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from codetaste.errors import ModelError
    from codetaste.llm.ratelimit.limiter import RateLimiter
    from codetaste.orchestration.retry import RetryRule


class CallRetries:
    """Counts the failures of one call.

    The limiter handles refusals for load that cost nothing: it pauses all callers and gives the provider up
    in time. The call itself is given up after as many refusals as the table allows for rate limits, if other
    calls were answered meanwhile. Failures that may have been billed follow the table strictly.
    """

    def __init__(
        self, limiter: RateLimiter, table: Mapping[Cause, RetryRule] = RETRY_TABLE, *, rng: random.Random
    ) -> None:
        self._limiter, self._table, self._rng = limiter, table, rng
        self._failures: Counter[Cause] = Counter()
        self._refusals = self._successes_before = 0

    def wait_s(self, error: ModelError) -> float | None:
        """Return the seconds to wait before the next attempt, 0 if the limiter waits; None to stop."""
        if error.overloaded and error.unbilled:
            rule, answered = self._table.get(Cause.RATE_LIMIT), self._limiter.statistics().answered
            if not self._refusals:
                self._successes_before = answered
            self._refusals += 1
            others_answered = answered > self._successes_before
            return None if rule is None or (others_answered and self._refusals >= rule.tries) else 0.0
        self._failures[error.cause] += 1
        wait_s = retry_delay_s(
            error.cause,
            self._failures[error.cause],
            retry_after_s=getattr(error, "retry_after_s", None),
            rng=self._rng,
            table=self._table,
        )
        if wait_s is None and error.cause is Cause.MALFORMED:
            error.args = (f"{self._failures[error.cause]} replies could not be used; the last: {error}",)
        return 0.0 if error.overloaded and wait_s is not None else wait_s
