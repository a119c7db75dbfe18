from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Usage
from codetaste.llm.pricing import Price, budget_problems

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


@given(amounts, amounts, st.integers(0, 10**7), st.decimals(0, 1000, places=9))
@settings(max_examples=150, deadline=None)
def test_affordable_output_is_the_most_that_fits(
    inp: Decimal, out: Decimal, prompt: int, usd: Decimal
) -> None:
    price = Price(input=inp, output=out)
    cap = price.affordable_output(prompt, usd)
    if cap is None:
        assert out == 0
    elif cap >= 0:
        assert price.bound_usd(prompt, cap) <= usd < price.bound_usd(prompt, cap + 1)
    else:
        assert price.bound_usd(prompt, 0) > usd


def test_cached_tokens_cost_as_much_as_others_unless_the_config_says_otherwise() -> None:
    price = Price.model_validate({"input": 3.0, "output": 15})
    assert price.cache_read == price.cache_write == 3
    assert Price.model_validate({"input": 3, "output": 15, "cache_write": "3.75"}).dearest_input == Decimal(
        "3.75"
    )


@pytest.mark.parametrize(
    "table", [{"input": 1}, {"input": -1, "output": 1}, {"input": 1, "output": 1, "in": 2}]
)
def test_a_price_that_makes_no_sense_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Price.model_validate(table)


def test_a_model_without_a_price_cannot_run_under_a_budget_in_dollars() -> None:
    (problem,) = budget_problems(model())
    assert problem.startswith("models[m].price: not known")
    assert budget_problems(model(price={"input": 1, "output": 2})) == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
        ({"n": 3}, "n"),
    ],
)
def test_what_is_billed_apart_cannot_run_under_a_budget_in_dollars(
    options: dict[str, object], named: str
) -> None:
    (problem,) = budget_problems(model(price={"input": 1, "output": 2}, options=options))
    assert named in problem
