"""Upper bound and minimum of the cost of a call, the output cap that a budget allows, and the billed cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from codetaste.errors import BudgetExceeded
from codetaste.llm.metering.prompt_bound import PLAUSIBLE_FACTOR
from codetaste.llm.wire.common.billed_features import (
    MIN_OUTPUT_TOKENS,
    lower_output,
    separately_billed_options,
)
from codetaste.orchestration.budget.cost import Cost

if TYPE_CHECKING:
    from codetaste.llm.messages import Request, Usage
    from codetaste.llm.price import Price
    from codetaste.orchestration.budget.budget import Budget


@dataclass(frozen=True, slots=True)
class PricedRequest:
    """A request with a bound of its prompt tokens, its maximum cost, and the cost with a minimal reply."""

    request: Request
    prompt_tokens: int
    max_cost: Cost
    min_cost: Cost


def price_request(
    model_id: str, request: Request, prompt: int, price: Price | None, budget: Budget
) -> PricedRequest:
    """Return the cost bounds of ``request``, whose prompt has at most ``prompt`` tokens.

    Raises:
        BudgetExceeded: the budget is in dollars, and the call has no known bound in dollars.
    """
    if any(node.limits.usd is not None for node in budget.chain):
        if price is None:
            raise BudgetExceeded(f"model {model_id} has no known price; write price = {{ … }} in [[models]]")
        if separate := separately_billed_options(request.options):
            raise BudgetExceeded(
                f"model {model_id}: {', '.join(separate)} is billed separately from tokens; "
                "remove it from options"
            )
    wanted = _bound(price, prompt, request.max_output_tokens)
    return PricedRequest(request, prompt, wanted, min_cost(request, prompt, price))


def min_cost(request: Request, prompt: int, price: Price | None) -> Cost:
    """Return an upper bound of the cost of ``request`` with the shortest useful reply."""
    return _bound(price, prompt, min(request.max_output_tokens, MIN_OUTPUT_TOKENS))


def _bound(price: Price | None, prompt: int, output: int) -> Cost:
    usd = Decimal(0) if price is None else price.bound_usd(prompt, output)
    return Cost(usd, prompt + output)


def cap_to_budget(priced: PricedRequest, granted: Cost, price: Price | None) -> Request:
    """Return the request with its output capped at what the granted money pays for."""
    cap = min(priced.request.max_output_tokens, granted.tokens - priced.prompt_tokens)
    if price is not None:
        affordable = price.affordable_output(priced.prompt_tokens, granted.usd)
        cap = cap if affordable is None else min(cap, affordable)
    return lower_output(priced.request, cap)


def plausible_cost(usage: Usage | None, granted: Cost, price: Price | None) -> Cost | None:
    """Return the billed cost, or None if the provider reported no usage or an implausible one."""
    if usage is None:
        return None
    counts = (usage.input, usage.cache_read, usage.cache_write, usage.output)
    if not all(type(count) is int and count >= 0 for count in counts):
        return None
    cost = Cost(Decimal(0) if price is None else price.cost_usd(usage), usage.total)
    most = Cost(granted.usd * PLAUSIBLE_FACTOR, granted.tokens * PLAUSIBLE_FACTOR)
    return cost if cost <= most else None
