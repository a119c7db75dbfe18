"""``SessionUsage``: requests, turns, tokens and cost of a gateway session, as the gateway counts them."""

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
    """Usage counters of one session; the cost is all that its job has spent during the session.

    Attributes:
        budget: the job's budget node.
        requests: requests that reached a model or were refused by the budget.
        turns: answered requests with tools, which are the agent's turns.
        tool_calls: tool calls in the replies of these turns.
        tokens: sum over all replies whose usage is known.
        budget_refusal: why the budget refused a request, "" if it did not; all later ones are refused too.
        provider_failure: error of the last request that failed for good, "" if none or a later one succeeded.
        stopped: set when the agent cannot continue: the budget refused, or the journal cannot be written.
    """

    budget: Budget
    requests: int = 0
    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    refused: str = ""
    failed: str = ""
    stopped: anyio.Event = field(default_factory=anyio.Event)
    _at_start: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        """Record what the job had spent before."""
        self._at_start = self.budget.snapshot()

    @property
    def settled_usd(self) -> Decimal:
        """Cost known to have been billed, in US dollars."""
        return self.budget.settled.usd - self._at_start.settled.usd

    @property
    def unknown_usd(self) -> Decimal:
        """Upper bound of the cost that may have been billed besides, in US dollars."""
        return self.budget.unknown.usd - self._at_start.unknown.usd

    def answered(self, reply: Reply, *, main: bool) -> None:
        """Count a reply; it counts as a turn if ``main``, that is if its request had tools."""
        self.failed = ""
        if main:
            self.turns += 1
            self.tool_calls += len(reply.message.tool_calls)
        if reply.usage is not None:
            self.usage = _sum(self.usage, reply.usage)

    def refuse(self, why: str) -> None:
        """Record that the budget refused a request, and set ``stopped``."""
        self.refused = self.refused or why
        self.stopped.set()


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(*(getattr(one, kind.name) + getattr(other, kind.name) for kind in fields(Usage)))
