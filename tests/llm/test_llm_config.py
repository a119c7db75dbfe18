from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from codetaste.llm.config import ModelConfig
from codetaste.llm.pricing import price_of


def model(**fields: Any) -> ModelConfig:
    return ModelConfig.model_validate({"id": "m", "provider": "anthropic", "model": "x", **fields})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"provider": "anthropc"}, "anthropic"),
        ({"max_concurrency": 0}, "greater than or equal to 1"),
        ({"base_url": "example.org"}, "base_url"),
        ({"api_key_env": "sk-ant-123"}, "api_key_env"),
        ({"options": {"max_tokens": 5}}, "max_output_tokens"),
        ({"options": {"api_key": "x"}}, "api_key_env"),
        ({"options": {"since": dt.date(2026, 1, 1)}}, "a provider takes text"),
        ({"provider": "replay"}, "needs a cassette"),
        ({"provider": "replay", "cassette": "c", "mode": "record"}, "no model to ask"),
        ({"mode": "record"}, "there is none"),
        ({"colour": "red"}, "Extra inputs"),
    ],
)
def test_a_table_that_makes_no_sense_says_why(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
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


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "ANTHROPIC_API_KEY"),
        ({"api_key_env": "OTHER"}, "OTHER"),
        ({"provider": "scripted"}, None),
        ({"cassette": "c"}, None),
        ({"cassette": "c", "mode": "record"}, "ANTHROPIC_API_KEY"),
    ],
)
def test_a_model_says_which_key_it_needs(fields: dict[str, Any], name: str | None) -> None:
    assert model(**fields).key_env == name


def test_reading_a_config_imports_no_client() -> None:
    program = (
        "import sys, codetaste.llm.config, codetaste.llm.metered;"
        "import codetaste.llm.replay, codetaste.llm.scripted;"
        "heavy = {'anthropic', 'httpx2', 'httpx', 'jinja2', 'openai'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
