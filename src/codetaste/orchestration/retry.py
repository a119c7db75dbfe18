"""The retry table, for jobs and for model calls: which failures are retried, how often and after which delay.

A caller that has retried as often as the table allows marks the error with ``mark_given_up``, so that the job
around the call is not retried for the same reason: retries do not multiply.

Reasons for the figures:

- *Rate limits* of one model are waited out by all its callers together (``llm/ratelimit/limiter.py``), for
  as long as the model's ``rate_limit_timeout`` allows. ``tries`` bounds a call that is refused repeatedly
  while other calls succeed: it may be too large for the account's limit.
- *Unavailable* is a reset, a cut stream, a server error or a time-out. An error status of the protocol with
  the provider's own body, before any byte of a reply, costs nothing: five tries survive one and a half
  minutes. A proxy's answer, a reset (also of an idle connection) or a cut stream may stand for a reply that
  was billed. It stays charged at its reservation until the provider's record is known, so three in a row end
  the job, whatever calls they are of (``llm/ratelimit/limiter.py``): an outage uses up no budget. The number
  of tries decides the money and the delays decide how long an outage is survived, so the second delay is
  long: three tries survive half a minute, a server's restart. A time-out gets as many tries, each as long as
  the model's ``timeout``; a job's ``time_limit`` ends them sooner.
- *Malformed* replies are usually billed, and a model that answers nonsense tends to repeat it: three tries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from codetaste.errors import Cause

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

_E = TypeVar("_E", bound=BaseException)
_MARK = "_codetaste_given_up"
_MAX_EXPONENT = 60
"""Exponent at which every delay has long reached its maximum, while the power is still a finite float."""
_MAX_JITTER_S = 5.0
"""Maximum random delay, in seconds, added to a wait that the provider requested."""


@dataclass(frozen=True, slots=True)
class RetryRule:
    """At most ``tries`` in all; the delay grows from ``first_s`` by ``factor`` up to ``max_s``.

    ``jitter`` is the share of the delay that is subtracted or added at random.
    """

    tries: int
    first_s: float
    factor: float = 2.0
    max_s: float = 60.0
    jitter: float = 0.25


# A cause that is not in the table is never retried: a retry cannot fix a budget, a deadline, a config, a
# refusal, a missing recording, a full disk, or a fault of the program.
RETRY_TABLE: Mapping[Cause, RetryRule] = {
    Cause.RATE_LIMIT: RetryRule(tries=8, first_s=2.0, max_s=120.0),
    Cause.UNAVAILABLE: RetryRule(tries=5, first_s=1.0, factor=30.0, max_s=30.0),
    Cause.MALFORMED: RetryRule(tries=3, first_s=0.5, max_s=10.0),
    Cause.SANDBOX: RetryRule(tries=3, first_s=1.0, max_s=30.0),
    Cause.ENGINE: RetryRule(tries=2, first_s=0.5),
    Cause.SOURCE: RetryRule(tries=2, first_s=2.0),
}


def retry_delay_s(
    cause: Cause,
    failures: int,
    *,
    retry_after_s: float | None = None,
    rng: random.Random,
    table: Mapping[Cause, RetryRule] = RETRY_TABLE,
) -> float | None:
    """Return the seconds to wait before the next try after ``failures`` (≥ 1) failed tries, or None to stop.

    ``retry_after_s``, requested by the provider, is a lower bound and may exceed the maximum delay.
    """
    rule = table.get(cause)
    if rule is None or failures >= rule.tries:
        return None
    return wait_s(rule, failures, retry_after_s, rng)


def wait_s(rule: RetryRule, failures: int, retry_after_s: float | None, rng: random.Random) -> float:
    """Return the seconds to wait after ``failures`` (≥ 1) failures, without a bound on their number."""
    delay = min(rule.first_s * rule.factor ** min(failures - 1, _MAX_EXPONENT), rule.max_s)
    delay *= 1 + rule.jitter * rng.uniform(-1, 1)
    if retry_after_s is None or retry_after_s <= delay:
        return delay
    # Never sooner than requested, and not much later.
    return retry_after_s + min(retry_after_s * rule.jitter, _MAX_JITTER_S) * rng.random()


def mark_given_up(error: _E) -> _E:
    """Mark ``error`` as already retried as often as allowed, and return it."""
    setattr(error, _MARK, True)
    return error


def is_given_up(error: BaseException) -> bool:
    """Whether ``mark_given_up`` was called for ``error``."""
    return bool(getattr(error, _MARK, False))
