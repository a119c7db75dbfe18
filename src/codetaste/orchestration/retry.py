"""Which failures are tried again, how often and after how long: one table, for jobs and for model calls.

Whoever has tried a call as often as the table allows says so with ``give_up``, so that the job around it is
not tried again for the same reason: retries do not multiply.
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


@dataclass(frozen=True, slots=True)
class Retry:
    """At most ``tries`` in all; the wait grows from ``first_s`` by ``factor`` up to ``longest_s``.

    ``jitter`` is the share of the delay that chance takes away or adds.
    """

    tries: int
    first_s: float
    factor: float = 2.0
    longest_s: float = 60.0
    jitter: float = 0.25


# A cause that is not here is never tried again: trying cannot mend a budget, a deadline, a config, a refusal,
# a missing recording, a full disk, or a fault of the program.
TABLE: Mapping[Cause, Retry] = {
    Cause.RATE_LIMIT: Retry(tries=8, first_s=2.0, longest_s=120.0),
    Cause.UNAVAILABLE: Retry(tries=5, first_s=1.0),
    Cause.MALFORMED: Retry(tries=3, first_s=0.5, longest_s=10.0),
    Cause.SANDBOX: Retry(tries=3, first_s=1.0, longest_s=30.0),
    Cause.ENGINE: Retry(tries=2, first_s=0.5),
    Cause.SOURCE: Retry(tries=2, first_s=2.0),
}


def delay_s(
    cause: Cause,
    failures: int,
    *,
    retry_after_s: float | None = None,
    rng: random.Random,
    table: Mapping[Cause, Retry] = TABLE,
) -> float | None:
    """Return the seconds to wait before the next try after ``failures`` (≥ 1) failed ones, or None to stop.

    ``retry_after_s``, what the provider asked for, is a lower bound and may pass the longest delay.
    """
    rule = table.get(cause)
    if rule is None or failures >= rule.tries:
        return None
    delay = min(rule.first_s * rule.factor ** (failures - 1), rule.longest_s)
    delay *= 1 + rule.jitter * rng.uniform(-1, 1)
    if retry_after_s is None or retry_after_s <= delay:
        return delay
    return retry_after_s * (1 + rule.jitter * rng.random())


def give_up(error: _E) -> _E:
    """Mark ``error`` as tried often enough already, and return it."""
    setattr(error, _MARK, True)
    return error


def given_up(error: BaseException) -> bool:
    """Whether somebody has tried often enough already."""
    return bool(getattr(error, _MARK, False))
