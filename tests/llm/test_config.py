from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from codetaste.llm.config import ModelConfig
from codetaste.llm.price_table import price_of


def model(**fields: Any) -> ModelConfig:
    return ModelConfig.model_validate({"id": "m", "provider": "anthropic", "model": "x", **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"provider": "anthropc"}, "anthropic"),
        ({"max_concurrency": 0}, "greater than or equal to 1"),
        ({"base_url": "example.org"}, "base_url"),
        ({"base_url": "http://[example"}, "not the address of a server"),
        ({"base_url": "http://:80"}, "not the address of a server"),
        ({"base_url": "http://example.org:99999/v1"}, "not the address of a server"),
        ({"base_url": "http://example.org/\x7f"}, "not the address of a server"),
        ({"base_url": "http://example.org/v1?api-version=1"}, "must not contain"),
        ({"base_url": "http://example.org/v1#x"}, "must not contain"),
        ({"options": {"betas": ["one\ntwo"]}}, "header"),
        ({"options": {"instructions": "x"}}, "the prompt fills it"),
        ({"options": {"tools": "look"}}, "must be a list of tables"),
        ({"options": {"include": [1]}}, "must be a list of strings"),
        ({"provider": "openai-chat", "options": {"output_cap": "tokens"}}, "max_completion_tokens"),
        ({"provider": "openai-chat", "options": {"stream_options": True}}, "must be a table"),
        ({"price": {"input": "expensive", "output": 1}}, "US dollars"),
        ({"options": {"max_tokens": 5}}, "max_output_tokens"),
        ({"options": {"api_key": "x"}}, "api_key_env"),
        ({"options": {"since": dt.date(2026, 1, 1)}}, "a provider takes text"),
        ({"provider": "replay"}, "needs a cassette"),
        ({"provider": "replay", "cassette": "c", "mode": "record"}, "no model to record"),
        ({"mode": "record"}, "requires a cassette"),
        ({"colour": "red"}, "Extra inputs"),
    ],
)
def test_invalid_table_is_refused_with_reason(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        model(**fields)


def test_toml_numbers_are_exact_money_and_plain_options() -> None:
    config = model(
        price={"input": Decimal("0.1"), "output": Decimal(2)},
        options={"temperature": Decimal("0.2"), "thinking": {"budget_tokens": 2048}, "stop": ["a"]},
        timeout="5m",
    )
    price = price_of(config)
    assert price is not None
    assert price.input == Decimal("0.1")
    assert config.options == {"temperature": 0.2, "thinking": {"budget_tokens": 2048}, "stop": ["a"]}
    assert isinstance(config.options["temperature"], float)
    assert config.timeout == 300.0


def test_key_written_as_variable_name_is_not_shown() -> None:
    with pytest.raises(ValidationError, match="never write a key into a config") as caught:
        model(api_key_env="sk-ant-123")
    (fault,) = caught.value.errors()
    assert isinstance(fault["input"], dict)
    assert "sk-ant" not in fault["msg"]


def test_key_written_into_address_is_not_shown() -> None:
    with pytest.raises(ValidationError, match="never write a key into a config") as caught:
        model(base_url="https://me:sk-123@example.org/v1")
    (fault,) = caught.value.errors()
    assert isinstance(fault["input"], dict)
    assert "sk-123" not in fault["msg"]


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({}, "3.75"),
        ({"options": {"cache_control": {"type": "ephemeral", "ttl": "1h"}}}, "6"),
        ({"options": {"prompt_cache_options": {"ttl": "12h"}}, "provider": "openai"}, "7.5"),
        ({"provider": "openai"}, "3.75"),
        ({"provider": "scripted"}, "3"),
        ({"price": {"input": 3, "output": 15, "cache_write": 5}}, "5"),
    ],
)
def test_cache_write_price_depends_on_provider_and_lifetime(fields: dict[str, Any], written: str) -> None:
    price = price_of(model(**{"price": {"input": 3, "output": 15}, **fields}))
    assert price is not None
    assert price.cache_write == Decimal(written)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "ANTHROPIC_API_KEY"),
        ({"api_key_env": "OTHER"}, "OTHER"),
        ({"provider": "openai"}, "OPENAI_API_KEY"),
        ({"provider": "openai", "base_url": "http://localhost/v1"}, "OPENAI_API_KEY"),
        ({"provider": "openai-chat"}, "OPENAI_API_KEY"),
        ({"provider": "openai-chat", "base_url": "http://localhost/v1"}, None),
        ({"provider": "openai-chat", "base_url": "http://localhost/v1", "api_key_env": "OTHER"}, "OTHER"),
        ({"provider": "scripted"}, None),
        ({"cassette": "c"}, None),
        ({"cassette": "c", "mode": "record"}, "ANTHROPIC_API_KEY"),
    ],
)
def test_model_names_its_key_variable(fields: dict[str, Any], name: str | None) -> None:
    assert model(**fields).key_env == name


def test_config_with_price_imports_no_client_and_no_price_table() -> None:
    program = (
        "import sys, codetaste.llm.config, codetaste.llm.metering.metered, codetaste.llm.price_table;"
        "import codetaste.llm.providers.replay, codetaste.llm.providers.scripted;"
        "price = {'input': 1, 'output': 1};"
        "c = codetaste.llm.config.ModelConfig(id='m', provider='openai', model='x', price=price);"
        "assert c.price;"
        "heavy = {'anthropic', 'httpx2', 'httpx', 'jinja2', 'openai', 'genai_prices'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_former_names_of_time_limits_are_accepted_for_one_release() -> None:
    old = model(silence="2m", rate_limit_patience=5)
    assert old == model(read_timeout="2m", rate_limit_timeout=5)
