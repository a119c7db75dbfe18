"""The bound of a prompt's tokens is never below what a provider counts by the documented rules."""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.gateway.prompt.bound import PartBound, SessionTokenCounts, TokenCounts
from codetaste.gateway.prompt.parts import OVERHEAD_TOKENS, request_parts
from codetaste.llm.messages import (
    Message,
    ProviderBlocks,
    Reply,
    Request,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from codetaste.llm.metering.prompt_bound import PromptBound

REQUEST = Request("", (), max_output_tokens=4000)
TEXTS = ["word " * 200, "é" * 300, "\ufdfa" * 100, "<think>" + "long " * 500 + "</think>"]
TOOLS = [{"name": name, "input_schema": {"type": "object"}, "description": name * 300} for name in "ab"]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 1},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    {"tool_choice": {"type": "none"}},
    {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
    {"context_management": {"edits": [{"type": "clear_thinking_20251015"}]}},
    {"truncation": "auto"},
]
BLOCKS: list[dict[str, Any]] = [
    *({"type": "text", "text": text} for text in TEXTS),
    {"type": "text", "text": TEXTS[0], "cache_control": {"type": "ephemeral"}},
    {"type": "thinking", "thinking": "deep " * 400, "signature": "s"},
    {"type": "redacted_thinking", "data": "d" * 2000},
    {
        "type": "tool_use",
        "id": "1",
        "name": "a",
        "input": {"cache_control": {"type": "ephemeral", "x": "y" * 60}},
    },
    {
        "type": "tool_use",
        "id": "1",
        "name": "a",
        "input": {"cache_control": {"type": "ephemeral", "x": "z" * 60}},
    },
    {"type": "tool_result", "tool_use_id": "1", "content": "result " * 300},
    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "part " * 300}]},
]


FRAME_TOKENS = 30
"""Tokens around a message."""


def merged(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge consecutive messages of one role."""
    groups = [(role, [*group]) for role, group in groupby(messages, lambda each: each["role"])]
    return [
        {"role": role, "content": [block for each in group for block in blocks_of(each)]}
        for role, group in groups
    ]


def count_anthropic(body: dict[str, Any], bytes_per_token: int, *, merges: bool = False) -> int:
    """Count a prompt as the Messages API documents it, with a tokenizer that normalises."""
    messages = merged(body["messages"]) if merges else body["messages"]
    clears = "clear_tool_uses" in json.dumps(body.get("context_management") or "")
    last_turn = max(
        (
            place
            for place, message in enumerate(messages)
            if message["role"] == "user"
            and any(block["type"] != "tool_result" for block in blocks_of(message))
        ),
        default=-1,
    )
    counted: list[Any] = []
    for place, message in enumerate(messages):
        for block in blocks_of(message):
            if "thinking" in block["type"] and place < last_turn:
                continue
            if block["type"] == "tool_result" and clears:
                continue
            counted.append({name: value for name, value in block.items() if name != "cache_control"})
    if body.get("truncation") == "auto":
        counted = counted[-1:]
    if (body.get("tool_choice") or {}).get("type") != "none":
        counted.extend(body.get("tools", []))
    around = 30 + FRAME_TOKENS * len(messages)
    return around + sum(token_count(each, bytes_per_token) for each in counted)


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def token_count(value: object, bytes_per_token: int) -> int:
    """Count the texts in ``value``; a ligature becomes its letters."""
    if isinstance(value, dict):
        return sum(token_count(each, bytes_per_token) for each in value.values())
    if isinstance(value, list):
        return sum(token_count(each, bytes_per_token) for each in value)
    text = str(value).replace("\ufdfa", "صلى الله عليه وسلم")
    return -(-len(text.encode()) // bytes_per_token)


messages = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant"]),
        st.sampled_from(TEXTS) | st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=4),
    ),
    max_size=6,
)
bodies = st.builds(
    lambda setting, tools, conversation: {"model": "m", **setting, "tools": tools, "messages": conversation},
    st.sampled_from(SETTINGS),
    st.lists(st.sampled_from(TOOLS), max_size=3),
    messages,
)


def bound_of(counts: SessionTokenCounts, body: dict[str, Any], betas: tuple[str, ...] = ()) -> PartBound:
    return PartBound(request_parts("anthropic", body), "anthropic", betas, counts, 1024)


def reply_of(blocks: tuple[dict[str, Any], ...], usage: Usage) -> Reply:
    message = Message("assistant", (TextBlock("x"),), ProviderBlocks("anthropic", blocks))
    return Reply(message, StopReason.END, usage, "m")


@given(
    st.lists(st.tuples(bodies, st.lists(st.sampled_from(BLOCKS[:9]), max_size=3)), max_size=6),
    st.integers(1, 5),
    st.booleans(),
)
@settings(max_examples=300)
def test_bound_is_never_below_the_count_of_any_later_request(
    conversation: list[tuple[dict[str, Any], list[dict[str, Any]]]], bytes_per_token: int, merges: bool
) -> None:
    """Replies are of blocks that may be sent back, also thinking, in any other request."""
    counts = TokenCounts().for_session()
    for body, reply in conversation:
        bound = bound_of(counts, body)
        prompt = count_anthropic(body, bytes_per_token, merges=merges)
        assert bound.tokens(REQUEST) >= prompt
        output = sum(token_count(block, bytes_per_token) for block in reply)
        bound.learn(REQUEST, reply_of(tuple(reply), Usage(input=prompt, output=output)))


def test_ordinary_turns_are_bounded_by_their_counts_not_by_bytes() -> None:
    counts, conversation, prompt = TokenCounts().for_session(), list[dict[str, Any]](), 0
    for turn in range(20):
        conversation.append(
            {"role": "user", "content": [{"type": "text", "text": f"{turn} " + "word " * 1000}]}
        )
        body = {"model": "m", "max_tokens": 4000 + turn, "tools": TOOLS, "messages": list(conversation)}
        bound = bound_of(counts, body)
        previous, prompt = prompt, count_anthropic(body, 5)
        earlier_thinking = turn * (250 + OVERHEAD_TOKENS)
        assert bound.tokens(REQUEST) < previous + 1024 + 5000 + 1500 + earlier_thinking
        blocks = (
            {"type": "thinking", "thinking": f"{turn} " + "deep " * 200, "signature": "s" * 2000},
            {"type": "text", "text": f"{turn} done"},
        )
        bound.learn(REQUEST, reply_of(blocks, Usage(input=prompt, output=250)))
        conversation.append({"role": "assistant", "content": list(blocks)})


THOUGHT = {"type": "thinking", "thinking": "deep " * 2000, "signature": "s"}
CALL = {"type": "tool_use", "id": "1", "name": "a", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "seen"}
USER = {"role": "user", "content": [{"type": "text", "text": "go on"}]}
TURN: list[dict[str, Any]] = [
    USER,
    {"role": "assistant", "content": [THOUGHT, CALL]},
    {"role": "user", "content": [RESULT]},
]
REASONING = {"type": "reasoning", "summary": [], "encrypted_content": "e" * 10_000}
FUNCTION_CALL = {"type": "function_call", "call_id": "c", "name": "a", "arguments": "{}"}
FUNCTION_RESULT = {"type": "function_call_output", "call_id": "c", "output": "seen"}


@pytest.mark.parametrize(
    ("protocol", "counted", "more"),
    [
        pytest.param("anthropic", [*TURN[:2], USER], TURN[2:], id="result beside a text"),
        pytest.param("anthropic", [*TURN, USER], TURN[2:], id="earlier turn"),
        pytest.param("anthropic", TURN[:2], TURN[2:], id="call without a result"),
        pytest.param(
            "anthropic",
            [*TURN, {"role": "assistant", "content": [CALL]}, TURN[2]],
            [{"role": "assistant", "content": "done"}, USER],
            id="switched off as the last call has none",
        ),
        pytest.param("openai", [USER, REASONING, USER], [FUNCTION_RESULT], id="reasoning of an earlier turn"),
        pytest.param("openai", [USER, REASONING], [FUNCTION_CALL], id="reasoning that nothing follows"),
        pytest.param(
            "openai-chat",
            [USER, {"role": "assistant", "content": "a", "reasoning_content": "r" * 10_000}, USER],
            [{"role": "tool", "tool_call_id": "c", "content": "seen"}],
            id="reasoning of a reply",
        ),
        pytest.param(
            "openai-chat",
            [USER, {"role": "assistant", "content": f"<think>{'r' * 10_000}</think>a"}, USER],
            [{"role": "tool", "tool_call_id": "c", "content": "seen"}],
            id="reasoning in a text",
        ),
    ],
)
def test_thinking_that_a_count_may_not_contain_is_bounded_again(
    protocol: str, counted: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    counts = TokenCounts().for_session()
    key = "input" if protocol == "openai" else "messages"
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if protocol == "anthropic" else {}

    def bound(messages: list[dict[str, Any]]) -> PartBound:
        return PartBound(
            request_parts(protocol, {"model": "m", **thinking, key: messages}), protocol, (), counts, 1024
        )

    bound(counted).learn(REQUEST, Reply(Message("assistant", ()), StopReason.END, Usage(input=50), "m"))
    assert bound([*counted, *more]).tokens(REQUEST) > 10_000


@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
def test_thinking_of_the_current_turn_is_bounded_by_the_count(protocol: str) -> None:
    """In a turn of 20 calls, each with thinking, which every provider counts until the turn ends."""
    counts, prompt = TokenCounts().for_session(), 20
    body: dict[str, Any] = {"model": "m", "thinking": {"type": "enabled", "budget_tokens": 1024}}
    key = "input" if protocol == "openai" else "messages"
    conversation = [USER]
    for turn in range(20):
        bound = PartBound(
            request_parts(protocol, {**body, key: list(conversation)}), protocol, (), counts, 1024
        )
        assert bound.tokens(REQUEST) < prompt + 1024 + 300
        if protocol == "anthropic":
            blocks = [{**THOUGHT, "signature": f"{turn}"}, CALL]
            conversation += [{"role": "assistant", "content": blocks}, TURN[2]]
        else:
            blocks = [{**REASONING, "id": f"rs_{turn}"}, FUNCTION_CALL]
            conversation += [*blocks, FUNCTION_RESULT]
        reply = Message("assistant", (), ProviderBlocks(protocol, tuple(blocks)))
        bound.learn(REQUEST, Reply(reply, StopReason.END, Usage(input=prompt, output=2500), "m"))
        prompt += 2500 + 10


def test_messages_that_were_merged_when_counted_get_an_overhead_each() -> None:
    counts = TokenCounts().for_session()
    turns = [
        [{"role": role, "content": f"{role} {turn}"} for turn in range(100)] for role in ("user", "assistant")
    ]
    body = {"model": "m", "messages": [*turns[0], *turns[1]]}
    bound_of(counts, body).learn(
        REQUEST, reply_of((), Usage(input=count_anthropic(body, 4, merges=True), output=1))
    )
    later = {"model": "m", "messages": [each for pair in zip(*turns, strict=True) for each in pair]}
    assert bound_of(counts, later).tokens(REQUEST) > count_anthropic(later, 4, merges=True)


def nested(depth: int) -> Any:
    return [nested(depth - 1)] * 2 if depth else ["{", '"', "\\", {}, [], 1]


@pytest.mark.parametrize("parameters", [{}, {"enum": [*range(2000)]}, {"default": nested(7)}])
def test_tools_that_a_chat_template_indents_are_bounded(parameters: Any) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": parameters}}
    body = {"model": "m", "messages": [USER], "tools": [tool] * 3}
    bound = PartBound(
        request_parts("openai-chat", body), "openai-chat", (), TokenCounts().for_session(), 1024
    )
    assert bound.tokens(REQUEST) >= 1024 + 3 * len(json.dumps(tool, indent=4))


ODD = ["<>&'/" * 500, "é" * 1000, "\U0001f600" * 500, "a" * 1000]


def as_a_server_writes_it(value: Any) -> str:
    """Return JSON with spaces and all escapes that servers use: ASCII alone, safe in HTML, slashes."""
    text = json.dumps(value).replace("/", "\\/")
    return re.sub("[<>&']", lambda found: f"\\u{ord(found[0]):04x}", text)


@pytest.mark.parametrize("value", [*ODD, [0] * 2000, {"a": {"b": 1}, "é": ODD}])
def test_json_is_bounded_in_whatever_form_a_server_writes_it(value: Any) -> None:
    """Arguments and results of tools, and their schemas, behind the gateway and in own calls."""
    tool = {"name": "look", "description": "Look.", "input_schema": {"enum": value}}
    call = {"type": "tool_use", "id": "1", "name": "look", "input": {"value": value}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": json.dumps(value)}
    turns = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    written = len(as_a_server_writes_it([tool, *turns]))
    bound = bound_of(TokenCounts().for_session(), {"model": "m", "tools": [tool], "messages": turns})
    assert bound.tokens(REQUEST) >= written
    own = (
        Message("assistant", (ToolCall("1", "look", {"value": value}),)),
        Message("user", (ToolResult("1", json.dumps(value)),)),
    )
    request = Request("", own, (ToolSpec("look", "Look.", {"enum": value}),))
    assert PromptBound().tokens(request) >= written
    assert PromptBound().tokens(request) < 2 * written + 4000


LONG_SYSTEM = {"role": "system", "content": "word " * 2000}


@pytest.mark.parametrize(
    ("counted", "later"),
    [
        ([LONG_SYSTEM, {"role": "system", "content": "short"}, USER], [LONG_SYSTEM, USER]),
        ([LONG_SYSTEM, USER, {"role": "system", "content": "short"}], [USER, LONG_SYSTEM]),
        ([LONG_SYSTEM], [LONG_SYSTEM, USER]),
    ],
)
def test_message_that_a_chat_template_may_drop_is_bounded_by_its_bytes(
    counted: list[dict[str, Any]], later: list[dict[str, Any]]
) -> None:
    """The last of two system messages may replace the first one; without a user's there may be no prompt."""
    counts = TokenCounts().for_session()

    def bound(messages: list[dict[str, Any]]) -> PartBound:
        parts = request_parts("openai-chat", {"model": "m", "messages": messages})
        return PartBound(parts, "openai-chat", (), counts, 1024)

    bound(counted).learn(REQUEST, Reply(Message("assistant", ()), StopReason.END, Usage(input=50), "m"))
    assert bound(later).tokens(REQUEST) > 10_000


@pytest.mark.parametrize("thinking", [{}, {"reasoning_content": "hm"}])
def test_conversation_that_continues_without_its_reasoning_is_bounded_by_its_count(
    thinking: dict[str, Any],
) -> None:
    counts = TokenCounts().for_session()
    conversation = [LONG_SYSTEM, USER]
    parts = request_parts("openai-chat", {"model": "m", "messages": conversation})
    reply = {"role": "assistant", "content": "well", **thinking}
    PartBound(parts, "openai-chat", (), counts, 1024).learn(
        REQUEST,
        Reply(
            Message("assistant", (), ProviderBlocks("openai-chat", (reply,))),
            StopReason.END,
            Usage(input=2000, output=20),
            "m",
        ),
    )
    later = [*conversation, {"role": "assistant", "content": "well"}, USER]
    parts = request_parts("openai-chat", {"model": "m", "messages": later})
    assert PartBound(parts, "openai-chat", (), counts, 1024).tokens(REQUEST) < 1024 + 2000 + 20 + 150


@pytest.mark.parametrize(
    "dropping",
    [
        {"messages": [{"role": "user", "content": [{"type": "compaction", "content": "short"}]}]},
        {"tools": [TOOLS[0] | {"defer_loading": True}]},
    ],
)
def test_count_of_a_request_that_drops_parts_is_not_stored(dropping: dict[str, Any]) -> None:
    counts = TokenCounts().for_session()
    long = {"role": "user", "content": "word " * 2000}
    messages = [long, *dropping.get("messages", [])]
    bound = bound_of(counts, {"model": "m", "tools": [], **dropping, "messages": messages})
    bound.learn(REQUEST, reply_of((), Usage(input=100, output=1)))
    assert bound_of(counts, {"model": "m", "messages": [long]}).tokens(REQUEST) > 10_000


def added_tools(name: str) -> dict[str, Any]:
    inner = [{"type": "function", "name": each, "description": "word " * 1000} for each in "ab"]
    namespace = {"type": "namespace", "name": name, "tools": inner}
    return {"type": "additional_tools", "role": "developer", "tools": [namespace]}


def bound_of_input(counts: SessionTokenCounts, *items: dict[str, Any], **more: Any) -> PartBound:
    parts = request_parts("openai", {"model": "m", "input": [*items], **more})
    return PartBound(parts, "openai", (), counts, 1024)


def test_tools_in_the_input_are_bounded_by_their_bytes_and_then_by_their_count() -> None:
    counts, item = TokenCounts().for_session(), added_tools("one")
    first = bound_of_input(counts, item, USER)
    assert first.tokens(REQUEST) >= len(json.dumps(item, separators=(",", ":"))) + 4 * OVERHEAD_TOKENS
    first.learn(REQUEST, reply_of((), Usage(input=2500, output=1)))
    assert bound_of_input(counts, item, USER, USER).tokens(REQUEST) < 4500
    assert bound_of_input(counts, item, USER, added_tools("two")).tokens(REQUEST) > 12_500


@pytest.mark.parametrize(
    "before", [{"tools": [FUNCTION_CALL]}, {"input": [USER]}, {"input": [added_tools("two")]}]
)
def test_count_with_tools_that_others_may_replace_is_not_stored(before: dict[str, Any]) -> None:
    counts, item = TokenCounts().for_session(), added_tools("one")
    items = [*before.get("input", []), item]
    bound = bound_of_input(counts, *items, **{name: before[name] for name in before if name != "input"})
    bound.learn(REQUEST, reply_of((), Usage(input=100, output=1)))
    assert bound_of_input(counts, item).tokens(REQUEST) > 10_000


def test_message_among_the_tools_is_not_counted_as_a_message() -> None:
    counts = TokenCounts().for_session()
    long = {"role": "user", "content": "word " * 2000}
    bound_of(counts, {"model": "m", "tools": [long], "messages": []}).learn(
        REQUEST, reply_of((), Usage(input=100, output=1))
    )
    assert bound_of(counts, {"model": "m", "messages": [long]}).tokens(REQUEST) > 10_000


@pytest.mark.parametrize("change", [{"thinking": {"type": "adaptive"}}, {"tool_choice": {"type": "none"}}])
def test_count_of_another_shape_is_not_used(change: dict[str, Any]) -> None:
    counts = TokenCounts().for_session()
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "word " * 2000}]}
    bound_of(counts, body).learn(REQUEST, reply_of((), Usage(input=2000, output=1)))
    assert bound_of(counts, body).tokens(REQUEST) < 4000
    assert bound_of(counts, body | change).tokens(REQUEST) > 10_000
    assert bound_of(counts, body, ("context-management-2025-06-27",)).tokens(REQUEST) > 10_000


LONG_REPLY = "word, " * 20_000
CALLS = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
OUTPUT_TEXT = {"type": "output_text", "text": LONG_REPLY, "annotations": []}
ITEM = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "content": [OUTPUT_TEXT],
}
FUNCTION_ITEM = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": LONG_REPLY}
PLAIN = {"role": "assistant", "content": LONG_REPLY}


@pytest.mark.parametrize(
    ("protocol", "reply", "sent_back"),
    [
        ("openai-chat", {**PLAIN, "tool_calls": CALLS}, {"tool_calls": CALLS, **PLAIN}),
        ("openai-chat", {**PLAIN, "reasoning_content": "hm"}, {**PLAIN, "refusal": None}),
        ("openai-chat", PLAIN, {**PLAIN, "content": [{"type": "text", "text": LONG_REPLY}]}),
        ("openai", ITEM, {name: ITEM[name] for name in ITEM if name not in {"id", "status"}}),
        ("openai", ITEM, {**PLAIN, "content": [{"type": "output_text", "text": LONG_REPLY}]}),
        ("openai", ITEM, PLAIN),
        ("openai", FUNCTION_ITEM, {name: FUNCTION_ITEM[name] for name in FUNCTION_ITEM if name != "id"}),
        ("anthropic", {"type": "text", "text": LONG_REPLY}, PLAIN),
    ],
)
def test_long_reply_in_another_form_is_bounded_by_its_count(
    protocol: str, reply: dict[str, Any], sent_back: dict[str, Any]
) -> None:
    counts, key = TokenCounts().for_session(), "input" if protocol == "openai" else "messages"

    def bound(*messages: dict[str, Any]) -> PartBound:
        parts = request_parts(protocol, {"model": "m", key: [USER, *messages]})
        return PartBound(parts, protocol, (), counts, 1024)

    message = Message("assistant", (), ProviderBlocks(protocol, (reply,)))
    request = Request("", (), max_output_tokens=50_000)
    bound().learn(request, Reply(message, StopReason.END, Usage(input=20, output=40_000), "m"))
    assert 40_000 < bound(sent_back, USER).tokens(request) < 40_000 + 1024 + 500
    for other in (
        {**PLAIN, "content": f"{LONG_REPLY}."},
        {**PLAIN, "role": "user"},
        {"type": "function_call_output", "call_id": "c", "output": LONG_REPLY},
        # A template writes arguments with more escapes than a text.
        {
            **PLAIN,
            "content": None,
            "tool_calls": [{"function": {"name": "f", "arguments": f" {LONG_REPLY}"}}],
        },
    ):
        assert bound(other, USER).tokens(request) > len(LONG_REPLY)
    assert bound(sent_back, sent_back, USER).tokens(request) > 80_000
