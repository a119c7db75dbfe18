"""Which failures are tried again, how often and after how long: one table, for jobs and for model calls.

Whoever has tried a call as often as the table allows says so with ``give_up``, so that the job around it is
not tried again for the same reason: retries do not multiply.

What the figures are made for:

- *Rate limits* of one model are waited out by all its callers together (``llm/ratelimit.py``), for as long
  as the model's ``rate_limit_patience`` says. ``tries`` bounds a call that is refused again and again while
  others are served: it may be too large for the account's limit.
- *Unavailable* is a reset, a cut stream, a server error or a time-out. Each try that may have been billed
  stays charged at its reservation until the provider's record is known, so five of them can use up a small
  budget: the job then ends as ``budget_exceeded``, and not a cent more than the budget is spent. Money goes
  by the number of tries and patience by the waits between them, so the waits are long: five tries bear 40
  seconds, a server's restart. The same for a reset of a connection that had been idle before any byte of
  the response: nobody can tell whether the provider had begun (clients keep idle connections for seconds
  only, so that it is rare). A time-out is worth as many tries, each as long as the model's ``timeout``; a
  job's ``time_limit`` ends them sooner.
- *Malformed* replies are billed as a rule, and a model that answers nonsense does so again: three tries.
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
_ENOUGH = 60
"""Steps after which a wait has long been its longest, and a power is still a float."""
_LATEST_S = 5.0
"""Seconds by which chance delays a wait that the provider asked for, at most."""


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
    Cause.UNAVAILABLE: Retry(tries=5, first_s=1.0, factor=3.0),
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
    return wait_s(rule, failures, retry_after_s, rng)


def wait_s(rule: Retry, failures: int, retry_after_s: float | None, rng: random.Random) -> float:
    """Return the seconds to wait after ``failures`` (≥ 1) failures, however many they are."""
    delay = min(rule.first_s * rule.factor ** min(failures - 1, _ENOUGH), rule.longest_s)
    delay *= 1 + rule.jitter * rng.uniform(-1, 1)
    if retry_after_s is None or retry_after_s <= delay:
        return delay
    # Never sooner than asked, and not much later.
    return retry_after_s + min(retry_after_s * rule.jitter, _LATEST_S) * rng.random()


def give_up(error: _E) -> _E:
    """Mark ``error`` as tried often enough already, and return it."""
    setattr(error, _MARK, True)
    return error


def given_up(error: BaseException) -> bool:
    """Whether somebody has tried often enough already."""
    return bool(getattr(error, _MARK, False))
