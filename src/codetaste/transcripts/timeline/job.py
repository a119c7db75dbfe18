"""The timeline of a job: attempts, turns with their cost, tool calls, and waits apart from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.orchestration.budget.node import CallState
    from codetaste.orchestration.wait import Wait


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """The calls of a model for one reply, one unless calls failed. Times are seconds of the epoch.

    Attributes:
        effect: name of the effect in the journal.
        model: the model's id.
        state: state of the last call.
        began: when the first call was sent.
        ended: when the reply had arrived; None if it has not.
        settled_usd: what was billed.
        unknown_usd: what may have been billed: the amounts reserved for calls whose cost is unknown.
        reserved_usd: the amount reserved for a call in flight.
        tokens: of the reply, by kind; "reasoning" is part of "output".
        calls: number of calls.
    """

    effect: str
    model: str
    state: CallState
    began: float
    ended: float | None
    settled_usd: Decimal = Decimal(0)
    unknown_usd: Decimal = Decimal(0)
    reserved_usd: Decimal = Decimal(0)
    tokens: Mapping[str, int] | None = None
    calls: int = 1


@dataclass(frozen=True, slots=True)
class ToolSpan:
    """One tool call, or other work, whose result is an effect of the job.

    ``began`` is when the reply or the effect before it had arrived.
    """

    effect: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class WaitSpan:
    """One wait. ``ended`` is None if it goes on; a wait that its process did not outlive ends with it."""

    wait: Wait
    began: float
    ended: float | None


@dataclass(frozen=True, slots=True)
class AttemptSpan:
    """One attempt at the job; ``cause`` says why another followed, "" if none did."""

    number: int
    began: float
    ended: float | None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class JobTimeline:
    """All that the journal says about when one job did what.

    Attributes:
        key: the job's key.
        created: when it was added.
        ended: when it ended; None if it has not.
        attempts: its attempts, in order.
        turns: its turns by their beginning.
        tools: its tool calls by their end.
        waits: its waits by their beginning, those before its first attempt included.
        retries: retried calls by model and cause.
    """

    key: str
    created: float
    ended: float | None
    attempts: tuple[AttemptSpan, ...] = ()
    turns: tuple[TurnSpan, ...] = ()
    tools: tuple[ToolSpan, ...] = ()
    waits: tuple[WaitSpan, ...] = ()
    retries: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def began(self) -> float:
        """When its first attempt began; when it was added if none has."""
        return self.attempts[0].began if self.attempts else self.created

    def waited_s(self, until: float, since: float = 0.0) -> float:
        """Return the seconds from ``since`` in which it waited, overlaps once; ``until`` ends open waits."""
        return waited_s(self.waits, until, since)


def waited_s(waits: Iterable[WaitSpan], until: float, since: float = 0.0) -> float:
    """Return the seconds that any of some waits took from ``since`` to ``until``, overlaps once."""
    total, last = 0.0, since
    for span in sorted(waits, key=lambda span: span.began):
        ended = until if span.ended is None else min(span.ended, until)
        total += max(0.0, ended - max(span.began, last))
        last = max(last, ended)
    return total
