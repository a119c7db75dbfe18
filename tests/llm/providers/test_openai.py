from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from codetaste.errors import MalformedReply, ModelError, ModelRefused, ModelUnavailable, RateLimited
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import (
    Message,
    Request,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from codetaste.llm.providers.remote import RemoteModel
from codetaste.llm.wire.protocols import PROTOCOLS
from support.llm.provider import server as provider

TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})
HELLO = Request("Be brief.", (Message("user", (TextBlock("hello"),)),), (TOOL,))
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "hm … näh"}],
    "encrypted_content": "c2VjcmV0+/==",
    "new_field": {"stored": [1.0, None]},
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Let me look. 🙂", "annotations": [], "logprobs": []}],
}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "look",
    "arguments": '{ "at": "é\\u0000", "n": [1, 2.50]}',
    "status": "completed",
}
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 20},
    "output_tokens": 42,
    "output_tokens_details": {"reasoning_tokens": 9},
    "total_tokens": 142,
}


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        yield running


@pytest.fixture
async def model(server: provider.Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RemoteModel]:
    monkeypatch.setenv("MY_KEY", "sk-x")
    config = ModelConfig(
        id="m",
        provider="openai",
        model="some-model",
        base_url=f"{server.url}/v1",
        api_key_env="MY_KEY",
        timeout=20.0,
    )
    remote = RemoteModel(PROTOCOLS[config.provider], config)
    yield remote
    await remote.aclose()


def sending(*events: dict[str, Any]) -> provider.Handler:
    """Answer with these events alone."""

    async def handle(exchange: provider.Exchange) -> None:
        await exchange.stream(list(events), chunked=True)

    return handle


def ended(kind: str = "completed", *items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "model": "some-model", "status": kind, "output": list(items), "usage": USAGE}
    return {"type": f"response.{kind}", "response": {**response, **fields}}


CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
ADDED = {"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE, "content": []}}


def done(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate(items)
    ]


@pytest.mark.anyio
async def test_openai_body_is_valid_and_disables_storage(server: provider.Server, model: RemoteModel) -> None:
    server.default = provider.reply(provider.text("ok"))
    options = {"reasoning": {"effort": "high", "summary": "auto"}, "parallel_tool_calls": False}
    await model.complete(replace(HELLO, options=options, max_output_tokens=5000), call="1")
    assert server.bodies[0] == {
        "model": "some-model",
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}],
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "Look.",
                "parameters": dict(TOOL.parameters),
                "strict": False,
            }
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "max_output_tokens": 5000,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto"},
    }
    await model.complete(Request("", HELLO.messages, options={"include": []}), call="2")
    assert not {"include", "instructions", "tools", "tool_choice"} & server.bodies[1].keys()


@pytest.mark.anyio
async def test_openai_streamed_reply_round_trips_bytes(server: provider.Server, model: RemoteModel) -> None:
    items = [REASONING, MESSAGE, CALL]
    server.handlers += [
        sending(CREATED, ADDED, *done(*items), ended("completed", *items)),
        provider.reply(provider.text("done")),
    ]
    reply = await model.complete(HELLO, call="1")
    assert reply.stop is StopReason.TOOL_USE
    assert reply.usage == Usage(input=50, cache_read=30, cache_write=20, output=42, reasoning=9)
    assert reply.message.content == (
        TextBlock("Let me look. 🙂"),
        ToolCall("call_1", "look", {"at": "é\0", "n": [1, 2.5]}),
    )
    result = Message("user", (TextBlock("and?"), ToolResult("call_1", "no such place", is_error=True)))
    await model.complete(replace(HELLO, messages=(*HELLO.messages, reply.message, result)), call="2")
    written = json.dumps(items, ensure_ascii=False, separators=(",", ":")).strip("[]").encode()
    assert written in server.raw_bodies[1]
    *_, output, words = server.bodies[1]["input"]
    assert output == {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": "Error: no such place",
    }
    assert words["content"] == [{"type": "input_text", "text": "and?"}]


@pytest.mark.anyio
async def test_final_event_with_usage_alone_is_read(server: provider.Server, model: RemoteModel) -> None:
    last = {"type": "response.completed", "response": {"id": "resp_9", "usage": USAGE}}
    server.handlers.append(sending(*done(MESSAGE, CALL), last))
    reply = await model.complete(HELLO, call="1")
    assert reply.message.raw is not None
    assert reply.message.raw.blocks == (MESSAGE, CALL)
    assert reply.stop is StopReason.TOOL_USE


@pytest.mark.anyio
async def test_openai_reasoning_marked_unstored_is_not_sent_back(
    server: provider.Server, model: RemoteModel
) -> None:
    bare = {"id": "rs_1", "type": "reasoning", "summary": []}
    local = {"id": "rs_2", "type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}
    server.handlers += [
        sending(ended("completed", bare, local, MESSAGE)),
        provider.reply(provider.text("done")),
    ]
    reply = await model.complete(HELLO, call="1")
    assert reply.message.raw is not None
    assert reply.message.raw.blocks[0] == bare
    await model.complete(replace(HELLO, messages=(*HELLO.messages, reply.message)), call="2")
    assert server.bodies[1]["input"][1:] == [local, MESSAGE]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("event", "stop"),
    [
        (ended("completed", MESSAGE), StopReason.END),
        (ended("completed", MESSAGE, CALL), StopReason.TOOL_USE),
        (ended("incomplete", incomplete_details={"reason": "max_output_tokens"}), StopReason.LENGTH),
        (ended("incomplete", CALL, incomplete_details={"reason": "max_output_tokens"}), StopReason.LENGTH),
        (ended("incomplete", incomplete_details={"reason": "content_filter"}), StopReason.REFUSAL),
        (ended("incomplete", incomplete_details={"reason": "something_new"}), StopReason.OTHER),
        (ended("incomplete", incomplete_details=None), StopReason.OTHER),
        (
            ended("completed", {**MESSAGE, "content": [{"type": "refusal", "refusal": "I will not."}]}),
            StopReason.REFUSAL,
        ),
    ],
)
async def test_stop_reasons_are_mapped(
    server: provider.Server, model: RemoteModel, event: dict[str, Any], stop: StopReason
) -> None:
    server.handlers.append(sending(event))
    reply = await model.complete(HELLO, call="1")
    assert reply.stop is stop
    if stop is StopReason.REFUSAL and reply.message.content:
        assert reply.message.text == "I will not."


@pytest.mark.anyio
async def test_openai_invalid_call_is_reported_and_next_request_works(
    server: provider.Server, model: RemoteModel
) -> None:
    cut = {**CALL, "arguments": '{"at": "wher', "status": "incomplete"}
    same = {**CALL, "id": "fc_2", "name": "multi_tool_use.parallel"}
    bare = {"type": "function_call", "id": "fc_3"}
    limit = {"reason": "max_output_tokens"}
    server.handlers += [
        sending(ended("incomplete", cut, same, bare, incomplete_details=limit)),
        provider.reply(provider.text("sorry")),
    ]
    reply = await model.complete(HELLO, call="1")
    broken, odd, nameless = reply.message.tool_calls
    assert "not JSON" in str(broken.fault)
    assert (odd.name, odd.fault) == ("multi_tool_use.parallel", None)
    assert nameless.fault == "it names no tool"
    assert len({broken.id, odd.id, nameless.id}) == 3
    results = tuple(ToolResult(call.id, "no", is_error=True) for call in reply.message.tool_calls)
    following = replace(HELLO, messages=(*HELLO.messages, reply.message, Message("user", results)))
    await model.complete(following, call="2")
    calls = [item for item in server.bodies[1]["input"] if item["type"] == "function_call"]
    outputs = [item for item in server.bodies[1]["input"] if item["type"] == "function_call_output"]
    assert [item["call_id"] for item in calls] == [item["call_id"] for item in outputs]
    assert [item["name"] for item in calls] == ["look", "multi_tool_use_parallel", "unnamed"]
    assert [item["arguments"] for item in calls] == ["{}", CALL["arguments"], "{}"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "error", "overloaded"),
    [
        ("rate_limit_exceeded", RateLimited, True),
        ("server_is_overloaded", ModelUnavailable, True),
        ("slow_down", ModelUnavailable, True),
        ("server_error", ModelUnavailable, False),
        ("something_new", ModelUnavailable, False),
        (None, ModelUnavailable, False),
        ("insufficient_quota", ModelRefused, False),
        ("usage_limit_reached", ModelRefused, False),
        ("context_length_exceeded", ModelRefused, False),
        ("invalid_prompt", ModelRefused, False),
        ("bio_policy", ModelRefused, False),
    ],
)
async def test_failed_response_states_reason_and_may_be_billed(
    server: provider.Server,
    model: RemoteModel,
    code: str | None,
    error: type[ModelError],
    *,
    overloaded: bool,
) -> None:
    failure = {"code": code, "message": "Sorry. Please try again in 1m2.5s."}
    failed = ended("failed", error=failure, usage=None)
    event = {"type": "error", "sequence_number": 1, "param": None, **failure}
    for first in ([CREATED], [CREATED, ADDED]):
        for last in (failed, event):
            server.handlers.append(sending(*first, last))
            with pytest.raises(ModelError, match="Sorry") as caught:
                await model.complete(HELLO, call="1")
            assert caught.value.overloaded is overloaded
            assert not caught.value.unbilled
            if len(first) == 1 or code in {"insufficient_quota", "usage_limit_reached"}:
                assert isinstance(caught.value, error)
            else:
                assert not isinstance(caught.value, ModelRefused)
            if isinstance(caught.value, RateLimited):
                assert caught.value.retry_after_s == 62.5


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([CREATED], ModelUnavailable),
        ([CREATED, ADDED, *done(MESSAGE)], ModelUnavailable),
        ([], ModelUnavailable),
        ([CREATED, ADDED, {"type": "response.completed", "response": {"id": "x"}}], MalformedReply),
        ([{"type": "response.completed", "response": None}], MalformedReply),
        ([{"type": "response.output_item.done"}], MalformedReply),
        ([{**ADDED, "output_index": []}], MalformedReply),
        ([ended("completed", "no item")], MalformedReply),  # type: ignore[arg-type]
        ([ended("completed", status="queued")], MalformedReply),
    ],
)
async def test_stream_without_valid_final_event_is_no_reply(
    server: provider.Server,
    model: RemoteModel,
    events: list[dict[str, Any]],
    error: type[ModelError],
) -> None:
    server.handlers.append(sending(*events))
    with pytest.raises(error) as caught:
        await model.complete(HELLO, call="1")
    assert not caught.value.unbilled


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (429, {"code": "insufficient_quota", "message": "Pay."}, ModelRefused, "waiting does not help"),
        (
            429,
            {"type": "insufficient_quota", "code": None, "message": "Pay."},
            ModelRefused,
            "waiting does not help",
        ),
        (
            400,
            {"code": "context_length_exceeded", "message": "Long."},
            ModelRefused,
            "too long for the model",
        ),
        (400, {"param": "include", "message": "Encrypted content."}, ModelRefused, r"options.include = \[\]"),
        (503, {"code": "slow_down", "message": "Slow down."}, ModelUnavailable, "slow_down: Slow down"),
        (500, {"code": "server_is_overloaded", "message": "x"}, ModelUnavailable, "overloaded"),
        (429, {"code": "slow_down", "message": "x"}, RateLimited, "slow_down"),
    ],
)
async def test_official_errors_are_identified_by_code(
    server: provider.Server,
    model: RemoteModel,
    status: int,
    body: dict[str, Any],
    error: type[ModelError],
    message: str,
) -> None:
    server.handlers.append(provider.status(status, {"error": body}))
    with pytest.raises(error, match=message) as caught:
        await model.complete(HELLO, call="1")
    assert caught.value.unbilled
    assert caught.value.overloaded is (error is not ModelRefused)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "message", "wait_s"),
    [
        ({"retry_after": "3", "x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "9s"}, "", 3),
        ({"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "6m0s"}, "", 360),
        (
            {
                "x_ratelimit_remaining_requests": "0",
                "x_ratelimit_reset_requests": "20ms",
                "x_ratelimit_remaining_tokens": "40",
                "x_ratelimit_reset_tokens": "9s",
            },
            "",
            0.02,
        ),
        ({}, "Please try again in 1.5s. Visit us.", 1.5),
        ({"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "soon"}, "", None),
        ({"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "9" * 5000 + "h"}, "", None),
        ({}, "Please try again in 99999999h", 3600),
    ],
)
async def test_retry_time_is_read_from_headers_or_message(
    server: provider.Server, model: RemoteModel, headers: dict[str, str], message: str, wait_s: float | None
) -> None:
    body = {"error": {"code": "rate_limit_exceeded", "type": "requests", "message": message}}
    server.handlers.append(provider.status(429, body, **headers))
    with pytest.raises(RateLimited) as caught:
        await model.complete(HELLO, call="1")
    assert caught.value.retry_after_s == wait_s
