"""Upper bound and minimum of the cost of a call, the output cap that a budget allows, and the billed cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from codetaste.errors import BudgetExceeded
from codetaste.llm.wire.common.output_cap import MIN_OUTPUT_TOKENS, lower_output
from codetaste.orchestration.budget.cost import Cost

if TYPE_CHECKING:
    from codetaste.llm.messages import Reply, Request, Usage
    from codetaste.llm.price import Price
    from codetaste.orchestration.budget.budget import Budget


_MAX_TOKENS = 1_000_000_000
"""No call has more tokens; a higher count is not a count."""


class TokenBound(Protocol):
    """Bounds the tokens of prompts; ``overhead_tokens`` may be added by the provider to each of them."""

    @property
    def overhead_tokens(self) -> int:
        """Tokens that the provider may add to every prompt."""
        ...

    def tokens(self, request: Request) -> int:
        """Return an upper bound of the prompt tokens of ``request``, by the provider's earlier counts."""
        ...

    def tokens_by_size(self, request: Request) -> int:
        """Return an upper bound that holds even if the provider counts what it has not counted before."""
        ...

    def learn(self, request: Request, reply: Reply) -> None:
        """Store the provider's count."""
        ...


@dataclass(frozen=True, slots=True)
class PricedRequest:
    """A request with a bound of its prompt tokens, its maximum cost, and the cost with a minimal reply.

    ``risk`` is what it may cost beyond that if the provider counts what it has not counted before.
    """

    request: Request
    prompt_tokens: int
    max_cost: Cost
    min_cost: Cost
    risk: Cost


def price_request(
    model_id: str, request: Request, bound: TokenBound, price: Price | None, budget: Budget
) -> PricedRequest:
    """Return the cost bounds of ``request``, whose prompt has at most as many tokens as ``bound`` says.

    Raises:
        BudgetExceeded: the budget is in dollars, and the model has no price.
    """
    if price is None and any(node.limits.usd is not None for node in budget.chain):
        raise BudgetExceeded(f"model {model_id} has no known price; write price = {{ … }} in [[models]]")
    prompt, output = bound.tokens(request), request.max_output_tokens
    wanted = bound_cost(price, prompt, output)
    risk = bound_cost(price, max(prompt, bound.tokens_by_size(request)), output) - wanted
    return PricedRequest(request, prompt, wanted, min_cost(request, prompt, price), risk)


def min_cost(request: Request, prompt: int, price: Price | None) -> Cost:
    """Return an upper bound of the cost of ``request`` with the shortest useful reply."""
    return bound_cost(price, prompt, min(request.max_output_tokens, MIN_OUTPUT_TOKENS))


def bound_cost(price: Price | None, prompt: int, output: int) -> Cost:
    """Return an upper bound of the cost of a call with at most so many tokens."""
    usd = Decimal(0) if price is None else price.bound_usd(prompt, output)
    return Cost(usd, prompt + output)


def cap_to_budget(priced: PricedRequest, granted: Cost, price: Price | None) -> Request:
    """Return the request with its output capped at what the granted money pays for."""
    cap = min(priced.request.max_output_tokens, granted.tokens - priced.prompt_tokens)
    if price is not None:
        affordable = price.affordable_output(priced.prompt_tokens, granted.usd)
        cap = cap if affordable is None else min(cap, affordable)
    return lower_output(priced.request, cap)


def billed_cost(usage: Usage | None, price: Price | None) -> Cost | None:
    """Return the billed cost, or None if the provider reported no usage, or one that no call can have."""
    if usage is None:
        return None
    counts = (usage.input, usage.cache_read, usage.cache_write, usage.output)
    if not all(type(count) is int and 0 <= count <= _MAX_TOKENS for count in counts):
        return None
    return Cost(Decimal(0) if price is None else price.cost_usd(usage), usage.total)


def format_cost(cost: Cost) -> str:
    """Format a cost with its tokens."""
    return f"${cost.usd} ({cost.tokens} tokens)"
