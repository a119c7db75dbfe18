"""A conversation has the same content in all three protocols, and round-trips through a cassette."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.llm.build import build_model
from codetaste.llm.codec import message_from_json, message_to_json
from codetaste.llm.config import ModelConfig
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
)
from codetaste.llm.metering.prompt_bound import PromptBound, wire_size
from codetaste.llm.model import Model
from codetaste.llm.wire.anthropic import client as anthropic
from codetaste.llm.wire.common.output_cap import lower_output
from codetaste.llm.wire.openai_chat import client as openai_chat
from codetaste.llm.wire.openai_responses import client as openai_responses
from support.llm.provider import server as provider
from support.llm.provider.server import PROTOCOLS, Protocol

TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})
BODIES = {
    "anthropic": anthropic.request_body,
    "openai": openai_responses.request_body,
    "openai-chat": openai_chat.request_body,
}
TURNS = [
    (
        [
            {"type": "thinking", "thinking": "hm … näh", "signature": "c2ln"},
            provider.text("I look at two places. 🙂"),
            {
                "type": "tool_use",
                "id": "call_a",
                "name": "look",
                "input": {"at": "é", "deep": [1, {"x": None}]},
            },
            {"type": "tool_use", "id": "call_b", "name": "look", "partial": ""},
        ],
        "tool_use",
    ),
    (
        [
            {"type": "thinking", "thinking": "so", "signature": "c2ln"},
            {"type": "tool_use", "id": "call_a", "name": "look", "partial": '{"at": "cu'},
        ],
        "max_tokens",
    ),
    ([{"type": "thinking", "thinking": "aha", "signature": "c2ln"}, provider.text("Done.")], "end_turn"),
]
ANSWERS = [
    (("a thing\n\0 🙂", False), ("no such place", True)),
    (("cut off", True),),
]


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        yield running


def client(protocol: Protocol, server: provider.Server, base_dir: Path, **fields: Any) -> Model:
    base_url = server.url if protocol == "anthropic" else f"{server.url}/v1"
    config = ModelConfig.model_validate(
        {
            "id": "m",
            "provider": protocol,
            "model": "x",
            "base_url": base_url,
            "api_key_env": "MY_KEY",
            **fields,
        }
    )
    return build_model(config, base_dir=base_dir, record_dir=base_dir)


async def converse(model: Model, messages: list[Message]) -> list[Reply]:
    """Continue until the model makes no more calls, answering its calls in order."""
    replies = []
    answers = iter(ANSWERS)
    while not replies or replies[-1].message.tool_calls:
        request = Request("Be brief.", tuple(messages), (TOOL,))
        replies.append(await model.complete(request, call=str(len(replies))))
        messages.append(replies[-1].message)
        if calls := replies[-1].message.tool_calls:
            given_ = zip(calls, next(answers), strict=True)
            results = (ToolResult(call.id, text, is_error=wrong) for call, (text, wrong) in given_)
            messages.append(Message("user", tuple(results)))
    return replies


def prepare_turns(server: provider.Server) -> None:
    counts = {
        "input_tokens": 11,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 7,
        "output_tokens": 42,
    }
    server.handlers += [provider.reply(*blocks, stop=stop, usage=counts) for blocks, stop in TURNS]


@pytest.mark.anyio
async def test_conversation_is_equal_in_all_three_protocols(
    server: provider.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-x")
    histories: dict[str, list[Message]] = {}
    results: dict[str, list[Any]] = {}
    for protocol in PROTOCOLS:
        prepare_turns(server)
        model = client(protocol, server, tmp_path)
        messages = [Message("user", (TextBlock("Where is it?"),))]
        replies = await converse(model, messages)
        await model.aclose()
        histories[protocol] = [replace(message, raw=None) for message in messages]
        results[protocol] = [(reply.stop, reply.usage, reply.model) for reply in replies]
        assert all(reply.message.raw is not None for reply in replies)
    assert histories["anthropic"] == histories["openai"] == histories["openai-chat"]
    assert results["anthropic"] == results["openai"] == results["openai-chat"]
    assert [stop for stop, _, _ in results["anthropic"]] == [
        StopReason.TOOL_USE,
        StopReason.LENGTH,
        StopReason.END,
    ]
    first, _, second, *_ = histories["anthropic"][1:]
    assert [call.arguments for call in first.tool_calls] == [{"at": "é", "deep": [1, {"x": None}]}, {}]
    assert second.tool_calls[0].id == "call_a-2"  # ids are unique in the conversation


@pytest.mark.anyio
@pytest.mark.parametrize("other", PROTOCOLS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_conversation_continues_in_any_other_protocol(
    server: provider.Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    protocol: Protocol,
    other: Protocol,
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-x")
    prepare_turns(server)
    first = client(protocol, server, tmp_path)
    messages = [Message("user", (TextBlock("Where is it?"),))]
    await converse(first, messages)
    await first.aclose()
    messages.append(Message("user", (TextBlock("Go on."),)))
    second = client(other, server, tmp_path)
    server.handlers.append(provider.reply(provider.text("fine")))
    await second.complete(Request("", tuple(messages)), call="x")
    await second.aclose()
    content = content_of(other, server.bodies[-1])
    assert content == expected_content(messages)
    if protocol != other:
        assert "näh" not in json.dumps(server.bodies[-1], ensure_ascii=False)


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_cassette_stores_provider_blocks_and_replays(
    server: provider.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: Protocol
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-x")
    prepare_turns(server)
    recording = client(protocol, server, tmp_path, cassette="tape.jsonl", mode="record")
    recorded = await converse(recording, [Message("user", (TextBlock("Where is it?"),))])
    await recording.aclose()
    monkeypatch.delenv("MY_KEY")
    replaying = client(protocol, server, tmp_path, cassette="tape.jsonl")
    assert await converse(replaying, [Message("user", (TextBlock("Where is it?"),))]) == recorded
    await replaying.aclose()
    for reply in recorded:
        written = json.loads(json.dumps(message_to_json(reply.message)))
        assert message_from_json(written) == reply.message


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
names = st.sampled_from(["look", "find-it", "a_b"])
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
model_blocks = st.lists(
    st.builds(TextBlock, texts)
    | st.builds(ToolCall, st.just(""), names, st.dictionaries(texts, data, max_size=3)),
    max_size=4,
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Draw turns like the loop's: each call has a unique id and is answered in the next message."""
    messages = [Message("user", (TextBlock(draw(texts.filter(str.strip))),))]
    number = 0
    for _ in range(draw(st.integers(0, 3))):
        blocks: list[Any] = []
        for block in draw(model_blocks):
            number += isinstance(block, ToolCall)
            blocks.append(replace(block, id=f"c{number}") if isinstance(block, ToolCall) else block)
        calls = [block for block in blocks if isinstance(block, ToolCall)]
        results = [ToolResult(call.id, draw(texts), is_error=draw(st.booleans())) for call in calls]
        words = [TextBlock(word) for word in draw(st.lists(texts, max_size=2))]
        messages += [Message("assistant", tuple(blocks)), Message("user", (*words, *results))]
    return messages


@given(conversations())
@settings(max_examples=200, deadline=None)
def test_request_bodies_have_equal_content_order_in_all_protocols(messages: list[Message]) -> None:
    for protocol, body_of in BODIES.items():
        request = Request("Be brief.", tuple(messages), (TOOL,))
        body = json.loads(json.dumps(body_of(request, "x"), ensure_ascii=False).encode("utf-8", "replace"))
        assert joined(content_of(protocol, body)) == joined(expected_content(messages)), protocol


def joined(parts: list[Any]) -> list[Any]:
    """Join texts of one role that follow each other, as some protocols do if a message between is empty."""
    found: list[Any] = []
    for part in parts:
        if found and part[0] in {"user", "assistant"} and found[-1][0] == part[0]:
            part = (part[0], f"{found.pop()[1]}\n\n{part[1]}")  # noqa: PLW2901
        found.append(part)
    return found


def expected_content(messages: list[Message]) -> list[Any]:
    """Return the content of a body: of each turn the results, then the text, then the calls."""
    parts: list[Any] = []
    for message in messages:
        results = [block for block in message.content if isinstance(block, ToolResult)]
        parts += [("result", each.call_id, _unless_blank(each.content), each.is_error) for each in results]
        words = [
            block.text for block in message.content if isinstance(block, TextBlock) and block.text.strip()
        ]
        parts += [(message.role, word) for word in words]
        parts += [("call", call.id, call.name, dict(call.arguments)) for call in message.tool_calls]
    return parts


def content_of(protocol: str, body: dict[str, Any]) -> list[Any]:
    """Read a body by its protocol's documentation, with the calls after the text of their turn."""
    reader = {"anthropic": _anthropic_content, "openai": _responses_content, "openai-chat": _chat_content}
    return _calls_last(reader[protocol](body))


def _anthropic_content(body: dict[str, Any]) -> list[Any]:
    parts: list[Any] = []
    for message in body["messages"]:
        for block in message["content"]:
            match block["type"]:
                case "text":
                    parts.append((message["role"], block["text"]))
                case "tool_use":
                    parts.append(("call", block["id"], block["name"], block["input"]))
                case "tool_result":
                    wrong = block.get("is_error", False)
                    parts.append(("result", block["tool_use_id"], block.get("content", ""), wrong))
    return parts


def _responses_content(body: dict[str, Any]) -> list[Any]:
    parts: list[Any] = []
    for item in body["input"]:
        match item["type"]:
            case "message":
                parts += [(item["role"], part["text"]) for part in item["content"]]
            case "function_call":
                parts.append(("call", item["call_id"], item["name"], json.loads(item["arguments"])))
            case "function_call_output":
                parts.append(_result(item["call_id"], item["output"]))
    return parts


def _chat_content(body: dict[str, Any]) -> list[Any]:
    parts: list[Any] = []
    for message in body["messages"]:
        content = message["content"]
        if message["role"] == "tool":
            parts.append(_result(message["tool_call_id"], content))
        elif message["role"] != "system":
            words = content if isinstance(content, list) else [{"text": content}] if content else []
            parts += [(message["role"], part["text"]) for part in words]
        for call in message.get("tool_calls", ()):
            function = call["function"]
            parts.append(("call", call["id"], function["name"], json.loads(function["arguments"])))
    return parts


def _result(call_id: str, content: str) -> Any:
    wrong = content.startswith("Error: ")
    return ("result", call_id, _unless_blank(content.removeprefix("Error: ")), wrong)


def _unless_blank(content: str) -> str:
    """Treat a blank result as empty, as Anthropic's protocol accepts no blank text."""
    return content if content.strip() else ""


def _calls_last(parts: list[Any]) -> list[Any]:
    """Put the calls of a model's turn after its text."""
    ordered: list[Any] = []
    calls: list[Any] = []
    for each in parts:
        if each[0] not in {"call", "assistant"}:
            ordered += calls
            calls = []
        (calls if each[0] == "call" else ordered).append(each)
    return ordered + calls


@given(conversations(), st.text(max_size=50))
@settings(max_examples=100, deadline=None)
def test_message_is_never_longer_than_its_measured_size(messages: list[Message], secret: str) -> None:
    sealed = [
        ProviderBlocks(
            openai_responses.PROTOCOL, ({"type": "reasoning", "encrypted_content": secret * 50, "id": "rs"},)
        ),
        ProviderBlocks(
            openai_chat.PROTOCOL, ({"role": "assistant", "content": "x", "reasoning_content": secret * 50},)
        ),
    ]
    messages = [*messages, *(Message("assistant", (TextBlock("x"),), raw) for raw in sealed)]
    for protocol, body_of in BODIES.items():
        for message in messages:
            body = body_of(Request("", (message,), options={"cache_control": False}), "x")
            sent = sum(_size(value) for value in _model_values(protocol, body))
            assert sent <= wire_size(message)


def _model_values(protocol: str, body: dict[str, Any]) -> Iterator[Any]:
    """Yield what a model reads of the only message: text, ids, names, arguments, results and reasoning."""
    for item in body["input" if protocol == "openai" else "messages"]:
        yield from _leaves(item)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in {"type", "role", "is_error"}:
                yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _size(value: Any) -> int:
    text = value if isinstance(value, str) else json.dumps(value)
    return len(text.encode("utf-8", "replace"))


def test_budget_lowers_only_the_cap_in_every_protocol() -> None:
    request = Request("", (Message("user", (TextBlock("x"),)),), options={"reasoning": {"effort": "high"}})
    names = {"anthropic": "max_tokens", "openai": "max_output_tokens", "openai-chat": "max_completion_tokens"}
    for protocol, body_of in BODIES.items():
        body = body_of(lower_output(request, 2000), "x")
        assert body[names[protocol]] == 2000
        assert body["reasoning"] == {"effort": "high"}


def test_reasoning_sent_back_counts_in_bound() -> None:
    raw = ProviderBlocks(openai_responses.PROTOCOL, ({"type": "reasoning", "encrypted_content": "x" * 5000},))
    message = Message("assistant", (TextBlock("hi"),), raw)
    assert PromptBound().tokens(Request("", (message,))) > 5000
