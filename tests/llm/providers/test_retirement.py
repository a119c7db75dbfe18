"""Retirement of real models: our dates are the SDKs', and examples and pages name only models that serve."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import anthropic.types
import openai.types.shared.chat_model
import pytest
from anthropic.resources.messages import DEPRECATED_MODELS

from codetaste.errors import ModelError
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Message, Request, TextBlock
from codetaste.llm.price_table import price_difference, price_entry
from codetaste.llm.providers.remote import RemoteModel
from codetaste.llm.providers.retirement import CURRENT, retirement_note
from codetaste.llm.wire.protocols import PROTOCOLS
from support.llm.provider import server as provider

CHECKOUT = Path(__file__).resolve().parents[3]

FIRST = date(2026, 1, 1)
"""Earlier retirements are not listed."""

HISTORY = {
    "docs/agent-requests.md": "what releases of agents send with each model that they know",
    "docs/guide/site.md": "agents of the published run",
    "docs/reproduction.md": "the paper's models",
    "src/codetaste/llm/providers/retirement.py": "the list itself",
    "src/codetaste/llm/wire/common/allow_list.py": "the costliest picture that was ever documented",
}
"""Files that name models which are not to be used."""

MODEL = re.compile(
    r"\b(?:claude-(?:opus|sonnet|haiku|fable|mythos|instant)?-?\d[\w.-]*\w|(?:gpt|gemini)-\d[\w.-]*\w"
    r"|o[134]-(?:mini|pro|preview)[\w-]*)"
)


def announced() -> dict[str, date]:
    """The dates in the installed SDKs."""
    days = {
        model: datetime.strptime(re.sub(r"(?<=\d)(st|nd|rd|th)", "", text), "%B %d, %Y").date()  # noqa: DTZ007
        for model, text in DEPRECATED_MODELS.items()
    }
    comment = " ".join(inspect.getsource(openai.types.shared.chat_model).split())
    for names, day in re.findall(r"- ([^:]+): Announced shutdown date: ([\d-]+)", comment):
        days |= dict.fromkeys(re.findall(r'"([^"]+)"', names), date.fromisoformat(day))
    return {model: day for model, day in days.items() if day >= FIRST}


def test_retirement_dates_are_those_of_the_installed_sdks() -> None:
    days = announced()
    assert len(days) > 50
    wrong = {model: day for model, day in days.items() if f" on {day};" not in retirement_note(model, day)}
    assert wrong == {}
    assert [model for model, day in days.items() if retirement_note(model, day - timedelta(days=61))] == []


@pytest.mark.parametrize(
    ("model", "today", "note"),
    [
        ("claude-sonnet-4-5-20250929", "2026-10-01", "will retire on 2026-11-30; current: claude-sonnet-5-5"),
        ("claude-sonnet-4-5-20250929", "2026-11-29", "will retire on 2026-11-30"),
        ("claude-sonnet-4-5-20250929", "2026-11-30", "retired on 2026-11-30"),
        ("claude-sonnet-4-5@20250929", "2026-11-30", "retired on 2026-11-30"),
        ("claude-sonnet-4-5", "2026-09-30", ""),
        ("anthropic/claude-sonnet-4.5", "2027-01-01", "retired on 2026-11-30"),
        ("o3-2025-04-16", "2026-12-01", "will retire on 2026-12-11; current: gpt-6"),
        ("gpt-4o-2024-05-13", "2026-11-28", "retired on 2026-10-23"),
        ("gpt-4o-2024-11-20", "2026-11-28", "will retire on 2027-01-14"),
        ("models/gemini-2.5-pro", "2026-11-28", "will retire on 2026-12-01; current: gemini-"),
        ("gpt-5.2", "2026-11-28", ""),
        ("claude-sonnet-4-55", "2026-12-01", ""),
        ("rename_models.py:finder", "2026-12-01", ""),
    ],
)
def test_model_is_named_from_60_days_before_its_retirement(model: str, today: str, note: str) -> None:
    found = retirement_note(model, date.fromisoformat(today))
    assert (note in found) if note else not found


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("status", "model", "says"),
    [(404, "o1", True), (400, "o1", True), (401, "o1", False), (429, "o1", False), (404, "mine", False)],
)
async def test_refusal_of_retired_model_says_so(
    monkeypatch: pytest.MonkeyPatch, protocol: str, status: int, model: str, says: bool
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-dummy")
    with provider.serving() as server:
        server.default = provider.status(status, {"error": {"message": f"the model {model} does not exist"}})
        config = ModelConfig.model_validate(
            {
                "id": "m",
                "provider": protocol,
                "model": model,
                "base_url": f"{server.url}{urlsplit(PROTOCOLS[protocol].base_url).path}",
                "api_key_env": "MY_KEY",
            }
        )
        remote = RemoteModel(PROTOCOLS[protocol], config)
        with pytest.raises(ModelError, match=f"HTTP {status}: the model {model}") as refused:
            await remote.complete(Request("", (Message("user", (TextBlock("hello"),)),)), call="1")
        await remote.aclose()
    assert ("; o1 retired on 2026-10-23; current: gpt-" in str(refused.value)) is says


def current_models() -> list[str]:
    return [model for models in CURRENT.values() for model in models.split(", ")]


def test_current_models_have_a_price_and_no_announced_retirement() -> None:
    known = {*get_args(get_args(anthropic.types.Model)[0]), *get_args(openai.types.shared.ChatModel)}
    for model in current_models():
        assert retirement_note(model, date(2999, 1, 1)) == "", model
        provider = "anthropic" if model.startswith("claude") else "openai-chat"
        where = "https://generativelanguage.googleapis.com/v1beta/openai" if "gemini" in model else None
        config = ModelConfig.model_validate(
            {"id": "m", "provider": provider, "model": model, "base_url": where}
        )
        assert price_entry(config).price is not None, price_entry(config).source
        assert model in known or "gemini" in model


def pages() -> Iterator[Path]:
    yield CHECKOUT / "README.md"
    for folder in ("docs", "examples", "agents", "prompts", "src"):
        for path in (CHECKOUT / folder).rglob("*"):
            if path.suffix in {".md", ".toml", ".py", ".sh", ".txt"}:
                yield path


def test_examples_and_pages_name_only_current_models() -> None:
    allowed, count, wrong = {model.replace(".", "-") for model in current_models()}, 0, []
    for path in pages():
        where = path.relative_to(CHECKOUT).as_posix()
        found = [] if where in HISTORY else MODEL.findall(path.read_text("utf-8"))
        count += len(found)
        wrong += [f"{where}: {model}" for model in found if model.replace(".", "-") not in allowed]
    assert wrong == []
    assert count > 10


def test_real_models_of_examples_have_the_tables_price() -> None:
    examples = CHECKOUT / "examples"
    models: list[dict[str, Any]] = [
        model
        for path in examples.glob("*.toml")
        for model in tomllib.loads(path.read_text("utf-8")).get("models", ())
        if model["provider"] in PROTOCOLS
    ]
    assert len(models) >= 4
    for model in models:
        config = ModelConfig.model_validate(model)
        assert "price" not in model
        assert price_entry(config).price is not None
        assert price_difference(config) == ""
