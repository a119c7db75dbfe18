"""What a job's agent has asked for so far, and what it came to: our own count, whatever the agent says."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import anyio

from codetaste.llm.messages import Usage

if TYPE_CHECKING:
    from decimal import Decimal

    from codetaste.llm.messages import Reply
    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.money import Snapshot


@dataclass(slots=True)
class Tally:
    """The count of one admission; the money is all that its job has spent meanwhile.

    Attributes:
        budget: the job's own node.
        requests: all that reached a model or were refused by the budget.
        turns: answered requests with tools: the agent's own turns.
        tool_calls: in the replies to these.
        usage: of all replies whose usage is known.
        refused: why the budget refused a request; all later ones are refused as well. "" if it has not.
        failed: the last request that its provider failed for good, "" if none or if a later one was answered.
        stopped: set when there is no use in going on: the budget has refused, or nothing can be recorded.
    """

    budget: Budget
    requests: int = 0
    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    refused: str = ""
    failed: str = ""
    stopped: anyio.Event = field(default_factory=anyio.Event)
    _before: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        """Remember what the job had spent before."""
        self._before = self.budget.snapshot()

    @property
    def settled_usd(self) -> Decimal:
        """What is known to have been billed, in US dollars."""
        return self.budget.settled.usd - self._before.settled.usd

    @property
    def unknown_usd(self) -> Decimal:
        """What may have been billed beside that, at most."""
        return self.budget.unknown.usd - self._before.unknown.usd

    def answered(self, reply: Reply, *, main: bool) -> None:
        """Count a reply; ``main`` are those to requests with tools."""
        self.failed = ""
        if main:
            self.turns += 1
            self.tool_calls += len(reply.message.tool_calls)
        if reply.usage is not None:
            self.usage = _sum(self.usage, reply.usage)

    def refuse(self, why: str) -> None:
        """Say that the budget has refused."""
        self.refused = self.refused or why
        self.stopped.set()


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(*(getattr(one, kind.name) + getattr(other, kind.name) for kind in fields(Usage)))
