from __future__ import annotations

import json
from typing import Any, Literal
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.llm.config import PROMPT_OVERHEAD_TOKENS
from codetaste.llm.messages import (
    Message,
    ProviderBlocks,
    Reply,
    Request,
    StopReason,
    TextBlock,
    ToolSpec,
    Usage,
)
from codetaste.llm.metering.prompt_bound import TOKENS_PER_MESSAGE, PromptBound, max_tokens
from codetaste.llm.wire.common.output_cap import lower_output

TOOL = ToolSpec("look", "Look at ünïcode.", {"type": "object", "properties": {}})


def user_message(text: str) -> Message:
    return Message("user", (TextBlock(text),))


def reply(text: str, usage: Usage | None) -> Reply:
    return Reply(Message("assistant", (TextBlock(text),)), StopReason.END, usage, "m")


@given(st.text(max_size=200), st.lists(st.text(max_size=200), max_size=4))
@settings(max_examples=100, deadline=None)
def test_bound_without_report_is_at_least_all_bytes_sent(system: str, texts: list[str]) -> None:
    request = Request(system, tuple(map(user_message, texts)), (TOOL,))
    sent = json.dumps([system, texts, TOOL.name, TOOL.description, dict(TOOL.parameters)], ensure_ascii=False)
    assert PromptBound().tokens(request) >= len(sent.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_bound_of_long_text_holds_for_any_character(form: Literal["NFC", "NFKC"]) -> None:
    """A long text is not normalised, but bounded by the most that normalisation makes of a character."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    most = max(len(normalize(form, each).encode()) / len(each.encode()) for each in characters)
    text = "\u3042" * 1_000_001
    assert max_tokens(text) >= most * len(text.encode())
    assert max_tokens("x" * 1_000_001) == 1_000_001


def test_bound_uses_reported_count_of_longest_prefix() -> None:
    bound = PromptBound()
    first = Request("s" * 4000, (user_message("a" * 4000),), (TOOL,))
    bound.learn(first, reply("b" * 400, Usage(input=1000, cache_read=200, cache_write=30, output=100)))
    second = Request(
        first.system, (*first.messages, reply("b" * 400, None).message, user_message("new")), first.tools, 99
    )
    assert 1330 < bound.tokens(second) < 1330 + TOKENS_PER_MESSAGE + 100
    elsewhere = Request(
        first.system, (*first.messages, user_message("b" * 400), user_message("new")), first.tools
    )
    assert bound.tokens(elsewhere) > 8000 + PROMPT_OVERHEAD_TOKENS
    assert bound.tokens(Request("other", second.messages, first.tools)) > 4000 + PROMPT_OVERHEAD_TOKENS


@pytest.mark.parametrize(
    "usage",
    [
        None,
        Usage(input=-1, output=5),
        Usage(input=1.5),  # type: ignore[arg-type]
        Usage(input=10**12, output=5),
        Usage(input=2000, output=10**12),
        Usage(input=0, output=5),
    ],
)
def test_invalid_usage_report_is_ignored(usage: Usage | None) -> None:
    bound = PromptBound()
    request = Request("", (user_message("a" * 4000),))
    bound.learn(request, reply("b", usage))
    following = Request("", (*request.messages, reply("b", None).message, user_message("c")))
    assert 4000 < bound.tokens(following) < 6000


def test_raw_blocks_count_if_longer_than_text() -> None:
    signed = Message(
        "assistant", (TextBlock("hi"),), ProviderBlocks("anthropic", ({"signature": "x" * 5000},))
    )
    assert PromptBound().tokens(Request("", (signed,))) > 5000


@given(st.integers(1, 50_000), st.integers(1024, 60_000))
@settings(max_examples=200, deadline=None)
def test_lowered_thinking_budget_is_below_cap_and_at_least_minimum(cap: int, budget: int) -> None:
    options: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": budget}, "top_k": 1}
    lowered = lower_output(Request("", (), options=options), cap)
    assert lowered.max_output_tokens == cap
    assert lowered.options["top_k"] == 1
    thinking = lowered.options["thinking"]
    if thinking["type"] == "enabled":
        assert 1024 <= thinking["budget_tokens"] < cap
        assert thinking["budget_tokens"] <= budget
    else:
        assert thinking == {"type": "disabled"}
        assert cap <= 1024
    assert options["thinking"]["budget_tokens"] == budget
