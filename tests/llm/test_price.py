from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Usage
from codetaste.llm.price import Price
from codetaste.llm.price_table import agent_option_problems, budget_problems, price_of

amounts = st.decimals(0, 10_000, places=6)
counts = st.integers(0, 10**12)


def model(**fields: object) -> ModelConfig:
    return ModelConfig.model_validate({"id": "m", "provider": "anthropic", "model": "x", **fields})


@given(st.tuples(amounts, amounts, amounts, amounts), st.tuples(counts, counts, counts, counts))
@settings(max_examples=150, deadline=None)
def test_cost_is_exact_to_the_last_digit(
    prices: tuple[Decimal, Decimal, Decimal, Decimal], used: tuple[int, int, int, int]
) -> None:
    price = Price(input=prices[0], output=prices[1], cache_read=prices[2], cache_write=prices[3])
    cost = price.cost_usd(Usage(input=used[0], output=used[1], cache_read=used[2], cache_write=used[3]))
    exact = sum((Fraction(p) * n for p, n in zip(prices, used, strict=True)), Fraction(0)) / 10**6
    assert Fraction(cost) == exact
    assert Fraction(price.bound_usd(used[0] + used[2] + used[3], used[1])) >= exact


rates = st.fixed_dictionaries(
    {kind: st.decimals(0, 100, places=3) for kind in ("input", "output", "cache_read", "cache_write")}
)
thresholds = st.lists(st.integers(1, 400), max_size=3, unique=True).map(sorted)
few = st.integers(0, 300)


@st.composite
def prices(draw: st.DrawFn) -> dict[str, Any]:
    """A price with up to three thresholds; above one, tokens may even be cheaper."""
    above = [{**draw(rates), "tokens": threshold} for threshold in draw(thresholds)]
    return {**draw(rates), "above": above}


def exact_cost(price: dict[str, Any], used: dict[str, int]) -> Fraction:
    """Compute the cost of a call: the last threshold below its prompt decides for all tokens."""
    at: dict[str, Any] = price
    for longer in price["above"]:
        if used["input"] + used["cache_read"] + used["cache_write"] > longer["tokens"]:
            at = longer
    return sum((Fraction(at[kind]) * count for kind, count in used.items()), Fraction(0)) / 10**6


@given(
    prices(),
    st.fixed_dictionaries(dict.fromkeys(("input", "output", "cache_read", "cache_write"), few)),
    few,
    few,
)
@settings(max_examples=300, deadline=None)
def test_cost_never_exceeds_bound(
    table: dict[str, Any], used: dict[str, int], more_prompt: int, more_output: int
) -> None:
    price = Price.model_validate(table)
    assert Fraction(price.cost_usd(Usage(**used))) == exact_cost(table, used)
    prompt = used["input"] + used["cache_read"] + used["cache_write"]
    bound = price.bound_usd(prompt + more_prompt, used["output"] + more_output)
    assert exact_cost(table, used) <= Fraction(bound)


@given(prices(), few, st.decimals(0, 1, places=7))
@settings(max_examples=300, deadline=None)
def test_affordable_output_is_the_maximum_within_budget(
    table: dict[str, Any], prompt: int, usd: Decimal
) -> None:
    price = Price.model_validate(table)
    cap = price.affordable_output(prompt, usd)
    if cap is None:
        assert price.bound_usd(prompt, 10**9) <= usd
    elif cap >= 0:
        assert price.bound_usd(prompt, cap) <= usd < price.bound_usd(prompt, cap + 1)
    else:
        assert price.bound_usd(prompt, 0) > usd


def test_long_context_price_starts_one_token_above_threshold() -> None:
    price = Price.model_validate(
        {"input": 3, "output": 15, "above": [{"tokens": 200_000, "input": 6, "output": 22.5}]}
    )
    assert price.cost_usd(Usage(input=199_000, cache_read=1_000, output=1_000)) == Decimal("0.615")
    assert price.cost_usd(Usage(input=199_000, cache_read=1_001, output=1_000)) == Decimal("1.222506")


def test_cached_tokens_cost_full_price_unless_configured() -> None:
    price = Price.model_validate({"input": 3.0, "output": 15})
    assert price.cache_read == price.cache_write == 3
    with_cache_price = Price.model_validate({"input": 3, "output": 15, "cache_write": "3.75"})
    assert with_cache_price.bound_usd(1_000_000, 0) == Decimal("3.75")


@pytest.mark.parametrize(
    "table", [{"input": 1}, {"input": -1, "output": 1}, {"input": 1, "output": 1, "in": 2}]
)
def test_invalid_price_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Price.model_validate(table)


def test_model_without_price_cannot_run_under_dollar_budget() -> None:
    (problem,) = budget_problems(model())
    assert problem.startswith("models[m].price: not known")
    assert budget_problems(model(price={"input": 1, "output": 2})) == []


@pytest.mark.parametrize(
    ("provider", "options"),
    [
        ("anthropic", {"tools": [{"type": "custom", "name": "g"}, {"name": "h"}], "temperature": 0.1}),
        (
            "anthropic",
            {"cache_control": {"type": "ephemeral", "ttl": "1h"}, "thinking": {"type": "adaptive"}},
        ),
        ("anthropic", {"cache_control": False, "betas": ["effort-2025-11-24"], "speed": "fast"}),
        ("openai", {"include": [], "store": False, "reasoning": {"effort": "high"}, "service_tier": "flex"}),
        ("openai-chat", {"n": 1, "output_cap": "max_tokens", "send_reasoning": False, "stream_options": {}}),
        ("scripted", {"anything": {"at": "all"}}),
    ],
)
def test_options_billed_by_tokens_can_run_under_dollar_budget(provider: str, options: dict[str, Any]) -> None:
    config = model(provider=provider, price={"input": 0, "output": 0}, options=options)
    assert budget_problems(config) == []


@pytest.mark.parametrize(
    ("provider", "options", "named"),
    [
        ("anthropic", {"tools": [{"type": "web_search_20250305"}]}, "tools[].type=web_search_20250305"),
        ("anthropic", {"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
        ("anthropic", {"context_management": [{"type": "compaction"}]}, "context_management"),
        ("anthropic", {"fallbacks": "default"}, "fallbacks"),
        ("anthropic", {"betas": ["context-1m-2025-08-07"]}, "betas[]=context-1m-2025-08-07"),
        ("openai", {"tools": [{"type": "function", "name": "f"}, {"type": "mcp"}]}, "tools[].type=mcp"),
        ("openai", {"background": True}, "background"),
        ("openai", {"previous_response_id": "r"}, "previous_response_id"),
        ("openai", {"reasoning": {"mode": "pro"}}, "reasoning.mode"),
        ("openai-chat", {"n": 3}, "n=3"),
        ("openai-chat", {"web_search_options": {"search_context_size": "low"}}, "web_search_options"),
        ("openai-chat", {"prediction": {"type": "content", "content": "x"}}, "prediction"),
        ("openai-chat", {"modalities": ["text", "audio"]}, "modalities"),
        ("openai-chat", {"search_parameters": {"mode": "auto"}}, "search_parameters"),
    ],
)
def test_other_options_run_under_dollar_budget_only_if_opened(
    provider: str, options: dict[str, Any], named: str
) -> None:
    table = {"provider": provider, "price": {"input": 1, "output": 2}, "options": options}
    (problem,) = budget_problems(model(**table))
    assert problem.startswith("models[m].options.")
    assert f'allow = {{ "{named}" = … }} in [[models]] opens it' in problem
    opened = model(**table, allow={named: "0.05"})
    assert budget_problems(opened) == []
    price = price_of(opened)
    assert price is not None
    assert price.bound_usd(0, 0) == price.cost_usd(Usage()) == Decimal("0.05")
    assert (price.affordable_output(0, Decimal("0.04")), price.affordable_output(0, Decimal("0.07"))) == (
        -1,
        10_000,
    )


def test_options_of_an_agent_are_checked_too() -> None:
    (problem,) = agent_option_problems(model(), {"mcp_servers": []})
    assert problem.startswith("options.mcp_servers = [] is not allowed")
    assert agent_option_problems(model(), {"temperature": 0.5}) == []
    assert agent_option_problems(model(provider="scripted"), {"mcp_servers": []}) == []
