"""Prices of the real ``genai-prices``: matching of model names, and use of an entry."""

from __future__ import annotations

import re
import socket
from decimal import Decimal
from importlib.metadata import version
from typing import Any

import pytest
from pydantic import ValidationError

from codetaste.llm.config import ModelConfig
from codetaste.llm.price import Price
from codetaste.llm.price_table import (
    PriceEntry,
    budget_problems,
    context_window_of,
    price_difference,
    price_entry,
    price_mismatch_checker,
)
from codetaste.llm.wire.protocols import PROTOCOLS

TABLE = f"genai-prices {version('genai-prices')}"


def entry(model: str, provider: str = "anthropic", **fields: Any) -> PriceEntry:
    return price_entry(model_config(model, provider, **fields))


def model_config(model: str, provider: str = "anthropic", **fields: Any) -> ModelConfig:
    return ModelConfig.model_validate({"id": "m", "provider": provider, "model": model, **fields})


def table_price(model: str, provider: str = "anthropic", **fields: Any) -> Price:
    found = entry(model, provider, **fields)
    assert found.price is not None, found.source
    return found.price


@pytest.mark.parametrize(
    ("provider", "model", "matched"),
    [
        ("anthropic", "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("anthropic", "claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4-5"),
        ("anthropic", "claude-opus-4-20250514", "anthropic/claude-opus-4-0"),
        ("anthropic", "claude-3-5-haiku-20241022", "anthropic/claude-3-5-haiku-latest"),
        ("openai", "gpt-5", "openai/gpt-5"),
        ("openai", "gpt-5-2025-08-07", "openai/gpt-5"),
        ("openai", "gpt-5-mini", "openai/gpt-5-mini"),
        ("openai-chat", "gpt-5-nano", "openai/gpt-5-nano"),
        ("openai-chat", "gpt-4o-2024-11-20", "openai/gpt-4o"),
        ("openai-chat", "gpt-4o-2024-05-13", "openai/gpt-4o-2024-05-13"),
    ],
)
def test_price_lookup_by_id_alias_or_snapshot_names_entry(provider: str, model: str, matched: str) -> None:
    found = entry(model, provider)
    assert found.price is not None
    assert found.source == f"{TABLE} {matched}"


@pytest.mark.parametrize(
    ("provider", "model", "message"),
    [
        ("anthropic", "claude-sonnet-4-5-turbo", 'price_as = "anthropic/claude-sonnet-4-5"'),
        ("anthropic", "claude-sonnet-4-5-2025092", 'price_as = "anthropic/claude-sonnet-4-5"'),
        ("anthropic", "claude-2.1", 'price_as = "anthropic/claude-2"'),
        ("anthropic", "claude-sonet-4-5", "did you mean 'claude-sonnet-4-5'"),
        ("anthropic", "gpt-5", "has no 'gpt-5' of anthropic"),
        ("openai", "gpt5-mini", "did you mean 'gpt-5-mini'"),
        ("openai", "gpt-5-mini-super", "did you mean"),
        ("openai", "ft:gpt-4o-2024-08-06:me::1", "has no 'ft:gpt-4o-2024-08-06:me::1'"),
        ("openai", "gpt-4o-search-preview", "not paid by tokens alone"),
        ("openai", "gpt-audio", "not paid by tokens alone"),
        ("openai", "text-embedding-3-small", "no price for tokens"),
        ("openai", "gpt-oss-120b", "taken from another seller"),
        ("scripted", "a.py:f", "no table"),
    ],
)
def test_uncertain_match_has_no_price_and_suggests_a_fix(provider: str, model: str, message: str) -> None:
    found = entry(model, provider)
    assert found.price is None
    assert message in found.source
    (problem,) = budget_problems(model_config(model, provider))
    assert message in problem
    assert "write price = {" in problem


def test_config_price_overrides_table() -> None:
    found = entry("claude-sonnet-4-5", price={"input": 1, "output": 2})
    assert found.source == "config"
    assert found.price is not None
    assert found.price.input == 1


def test_long_prompts_have_separate_price() -> None:
    price = table_price("claude-sonnet-4-5-20250929")
    assert (price.input, price.output, price.cache_read, price.cache_write) == (
        Decimal(3),
        Decimal(15),
        Decimal("0.3"),
        Decimal("3.75"),
    )
    (longer,) = price.above
    assert (longer.tokens, longer.input, longer.output) == (200_000, 6, Decimal("22.5"))
    assert (longer.cache_read, longer.cache_write) == (Decimal("0.6"), Decimal("7.5"))


@pytest.mark.parametrize(
    "options",
    [
        {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"tools": [{"name": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
    ],
)
def test_hour_long_cache_has_higher_write_price(options: dict[str, Any]) -> None:
    price = table_price("claude-sonnet-4-5", options=options, allow={"tools[].cache_control.ttl": 0})
    assert (price.cache_write, price.above[0].cache_write) == (6, 12)


def test_unknown_cache_price_is_bounded_from_above() -> None:
    assert table_price("claude-2").cache_write == Decimal(8) * Decimal("1.25")
    assert table_price("claude-2").cache_read == 8
    older = table_price("gpt-4o-2024-05-13", "openai")
    assert older.cache_read == older.cache_write == older.input


def test_price_that_depends_on_hour_is_maximum_of_the_day() -> None:
    from genai_prices.data import providers
    from genai_prices.types import TimeOfDateConstraint

    seller, model, possible = next(
        (each.id, model, model.prices)
        for each in providers
        for model in each.models
        if isinstance(model.prices, list) and isinstance(model.prices[-1].constraint, TimeOfDateConstraint)
    )
    price = table_price("x", price_as=f"{seller}/{model.id}")
    latest = [each.prices.output_mtok for each in possible if each.constraint == possible[-1].constraint]
    assert all(price.output >= each for each in latest if isinstance(each, Decimal))
    assert price.output in [each.prices.output_mtok for each in possible]


@pytest.mark.parametrize(
    ("address", "known"),
    [
        ("https://api.anthropic.com", True),
        ("https://api.anthropic.com/v1/", True),
        ("https://API.anthropic.com", True),
        ("http://api.anthropic.com", False),
        ("https://api.anthropic.com:8443", False),
        ("https://api.anthropic.com.example.org", False),
        ("https://example.org/api.anthropic.com", False),
        ("https://me@api.anthropic.com", False),
        ("http://127.0.0.1:8000", False),
        ("http://[::1]:8000/v1", False),
    ],
)
def test_table_price_applies_only_at_sellers_address(address: str, *, known: bool) -> None:
    found = entry("claude-sonnet-4-5", base_url=address)
    assert (found.price is not None) == known
    if not known:
        assert 'price_as = "anthropic/claude-sonnet-4-5"' in found.source
        assert "me@" not in found.source


def test_price_lookup_by_seller_address_uses_its_prices() -> None:
    found = entry("deepseek-chat", "openai-chat", base_url="https://api.deepseek.com/v1")
    assert found.source == f"{TABLE} deepseek/deepseek-chat"
    assert entry("gpt-5", "openai-chat", base_url="https://api.deepseek.com").price is None


@pytest.mark.parametrize(
    ("address", "model", "matched"),
    [
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3.8-flash", "google"),
        ("https://api.minimax.io/v1", "MiniMax-M3", "minimax"),
        ("https://api.moonshot.ai/v1/", "kimi-k3", "moonshotai"),
        ("https://api.cohere.com/compatibility/v1", "command-a", "cohere"),
        ("https://api.z.ai/api/paas/v4", "glm-5.3", "zai"),
        ("https://api.fireworks.ai/inference/v1", "accounts/fireworks/models/kimi-k3", "fireworks"),
        ("https://api.together.xyz/v1", "moonshotai/Kimi-K3", "together"),
        ("https://api.groq.com/openai/v1", "openai/gpt-oss-120b", "groq"),
        ("https://api.mistral.ai/v1", "mistral-large-4", "mistral"),
        ("https://api.x.ai/v1", "grok-4.7", "x-ai"),
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-5.5", None),
        ("https://aiplatform.googleapis.com/v1/openapi", "google/gemini-3.8-flash", None),
        ("https://api.minimax.io.example.org/v1", "MiniMax-M3", None),
        ("https://generativelanguage.googleapis.com:8443", "gemini-3.8-flash", None),
    ],
)
def test_known_address_gives_the_sellers_price(address: str, model: str, matched: str | None) -> None:
    found = entry(model, "openai-chat", base_url=address)
    assert (found.price is not None) == (matched is not None), found.source
    if matched is not None:
        assert found.source.startswith(f"{TABLE} {matched}/")


@pytest.mark.parametrize(
    ("host", "model", "named"),
    [
        ("openrouter.ai/api/v1", "anthropic/claude-sonnet-5.5", "openrouter/anthropic/claude-sonnet-5.5"),
        ("openrouter.ai/api/v1", "qwen/qwen3-coder", "openrouter/qwen/qwen3-coder"),
        ("openrouter.ai/api/v1", "openai/gpt-6.1-sol", "openrouter/openai/gpt-6.1-sol"),
        ("dashscope.aliyuncs.com/compatible-mode/v1", "qwen3-coder-plus", "openrouter/qwen/qwen3-coder-plus"),
        ("dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen3-max", "openrouter/qwen/qwen3-max"),
        ("api.minimaxi.com/v1", "MiniMax-M3", "minimax/minimax-m3"),
        ("api.minimax.io/v1", "minimax-m1", "openrouter/minimax/minimax-m1"),
        ("api.moonshot.cn/v1", "kimi-k3", "moonshotai/kimi-k3"),
        ("api.together.ai/v1", "moonshotai/Kimi-K3", "moonshotai/kimi-k3"),
        ("aiplatform.googleapis.com/v1", "google/gemini-3.8-flash", "google/gemini-3.8-flash"),
        ("generativelanguage.googleapis.com/v1", "models/gemini-3.8-flash", "google/gemini-3.8-flash"),
        ("me.openai.azure.com/openai/v1", "gpt-6.1-sol", "openai/gpt-6.1-sol"),
        ("llm.example.org/v1", "claude-sonnet-5-5", "anthropic/claude-sonnet-5-5"),
        ("llm.example.org/v1", "gpt-6.1-sol", "openai/gpt-6.1-sol"),
        ("api.openai.com/v1", "kimi-k3", "moonshotai/kimi-k3"),
    ],
)
def test_unknown_price_names_the_entry_to_take(host: str, model: str, named: str) -> None:
    address = {"base_url": f"https://{host}"}
    assert f'(price_as = "{named}" takes the price of' in entry(model, "openai-chat", **address).source
    assert entry(model, "openai-chat", price_as=named, **address).source == f"{TABLE} {named}"


def test_each_named_entry_is_accepted() -> None:
    """Models of the table, asked for at an address that the table does not have."""
    from genai_prices.data import providers

    count = 0
    for model in sorted({each.id for seller in providers for each in seller.models})[::15]:
        found = re.search(r'price_as = "([^"]+)"', entry(model, "openai-chat", base_url="http://h").source)
        count += found is not None
        assert found is None or entry(model, "openai-chat", price_as=found[1]).price is not None, model
    assert count > 70


@pytest.mark.parametrize(
    ("model", "fields", "different"),
    [
        ("claude-sonnet-5-5", {"price": {"input": 2, "output": 10, "cache_read": 0.1}}, ""),
        ("claude-sonnet-5-5", {}, ""),
        (
            "claude-sonnet-5-5",
            {"price": {"input": 1.0, "output": 10, "cache_read": 0.1, "cache_write": 2.5}},
            "models[m].price: input 1.0 instead of 2, as",
        ),
        (
            "claude-opus-5-5",
            {"price": {"input": 2, "output": 10}},
            "models[m].price: input 2 instead of 4, output 10 instead of 20, cache_read 2 instead of 0.2, ",
        ),
        (
            "claude-haiku-5-5",
            {"price": {"input": 0.1, "output": 0.5, "cache_read": 0.01}},
            "models[m].price: above 100000 prompt tokens input 0.1 instead of 0.5, output 0.5 instead of 2.5",
        ),
        (
            "claude-opus-5-5",
            {"price_as": "anthropic/claude-sonnet-5-5"},
            "models[m].price_as: input 2 instead of 4, ",
        ),
        (
            "claude-sonnet-5-5",
            {"price": {"input": 0, "output": 0}, "base_url": "http://h"},
            "models[m].price: input 0 instead of 2, output 0 instead of 10, ",
        ),
        ("nobody-knows-it", {"price": {"input": 0, "output": 0}}, ""),
    ],
)
def test_price_that_differs_from_the_known_one_is_named(
    model: str, fields: dict[str, Any], different: str
) -> None:
    found = price_difference(model_config(model, **fields))
    assert found.startswith(different) if different else not found


def test_price_as_selects_the_entry() -> None:
    local: dict[str, Any] = {"base_url": "http://127.0.0.1:1", "options": {"temperature": 0.5}}
    found = entry("ours", "openai-chat", price_as="openai/gpt-5-mini", **local)
    assert found.source == f"{TABLE} openai/gpt-5-mini"
    assert "knows no 'opnai' (did you mean 'openai'?)" in entry("ours", price_as="opnai/gpt-5").source
    assert "did you mean 'gpt-5'" in entry("ours", price_as="openai/gtp-5").source
    with pytest.raises(ValidationError, match="exclude each other"):
        model_config("ours", price_as="openai/gpt-5", price={"input": 1, "output": 1})
    with pytest.raises(ValidationError, match="price_as"):
        model_config("ours", price_as="gpt-5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"service_tier": "priority"}, "service_tier"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"service_tier": "auto"}, "service_tier"),
        ({"speed": "fast"}, "speed"),
        ({"inference_geo": "us"}, "inference_geo"),
        ({"prompt_cache_options": {"ttl": "12h"}}, "prompt_cache_options"),
        ({"something_new": True}, "something_new"),
        ({"service_tier": "default"}, ""),
        ({"temperature": 0.1, "reasoning": {"effort": "low"}}, ""),
    ],
)
def test_options_that_may_change_price_need_config_price(options: dict[str, Any], message: str) -> None:
    found = entry("gpt-5", "openai", options=options)
    assert (found.price is None) == bool(message)
    assert message in found.source
    assert entry("gpt-5", "openai", options=options, price={"input": 9, "output": 9}).source == "config"


def test_reply_from_model_with_other_price_warns_once() -> None:
    mismatch = price_mismatch_checker(model_config("gpt-5", "openai"))
    assert [mismatch(name) for name in ("", "gpt-5", "gpt-5-2025-08-07")] == ["", "", ""]
    assert "answered as 'gpt-5-pro', whose price is another" in mismatch("gpt-5-pro")
    assert "answered as 'gpt-77', whose price is not known" in mismatch("gpt-77")
    assert mismatch("gpt-77") == ""
    assert sum(bool(mismatch(f"model-{number}")) for number in range(1000)) < 30
    for chosen in ({"price": {"input": 1, "output": 1}}, {"price_as": "openai/gpt-5"}):
        assert price_mismatch_checker(model_config("gpt-5", "openai", **chosen))("gpt-77") == ""


def test_openai_request_selects_standard_service_tier() -> None:
    openai = PROTOCOLS["openai"]
    assert openai.options_at("https://api.openai.com/v1/") == {"service_tier": "default"}
    assert openai.options_at("http://127.0.0.1:8000/v1") == {}


def test_price_package_makes_no_network_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a price lookup opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert entry("claude-sonnet-4-5").price is not None
    assert entry("no-such-model").price is None


def test_price_entries_of_a_seller_have_unique_names() -> None:
    """Check the assumption of our matching rules in the installed release."""
    from genai_prices.data import providers

    from codetaste.llm.price_table import _find, _names

    for seller in providers:
        names = {model.id: _names(model) for model in seller.models}
        for model in seller.models:
            claimed = [other for other in names if names[other] & names[model.id]]
            assert claimed == [model.id], (seller.id, model.id)
            assert _find([seller], model.id) == (model, seller.id)
        assert len(names) == len(seller.models), seller.id


@pytest.mark.parametrize(
    ("model", "provider", "fields", "tokens"),
    [
        ("claude-sonnet-4-5", "anthropic", {}, 200_000),
        ("claude-sonnet-4-5-20250929", "anthropic", {"context_window": 100_000}, 100_000),
        ("gpt-5", "openai", {}, 400_000),
        ("mine", "openai-chat", {"price_as": "openai/gpt-4o"}, 128_000),
        ("no-such-model", "anthropic", {}, None),
        ("mine", "openai-chat", {"base_url": "http://127.0.0.1:1"}, None),
    ],
)
def test_context_window_is_of_the_config_or_the_table(
    model: str, provider: str, fields: dict[str, Any], tokens: int | None
) -> None:
    assert context_window_of(model_config(model, provider, **fields)) == tokens
