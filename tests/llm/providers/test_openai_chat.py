from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import MalformedReply, ModelError, ModelRefused, ModelUnavailable, RateLimited
from codetaste.llm.build import build_model
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
USAGE = {
    "prompt_tokens": 100,
    "prompt_tokens_details": {"cached_tokens": 30},
    "completion_tokens": 42,
    "completion_tokens_details": {"reasoning_tokens": 9},
    "total_tokens": 142,
}
LAST = {"choices": [], "usage": USAGE}


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        yield running


@pytest.fixture
async def model(server: provider.Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RemoteModel]:
    monkeypatch.setenv("MY_KEY", "sk-x")
    config = ModelConfig(
        id="m",
        provider="openai-chat",
        model="some-model",
        base_url=f"{server.url}/v1",
        api_key_env="MY_KEY",
        timeout=20.0,
    )
    remote = RemoteModel(PROTOCOLS[config.provider], config)
    yield remote
    await remote.aclose()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "model": "some-model",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def sending(*chunks: Any) -> provider.Handler:
    """Answer with these chunks alone."""

    async def handle(exchange: provider.Exchange) -> None:
        await exchange.stream(list(chunks), chunked=True)

    return handle


def call(**fields: Any) -> dict[str, Any]:
    """Return a piece of a tool call; ``name`` and ``arguments`` are its function's."""
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return delta(tool_calls=[{**fields, "function": function}])


@pytest.mark.anyio
async def test_request_body_follows_the_protocol(server: provider.Server, model: RemoteModel) -> None:
    server.default = provider.reply(provider.text("ok"))
    options = {"temperature": 0.0, "stream_options": {"include_obfuscation": False}}
    await model.complete(replace(HELLO, options=options, max_output_tokens=5000), call="1")
    assert server.bodies[0] == {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hello"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Look.", "parameters": dict(TOOL.parameters)},
            }
        ],
        "tool_choice": "auto",
        "max_tokens": 5000,
        "max_completion_tokens": 5000,
        "stream": True,
        "stream_options": {"include_usage": True, "include_obfuscation": False},
        "temperature": 0.0,
    }


@pytest.mark.anyio
async def test_output_cap_option_selects_field_of_cap(server: provider.Server, model: RemoteModel) -> None:
    server.default = provider.reply(provider.text("ok"))
    for cap, other in (("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")):
        options = {"output_cap": cap, "stream_options": {}}
        await model.complete(replace(HELLO, options=options, max_output_tokens=77), call="1")
        body = server.bodies[-1]
        assert body[cap] == 77
        assert not {other, "output_cap", "stream_options"} & body.keys()


@pytest.mark.anyio
async def test_local_server_is_called_without_key(
    server: provider.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-account")
    config = ModelConfig(id="m", provider="openai-chat", model="x", base_url=f"{server.url}/v1")
    assert config.key_env is None
    model = build_model(config, base_dir=Path(), record_dir=Path())
    server.handlers.append(provider.reply(provider.text("ok")))
    await model.complete(HELLO, call="1")
    await model.aclose()
    (sent,) = server.headers
    assert "authorization" not in sent


@pytest.mark.anyio
async def test_chat_streamed_reply_round_trips_with_reasoning(
    server: provider.Server, model: RemoteModel
) -> None:
    details = [{"type": "reasoning.text", "index": 0, "text": "hm"}, {"type": "reasoning.text", "index": 0}]
    server.default = provider.reply(provider.text("done"))
    server.handlers.append(
        sending(
            delta(role="assistant", content=None, reasoning_content=None),
            delta(reasoning_content="hm … ", reasoning="hm … ", reasoning_details=[details[0]]),
            delta(reasoning_content="näh", reasoning="näh", reasoning_details=[{**details[1], "text": "!"}]),
            delta(content="Let me "),
            delta(content="look. 🙂"),
            call(
                index=0, id="call_1", type="function", name="look", arguments="", extra_content={"sign": "x"}
            ),
            call(index=0, arguments='{ "at": '),
            call(index=0, arguments='"é\\u0000"}'),
            delta(finish="tool_calls"),
            LAST,
            "[DONE]",
        )
    )
    reply = await model.complete(HELLO, call="1")
    assert reply.stop is StopReason.TOOL_USE
    assert reply.usage == Usage(input=70, cache_read=30, output=42, reasoning=9)
    assert reply.message.content == (TextBlock("Let me look. 🙂"), ToolCall("call_1", "look", {"at": "é\0"}))
    expected = {
        "role": "assistant",
        "content": "Let me look. 🙂",
        "reasoning_content": "hm … näh",
        "reasoning": "hm … näh",
        "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "hm!"}],
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "look", "arguments": '{ "at": "é\\u0000"}'},
                "extra_content": {"sign": "x"},
            }
        ],
    }
    result = Message("user", (TextBlock("and?"), ToolResult("call_1", "no such place", is_error=True)))
    following = replace(HELLO, messages=(*HELLO.messages, reply.message, result))
    await model.complete(following, call="2")
    assert server.bodies[1]["messages"][2:] == [
        expected,
        {"role": "tool", "tool_call_id": "call_1", "content": "Error: no such place"},
        {"role": "user", "content": "and?"},
    ]
    await model.complete(replace(following, options={"send_reasoning": False}), call="3")
    back = server.bodies[2]["messages"][2]
    assert back == {name: expected[name] for name in ("role", "content", "tool_calls")}


WHOLE = {"name": "look", "arguments": '{"at": "a"}'}
OTHER = {"name": "look", "arguments": '{"at": "b"}'}


@pytest.mark.anyio
@pytest.mark.parametrize(
    "pieces",
    [
        # whole calls at once, in one piece or in two
        [call(index=0, id="x", **WHOLE), call(index=1, id="y", **OTHER)],
        [
            delta(
                tool_calls=[
                    {"index": 0, "id": "x", "function": WHOLE},
                    {"index": 1, "id": "y", "function": OTHER},
                ]
            )
        ],
        # no ids, or empty ones
        [call(index=0, **WHOLE), call(index=1, **OTHER)],
        [call(index=0, id="", **WHOLE), call(index=1, id="", **OTHER)],
        # one id for all
        [call(index=0, id="x", **WHOLE), call(index=1, id="x", **OTHER)],
        [call(index=0, id="x", **WHOLE), call(index=0, id="x", **OTHER)],
        # one index for all, or none
        [call(index=0, id="x", **WHOLE), call(index=0, id="y", **OTHER)],
        [call(index=0, id="", **WHOLE), call(index=0, id="", **OTHER)],
        [call(id="x", **WHOLE), call(id="y", **OTHER)],
        [call(**WHOLE), call(**OTHER)],
        [call(index=None, id=None, **WHOLE), call(index=None, id=None, **OTHER)],
        # arguments that are data
        [
            call(index=0, id="x", name="look", arguments={"at": "a"}),
            call(index=1, name="look", arguments={"at": "b"}),
        ],
        # in pieces that take turns, with id and name in each
        [
            call(index=0, id="x", name="look", arguments='{"at"'),
            call(index=1, id="y", name="look", arguments='{"at"'),
            call(index=0, id="x", name="look", arguments=': "a"}'),
            call(index=1, id="y", name="look", arguments=': "b"}'),
            call(index=1, id="y", name="look", arguments=""),
        ],
        # in pieces without an index
        [
            call(id="x", name="look", arguments=""),
            call(arguments='{"at": "a"'),
            call(arguments="}"),
            call(id="y", name="look"),
            call(arguments='{"at": "b"}'),
        ],
    ],
)
async def test_chat_tool_calls_are_separated_for_any_server(
    server: provider.Server, model: RemoteModel, pieces: list[Any]
) -> None:
    server.handlers += [
        sending(*pieces, delta(finish="stop"), LAST, "[DONE]"),
        provider.reply(provider.text("fine")),
    ]
    reply = await model.complete(HELLO, call="1")
    assert reply.stop is StopReason.TOOL_USE
    first, second = reply.message.tool_calls
    assert (first.name, first.arguments, first.fault) == ("look", {"at": "a"}, None)
    assert (second.name, second.arguments, second.fault) == ("look", {"at": "b"}, None)
    assert first.id != second.id
    results = Message("user", (ToolResult(first.id, "1"), ToolResult(second.id, "2")))
    await model.complete(replace(HELLO, messages=(*HELLO.messages, reply.message, results)), call="2")
    *_, assistant, one, two = server.bodies[1]["messages"]
    assert [each["id"] for each in assistant["tool_calls"]] == [one["tool_call_id"], two["tool_call_id"]]
    assert [json.loads(each["function"]["arguments"])["at"] for each in assistant["tool_calls"]] == ["a", "b"]


@pytest.mark.anyio
async def test_chat_invalid_call_is_reported_and_next_request_works(
    server: provider.Server, model: RemoteModel
) -> None:
    server.handlers += [
        sending(
            call(index=0, id="a", name="multi_tool_use.parallel", arguments="{}"),
            call(index=1, id="b", arguments="{}"),
            call(index=2, id="c", name="look", arguments='{"at": "wher'),
            delta(finish="length"),
            "[DONE]",
        ),
        provider.reply(provider.text("sorry")),
    ]
    reply = await model.complete(HELLO, call="1")
    assert (reply.stop, reply.usage) == (StopReason.LENGTH, None)
    odd, nameless, broken = reply.message.tool_calls
    assert (odd.name, odd.fault) == ("multi_tool_use.parallel", None)
    assert nameless.fault == "it names no tool"
    assert "not JSON" in str(broken.fault)
    await model.complete(replace(HELLO, messages=(*HELLO.messages, reply.message)), call="2")
    functions = [each["function"] for each in server.bodies[1]["messages"][-1]["tool_calls"]]
    assert functions == [
        {"name": "multi_tool_use_parallel", "arguments": "{}"},
        {"name": "unnamed", "arguments": "{}"},
        {"name": "look", "arguments": "{}"},
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", StopReason.END),
        ("tool_calls", StopReason.END),
        ("length", StopReason.LENGTH),
        ("model_length", StopReason.LENGTH),
        ("content_filter", StopReason.REFUSAL),
        ("something_new", StopReason.OTHER),
    ],
)
async def test_stop_reasons_are_mapped(
    server: provider.Server, model: RemoteModel, reason: str, stop: StopReason
) -> None:
    server.handlers.append(sending(delta(content="x"), delta(finish=reason), LAST, "[DONE]"))
    assert (await model.complete(HELLO, call="1")).stop is stop


@pytest.mark.anyio
async def test_refusal_is_recognized(server: provider.Server, model: RemoteModel) -> None:
    server.handlers.append(
        sending(delta(refusal="I will "), delta(refusal="not."), delta(finish="stop"), LAST, "[DONE]")
    )
    reply = await model.complete(HELLO, call="1")
    assert (reply.stop, reply.message.text) == (StopReason.REFUSAL, "I will not.")


@pytest.mark.anyio
@pytest.mark.parametrize("chunks", [[LAST, "[DONE]"], [LAST], ["[DONE]"], []])
async def test_stream_end_with_reason_gives_reply_with_or_without_usage(
    server: provider.Server, model: RemoteModel, chunks: list[Any]
) -> None:
    server.handlers.append(sending(delta(content="x"), delta(finish="stop"), *chunks))
    reply = await model.complete(HELLO, call="1")
    assert reply.message.text == "x"
    assert (reply.usage is not None) is (LAST in chunks)


@pytest.mark.anyio
async def test_usage_before_the_end_is_not_final(server: provider.Server, model: RemoteModel) -> None:
    early = {**delta(content="x"), "usage": {**USAGE, "completion_tokens": 1, "total_tokens": 101}}
    server.handlers += [
        sending(early, delta(finish="stop"), "[DONE]"),
        sending(early, {**delta(finish="stop"), "usage": USAGE}, "[DONE]"),
    ]
    assert (await model.complete(HELLO, call="1")).usage is None
    reply = await model.complete(HELLO, call="2")
    assert reply.usage is not None
    assert reply.usage.output == 42


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("usage", "known"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 3}, Usage(input=5, output=3)),
        (
            {"prompt_tokens": 5, "completion_tokens": 3, "prompt_cache_hit_tokens": 4},
            Usage(1, cache_read=4, output=3),
        ),
        # Reasoning that is not counted in the completion is counted in the total.
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 3,
                "total_tokens": 18,
                "completion_tokens_details": {"reasoning_tokens": 10},
            },
            Usage(input=5, output=13, reasoning=10),
        ),
        ({"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 9}}, None),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 3,
                "completion_tokens_details": {"reasoning_tokens": 4},
            },
            None,
        ),
        ({"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": -1}}, None),
        ({"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1.5}}, None),
        ({"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": None}, Usage(5, output=3)),
    ],
)
async def test_usage_is_split_into_disjoint_kinds(
    server: provider.Server, model: RemoteModel, usage: dict[str, Any], known: Usage | None
) -> None:
    server.handlers.append(
        sending(delta(content="x", finish="stop"), {"choices": [], "usage": usage}, "[DONE]")
    )
    assert (await model.complete(HELLO, call="1")).usage == known


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("chunks", "error", "message"),
    [
        ([], ModelUnavailable, "before the reply began"),
        ([delta(content="x")], ModelUnavailable, "in the middle"),
        ([delta(content="x"), LAST], ModelUnavailable, "in the middle"),
        ([delta(content=""), LAST, "[DONE]"], MalformedReply, "without a finish reason"),
        ([call(name="look", arguments='{"at'), "[DONE]"], MalformedReply, "without a finish reason"),
        (
            [delta(content="x", finish="insufficient_system_resource")],
            ModelUnavailable,
            "aborted the reply",
        ),
        ([delta(content="x"), delta(finish="error")], ModelUnavailable, "aborted the reply"),
        ([{"choices": 7}], MalformedReply, "malformed"),
        ([delta(tool_calls=[7])], MalformedReply, "malformed"),
        ([delta(tool_calls=[{"function": "look"}])], MalformedReply, "malformed"),
        ([{"choices": [{"index": [], "delta": {}}]}], MalformedReply, "malformed"),
        (["null"], MalformedReply, "malformed"),
    ],
)
async def test_stream_without_finish_reason_is_no_reply(
    server: provider.Server,
    model: RemoteModel,
    chunks: list[Any],
    error: type[ModelError],
    message: str,
) -> None:
    server.handlers.append(sending(*chunks))
    with pytest.raises(error, match=message) as caught:
        await model.complete(HELLO, call="1")
    assert not caught.value.unbilled


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "before", "after"),
    [
        (
            {"error": {"message": "no", "type": "BadRequestError", "code": 400}},
            ModelRefused,
            ModelUnavailable,
        ),
        ({"error": {"message": "no", "code": 503}}, ModelUnavailable, ModelUnavailable),
        ({"error": {"message": "no", "code": 429}}, RateLimited, RateLimited),
        ({"error": {"message": "no", "type": "insufficient_quota"}}, ModelRefused, ModelRefused),
        ({"error": "no"}, ModelUnavailable, ModelUnavailable),
        ({"object": "error", "message": "no", "code": 404}, ModelRefused, ModelUnavailable),
        ({"error": {"message": ["no"], "code": 10**30}}, ModelUnavailable, ModelUnavailable),
    ],
)
async def test_error_in_stream_is_recognized_in_any_shape(
    server: provider.Server,
    model: RemoteModel,
    body: dict[str, Any],
    before: type[ModelError],
    after: type[ModelError],
) -> None:
    server.handlers += [
        sending(body),
        provider.status(200, body),
        sending(delta(content="x"), body),
    ]
    for kind in (before, before, after):
        with pytest.raises(kind, match="no") as caught:
            await model.complete(HELLO, call="1")
    assert not caught.value.unbilled


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (422, {"detail": [{"loc": ["body", "max_completion_tokens"]}]}, "max_completion_tokens"),
        (400, {"error": {"message": "x", "param": "max_tokens"}}, "output_cap = .max_completion_tokens"),
        (404, {"detail": "Not Found"}, "Not Found"),
        (400, {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}, "too long"),
        (400, "just words", "just words"),
        (400, "", "options"),
        (400, [1], "1"),
    ],
)
async def test_chat_refusal_message_is_taken_from_any_error_shape(
    server: provider.Server, model: RemoteModel, status: int, body: object, message: str
) -> None:
    server.handlers.append(provider.status(status, body))
    with pytest.raises(ModelRefused, match=message):
        await model.complete(HELLO, call="1")


@pytest.mark.anyio
async def test_content_parts_are_read_as_texts(server: provider.Server, model: RemoteModel) -> None:
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    server.handlers += [
        sending(delta(content=parts), delta(content="c", finish="stop"), "[DONE]"),
        provider.status(200, {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}),
    ]
    assert (await model.complete(HELLO, call="1")).message.text == "abc"
    assert (await model.complete(HELLO, call="2")).message.content == (TextBlock("a"), TextBlock("b"))
