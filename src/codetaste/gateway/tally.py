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
    from codetaste.orchestration.money import BudgetSnapshot


@dataclass(slots=True)
class SessionUsage:
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
    tokens: Usage = field(default_factory=Usage)
    budget_refusal: str = ""
    provider_failure: str = ""
    stopped: anyio.Event = field(default_factory=anyio.Event)
    _at_start: BudgetSnapshot = field(init=False)

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

    def count_reply(self, reply: Reply, *, is_agent_turn: bool) -> None:
        """Count a reply; it counts as a turn if ``main``, that is if its request had tools."""
        self.provider_failure = ""
        if is_agent_turn:
            self.turns += 1
            self.tool_calls += len(reply.message.tool_calls)
        if reply.usage is not None:
            self.tokens = _sum(self.tokens, reply.usage)

    def record_refusal(self, why: str) -> None:
        """Record that the budget refused a request, and set ``stopped``."""
        self.budget_refusal = self.budget_refusal or why
        self.stopped.set()


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(*(getattr(one, kind.name) + getattr(other, kind.name) for kind in fields(Usage)))
