"""How often one model call is tried, and after how long: the retry table, and the limiter's part in it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from codetaste.errors import Cause
from codetaste.orchestration.retry import TABLE, delay_s

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from codetaste.errors import ModelError
    from codetaste.llm.ratelimit import RateLimiter
    from codetaste.orchestration.retry import Retry


class Tries:
    """The failures of one call so far.

    A refusal for the provider's load that costs nothing is the limiter's business: it holds everybody back
    and gives the provider up in time. The call itself is given up when it was refused as often as the table
    has it for rate limits, although others were answered meanwhile. What may have been billed is counted
    strictly.
    """

    def __init__(
        self, limiter: RateLimiter, table: Mapping[Cause, Retry] = TABLE, *, rng: random.Random
    ) -> None:
        self._limiter, self._table, self._rng = limiter, table, rng
        self._failures: Counter[Cause] = Counter()
        self._refusals = self._answered_before = 0

    def wait_s(self, error: ModelError) -> float | None:
        """Return the seconds to wait before the next try, 0 where the limiter sees to it; None to stop."""
        if error.overloaded and error.unbilled:
            return 0.0 if self._worth_another() else None
        self._failures[error.cause] += 1
        wait_s = delay_s(
            error.cause,
            self._failures[error.cause],
            retry_after_s=getattr(error, "retry_after_s", None),
            rng=self._rng,
            table=self._table,
        )
        return 0.0 if error.overloaded and wait_s is not None else wait_s

    def _worth_another(self) -> bool:
        rule = self._table.get(Cause.RATE_LIMIT)
        answered = self._limiter.statistics().answered
        if not self._refusals:
            self._answered_before = answered
        self._refusals += 1
        others_served = answered > self._answered_before
        return rule is not None and not (others_served and self._refusals >= rule.tries)
