"""How many requests a provider bears at once, learnt from what it refuses and what it answers.

A state machine without a clock: every step is told the time, in seconds of one monotonic clock. It decides
whether one more request may be sent now; who sends it is in ``ratelimit.py``.

The limit falls and climbs as a TCP sender's window does (AIMD), because the problem is the same: a capacity
that nobody tells, shared with strangers, and one signal when it is passed. Three things are adapted to
language models, whose refusals come within a second and whose answers take minutes:

- One fall for each *round*. A refusal of a request that was sent since the last pause begins a new round:
  everybody pauses, and the limit falls to seven tenths (half, as TCP has it, would waste capacity for
  minutes, since climbing back takes a round of replies a step; Inspect takes eight tenths and a fixed 15
  seconds in place of rounds). Refusals of requests that were sent before it are the same congestion, and
  change nothing but the pause, which they may prolong.
- After a pause one request probes, and the number of those that may follow doubles with every ``step_s`` in
  which none is refused, and grows with every answer, up to the limit: a slow start that need not wait for
  answers, and no herd. What falls is the number reached, so a limit that was far too high is left in one
  go.
- A refused probe lengthens the back-off and leaves the limit (as a repeated time-out does in RFC 5681): it
  says that the provider serves nobody now, not that it bears fewer at once.

Where a provider says how long to wait, nobody asks sooner, but the patience caps each pause. ``REFUSALS``
rounds without an answer, over at least the patience, with nothing in flight that may yet be answered, and
it is given up. The patience counts from the first of these refusals, pauses that the provider asked for
included: whoever waited as told and is refused again has been told wrong. So a provider that refuses for
ever is given up within the patience and a pause, or after three pauses where these are as long as the
patience. From then on, until it answers or is left alone for as long as the patience, one more refusal gives
it up again: the jobs of a long queue fail a few seconds apart, and not each after a patience of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SHARE_LEFT = 0.7
"""What a fall leaves of the limit."""
STEP_S = 2.0
"""Seconds in which a refusal has surely come, and an answer need not have."""
REFUSALS = 3
"""Rounds in a row that are refused before a provider is given up."""
AFTER_GIVING_UP_S = 5.0
"""Seconds until a provider that was given up is asked again, if anybody comes to ask it."""
_STEPS = 30
"""Doublings that are more than any limit."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a refusal has changed. ``new`` is False where it belongs to a round that was over before."""

    new: bool
    pause_s: float = 0.0
    before: int = 0
    after: int = 0
    gave_up: bool = False
    in_a_row: int = 0
    over_s: float = 0.0


class Congestion:
    """The limit of one provider, key and model, between 1 and ``most``; starts at ``most``."""

    def __init__(self, most: int, *, patience_s: float, step_s: float = STEP_S) -> None:
        self.limit = self._most = _positive(most)
        self.patience_s, self._step_s = patience_s, step_s
        self.in_flight = self.refused_in_all = self.answered_in_all = 0
        self.paused_until_s = -math.inf
        self._round = 0
        # Of this round: requests in flight, and answers since the limit last changed.
        self._fresh = self._clean = 0
        # The slow start: how many of this round may be in flight, and since when; None when it is over.
        self._window: int | None = None
        self._step_began_s: float | None = None
        # Rounds refused since the last answer, and since when.
        self._in_a_row = 0
        self._since_s: float | None = None

    @property
    def most(self) -> int:
        """The highest limit. Setting it lets a limit that never fell follow, and those in flight finish."""
        return self._most

    @most.setter
    def most(self, most: int) -> None:
        never_fell = self.limit == self._most
        self._most = _positive(most)
        self.limit = most if never_fell else min(self.limit, most)

    def room(self, now_s: float) -> bool:
        """Whether one more request may be sent now."""
        self._take_steps(now_s)
        if now_s < self.paused_until_s or self.in_flight >= self.limit:
            return False
        return self._window is None or self._fresh < self._window

    def opens_s(self, now_s: float) -> float:
        """Return when time alone may make room, where there is none now; infinite where only a reply can."""
        if now_s < self.paused_until_s:
            return self.paused_until_s
        if self._window is None or self._step_began_s is None or self.in_flight >= self.limit:
            return math.inf
        return self._step_began_s + self._step_s

    def sent(self, now_s: float) -> int:
        """Count a request as sent, and return the round it belongs to."""
        self.in_flight += 1
        self._fresh += 1
        if self._window is not None and self._step_began_s is None:
            self._step_began_s = now_s
        return self._round

    def current(self, of_round: int, now_s: float) -> bool:
        """Whether a request counted in ``of_round`` may still go.

        It may not once all were told to pause, or when the limit was lowered below what is in flight.
        """
        return of_round == self._round and now_s >= self.paused_until_s and self.in_flight <= self.limit

    def ended(self, of_round: int) -> None:
        """A request ended in a way that says nothing of the provider's load."""
        self._leave(of_round)
        if of_round == self._round and self._window == 1 and not self._fresh:
            self._step_began_s = None  # the probe told nothing; the next one does

    def answered(self, of_round: int, now_s: float) -> None:
        """A request was answered: the limit climbs by one after as many answers as it allows at once."""
        self._leave(of_round)
        self.answered_in_all += 1
        self._in_a_row, self._since_s = 0, None
        if of_round != self._round:
            return  # it was sent before the limit fell, and says nothing of the new one
        self._take_steps(now_s)
        if self._window is not None:
            self._window += 1
            return
        self._clean += 1
        if self._clean >= self.limit:
            self._clean = 0
            self.limit = min(self.limit + 1, self._most)

    def refused(
        self, of_round: int, now_s: float, asked_s: float | None, wait_s: Callable[[int], float]
    ) -> Refusal:
        """A request was refused; ``wait_s`` tells how long to pause after so many refused rounds.

        ``asked_s`` is what the provider asked for, None where it did not.
        """
        self._leave(of_round)
        self.refused_in_all += 1
        if of_round != self._round:
            if asked_s is not None and now_s + min(asked_s, self.patience_s) > self.paused_until_s:
                self._pause(now_s, asked_s)
            return Refusal(new=False)
        before = self.limit
        self._fall(now_s)
        self._count_refusal(now_s)
        over_s = now_s - (now_s if self._since_s is None else self._since_s)
        gave_up = self._in_a_row >= REFUSALS and over_s >= self.patience_s and not self.in_flight
        pause_s = min(wait_s(self._in_a_row), AFTER_GIVING_UP_S if gave_up else math.inf)
        pause_s = self._pause(now_s, pause_s)
        return Refusal(
            new=True,
            pause_s=pause_s,
            before=before,
            after=self.limit,
            gave_up=gave_up,
            in_a_row=self._in_a_row,
            over_s=over_s,
        )

    def _fall(self, now_s: float) -> None:
        self._take_steps(now_s)
        reached = self.limit if self._window is None else min(self._window, self.limit)
        if self._window != 1:
            self.limit = max(1, int(reached * SHARE_LEFT))

    def _count_refusal(self, now_s: float) -> None:
        if now_s > self.paused_until_s + self.patience_s:
            self._in_a_row, self._since_s = 0, None  # nobody has asked for long: the last ones are history
        if self._since_s is None:
            self._since_s = now_s
        self._in_a_row += 1

    def _pause(self, now_s: float, seconds: float) -> float:
        """Begin a round: nobody sends before ``seconds`` are over, and then one at first."""
        seconds = min(seconds, self.patience_s)
        self.paused_until_s = now_s + seconds
        self._round += 1
        self._fresh = self._clean = 0
        self._window, self._step_began_s = 1, None
        return seconds

    def _leave(self, of_round: int) -> None:
        self.in_flight -= 1
        self._fresh -= of_round == self._round

    def _take_steps(self, now_s: float) -> None:
        """Let the slow start go on as far as the time says, and end it at the limit."""
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
