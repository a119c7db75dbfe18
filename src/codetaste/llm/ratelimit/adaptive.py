"""Adaptive limit (AIMD) of the requests in flight at a provider, learnt from its refusals and answers.

A state machine without a clock: each method takes the time, in seconds of one monotonic clock. It decides
whether one more request may be sent now; ``ratelimit/limiter.py`` decides which caller sends it.

The limit falls and rises like a TCP sender's window, because the problem is the same: an unknown capacity,
shared with unknown other clients, and one signal when it is exceeded. Three things are adapted to language
models, whose refusals come within a second and whose answers take minutes:

- The limit falls once per *round*. The refusal of a request sent since the last pause begins a new round: all
  callers pause, and the limit falls to seven tenths (TCP's half would waste capacity for minutes, since each
  step back up takes a round of replies; Inspect uses eight tenths and a fixed 15 seconds in place of rounds).
  Refusals of requests sent before the round belong to the same congestion; they may only prolong the pause.
- After a pause one request probes. The number of requests that may follow doubles with every ``step_s``
  without a refusal, and grows with every answer, up to the limit: a slow start that need not wait for answers
  and avoids a stampede. A refusal lowers the number reached so far, so that a limit that is far too high is
  corrected in one step.
- A refused probe lengthens the back-off and does not change the limit (like a repeated time-out in RFC 5681):
  it shows that the provider serves no request now, not that it serves fewer at once.

If a provider says how long to wait, no request is sent earlier, but the patience caps each pause. A
provider is given up after ``REFUSED_ROUNDS`` rounds without an answer, over at least the patience, with no
request in flight that may still be answered. The patience counts from the first of these refusals and
includes the pauses that the provider requested: if a request is refused again after such a pause, the
provider's estimate was wrong. So a provider that always refuses is given up within the patience plus one
pause, or after three pauses if these are as long as the patience. From then on, until it answers or has
received no request for as long as the patience, one more refusal gives it up again: the jobs of a long
queue then fail a few seconds apart instead of each after a patience of its own. Requests that may have been
billed although they failed are no matter of patience: after a pause, no more are sent until the probe is
answered, and the third round of them in a row gives the provider up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DECREASE_FACTOR = 0.7
"""Factor by which a new refused round lowers the limit."""
STEP_S = 2.0
"""Seconds within which a refusal has certainly arrived, but perhaps no answer."""
REFUSED_ROUNDS = 3
"""Consecutive refused rounds before a provider is given up."""
AFTER_GIVING_UP_S = 5.0
"""Seconds until a provider that was given up may receive the next request."""
_STEPS = 30
"""Doublings that exceed any limit."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The effect of a refusal; ``new_round`` is False if the request was sent in an earlier round."""

    new_round: bool
    pause_s: float = 0.0
    limit_before: int = 0
    limit_after: int = 0
    gave_up: bool = False
    refused_rounds: int = 0
    refused_for_s: float = 0.0


class AdaptiveLimit:
    """The limit for one provider, key and model, between 1 and ``maximum``; starts at ``maximum``."""

    def __init__(self, maximum: int, *, patience_s: float, step_s: float = STEP_S) -> None:
        self.limit = self._maximum = _positive(maximum)
        self.patience_s, self._step_s = patience_s, step_s
        self.in_flight = self.refusals = self.successes = 0
        self.paused_until_s = -math.inf
        self._round = 0
        # In this round: requests in flight, and answers since the limit last changed.
        self._fresh = self._clean = 0
        # The slow start: requests of this round that may be in flight, and since when; None when it is over.
        self._window: int | None = None
        self._step_began_s: float | None = None
        self._steps_by_time = True
        # Rounds refused since the last answer, and since when.
        self._in_a_row = 0
        self._since_s: float | None = None

    @property
    def maximum(self) -> int:
        """The highest limit. If the limit has never fallen, it follows; requests in flight finish."""
        return self._maximum

    @maximum.setter
    def maximum(self, most: int) -> None:
        never_fell = self.limit == self._maximum
        self._maximum = _positive(most)
        self.limit = most if never_fell else min(self.limit, most)

    def has_room(self, now_s: float) -> bool:
        """Whether one more request may be sent now."""
        self._take_steps(now_s)
        if now_s < self.paused_until_s or self.in_flight >= self.limit:
            return False
        return self._window is None or self._fresh < self._window

    def opens_at(self, now_s: float) -> float:
        """Return when waiting may make room if there is none now; infinite if only a reply can."""
        if now_s < self.paused_until_s:
            return self.paused_until_s
        if self._window is None or self._step_began_s is None or self.in_flight >= self.limit:
            return math.inf
        return self._step_began_s + self._step_s

    def start_request(self, now_s: float) -> int:
        """Count a request as sent, and return the number of its round."""
        self.in_flight += 1
        self._fresh += 1
        if self._window is not None and self._step_began_s is None and self._steps_by_time:
            self._step_began_s = now_s
        return self._round

    def is_valid(self, round_number: int, now_s: float) -> bool:
        """Whether a request counted in round ``round_number`` may still be sent.

        It may not after a new pause has begun, or if the limit fell below the number in flight.
        """
        return round_number == self._round and now_s >= self.paused_until_s and self.in_flight <= self.limit

    def release(self, round_number: int) -> None:
        """Count the end of a request that carries no information about the provider's load."""
        self._leave(round_number)
        if round_number == self._round and self._window == 1 and not self._fresh:
            self._step_began_s = None  # the probe gave no information; the next one may

    def record_success(self, round_number: int, now_s: float) -> None:
        """Count an answer; the limit rises by one after as many answers as it allows at once."""
        self._leave(round_number)
        self.successes += 1
        self._in_a_row, self._since_s, self._steps_by_time = 0, None, True
        if round_number != self._round:
            return  # it was sent before the limit fell, and gives no information about the new limit
        self._take_steps(now_s)
        if self._window is not None:
            self._window += 1
            return
        self._clean += 1
        if self._clean >= self.limit:
            self._clean = 0
            self.limit = min(self.limit + 1, self._maximum)

    def record_refusal(
        self,
        round_number: int,
        now_s: float,
        requested_s: float | None,
        wait_s: Callable[[int], float],
        *,
        billed: bool = False,
    ) -> Backoff:
        """Count a refusal and start or prolong a pause.

        Args:
            round_number: the round in which the request was sent.
            now_s: the time now.
            requested_s: the wait that the provider requested, None if it requested none.
            wait_s: returns the pause after a number of refused rounds.
            billed: whether the refused request may have been billed: then there is no patience.
        """
        self._leave(round_number)
        self.refusals += 1
        if round_number != self._round:
            if requested_s is not None and now_s + min(requested_s, self.patience_s) > self.paused_until_s:
                self._pause(now_s, requested_s)
            return Backoff(new_round=False)
        before = self.limit
        self._take_steps(now_s)
        if self._window != 1:
            reached = before if self._window is None else min(self._window, before)
            self.limit = max(1, int(reached * DECREASE_FACTOR))
        if self._since_s is None or now_s > self.paused_until_s + self.patience_s:
            # After a long time without a request, earlier refusals no longer count.
            self._in_a_row, self._since_s = 0, now_s
        self._in_a_row += 1
        over_s = now_s - self._since_s
        self._steps_by_time = not billed
        tried = self._in_a_row >= REFUSED_ROUNDS and not self.in_flight
        gave_up = tried and (billed or over_s >= self.patience_s)
        pause_s = min(wait_s(self._in_a_row), AFTER_GIVING_UP_S if gave_up and not billed else math.inf)
        pause_s = self._pause(now_s, pause_s)
        return Backoff(
            new_round=True,
            pause_s=pause_s,
            limit_before=before,
            limit_after=self.limit,
            gave_up=gave_up,
            refused_rounds=self._in_a_row,
            refused_for_s=over_s,
        )

    def _pause(self, now_s: float, seconds: float) -> float:
        """Begin a round: no request for ``seconds``, then one probe."""
        seconds = min(seconds, self.patience_s)
        self.paused_until_s = now_s + seconds
        self._round += 1
        self._fresh = self._clean = 0
        self._window, self._step_began_s = 1, None
        return seconds

    def _leave(self, round_number: int) -> None:
        self.in_flight -= 1
        self._fresh -= round_number == self._round

    def _take_steps(self, now_s: float) -> None:
        """Advance the slow start to the time, and end it at the limit."""
        if self._window is None:
            return
        if self._step_began_s is not None:
            steps = int((now_s - self._step_began_s) / self._step_s)
            if steps > 0:
                self._window *= 2 ** min(steps, _STEPS)
                self._step_began_s += steps * self._step_s
        if self._window >= self.limit and self._window > 1:
            self._window = self._step_began_s = None


def _positive(most: int) -> int:
    if most < 1:
        raise ValueError(f"{most}: at least one request at once must be allowed")
    return most
