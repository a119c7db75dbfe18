"""Odd but real replies of servers: what is whole is kept, what is counted is counted once and in full."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codetaste.errors import MalformedReply, ModelError, ModelRefused, ModelUnavailable, RateLimited
from codetaste.llm.messages import Message, Request, StopReason, TextBlock, Usage
from codetaste.llm.metering.prompt_bound import PromptBound
from codetaste.llm.wire.usage_tap import TapResult, UsageTap
from support.llm.protocol_cases import BODIES
from support.llm.provider.server import Protocol

DONE = b"data: [DONE]\n\n"
Shape = list[dict[str, Any] | bytes]


def tap_of(protocol: Protocol, shape: Shape | Any, content_type: str = "") -> TapResult:
    """Decode a stream of events, or an object as a whole body."""
    tap = UsageTap(protocol, content_type=content_type)
    parts = shape if isinstance(shape, list) else [json.dumps(shape).encode()]
    for part in parts:
        tap.feed(part if isinstance(part, bytes) else f"data: {json.dumps(part)}\n\n".encode())
    return tap.result()


def chunk(finish: str | None = None, usage: Any = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "choices": [choice], **({} if usage is None else {"usage": usage})}


def chat_call(arguments: str | None) -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    return chunk(tool_calls=[{"index": 0, "id": "a", "function": function}])


def counts(prompt: Any, output: Any, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": output, **more}


def tail(*of: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [], "usage": counts(*of, **more)}


def start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "m", "stop_reason": None, "usage": usage}}


def block(kind: str = "text", *deltas: dict[str, Any], begun: bool = True, **fields: Any) -> Shape:
    begin = {"type": "content_block_start", "index": 0, "content_block": {"type": kind, **fields}}
    pieces = [{"type": "content_block_delta", "index": 0, "delta": each} for each in deltas]
    return [*([begin] if begun else []), *pieces, {"type": "content_block_stop", "index": 0}]


def end(stop: str | None = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage or None}


STOP = {"type": "message_stop"}
HELLO = {"type": "text_delta", "text": "hi"}
TEXT = block("text", HELLO, text="")
USE = block("tool_use", {"type": "input_json_delta", "partial_json": "{}"}, id="t", name="look", input={})
FULL = {"input_tokens": 3000, "cache_creation_input_tokens": 5000, "cache_read_input_tokens": 1000}
HI, CALL = chunk(content="hi"), chat_call("{}")
MESSAGE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}


def item(kind: str = "done", what: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": 0, "item": what or MESSAGE}


def response(kind: str, usage: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {"id": "r", "usage": usage, **more}}


KNOWN, BILL = Usage(1000, output=50), Usage(3000, 1000, 5000, 50)
READ = Usage(100, cache_read=900, output=50)
USAGES: list[tuple[Protocol, Shape | dict[str, Any], Usage | None]] = [
    # The prompt's counts are in the first report only; a server fills the last one with zeros or null.
    ("anthropic", [start(**FULL, output_tokens=1), *TEXT, end(output_tokens=50), STOP], BILL),
    *(
        (
            "anthropic",
            [start(**FULL, output_tokens=1), *TEXT, end(**{**FULL, **zeros}, output_tokens=50), STOP],
            BILL,
        )
        for zeros in (
            {"input_tokens": 0},
            {"input_tokens": 0, "cache_creation_input_tokens": 0},
            {"cache_read_input_tokens": 0, "cache_creation_input_tokens": None},
            dict.fromkeys(FULL, 0),
        )
    ),
    ("anthropic", [start(input_tokens=0, output_tokens=0), *TEXT, end(**FULL, output_tokens=50), STOP], BILL),
    ("anthropic", [start(input_tokens=3000), *TEXT, end(**FULL, output_tokens=50.0), STOP], BILL),
    (
        "anthropic",
        [start(**FULL, output_tokens=1), *TEXT, end(output_tokens=50), end(None, output_tokens=0), STOP],
        BILL,
    ),
    # Neither report includes the other; nothing was counted; the output was counted before its end.
    (
        "anthropic",
        [
            start(input_tokens=3000, output_tokens=1),
            *TEXT,
            end(input_tokens=3, cache_read_input_tokens=2997, output_tokens=50),
            STOP,
        ],
        None,
    ),
    ("anthropic", [start(**FULL, output_tokens=1), *TEXT, end(output_tokens=0), STOP], None),
    ("anthropic", [start(**FULL, output_tokens=1), end(None, output_tokens=2), *TEXT, end(), STOP], None),
    (
        "anthropic",
        [start(**FULL, output_tokens=1), *TEXT, end(output_tokens=float(2**70)), STOP],
        Usage(3000, 1000, 5000, 2**70),
    ),
    # Usage and stop reason in two events, in both orders.
    ("anthropic", [start(input_tokens="1000"), *TEXT, end(None, output_tokens="50"), end(), STOP], KNOWN),
    ("anthropic", [start(input_tokens=1000), *TEXT, end(), end(None, output_tokens=50), STOP], KNOWN),
    ("openai-chat", [HI, tail(1000, 50), chunk("stop"), DONE], KNOWN),
    ("openai-chat", [HI, tail(1000, 50), chunk("stop", content=""), chunk(), DONE], KNOWN),
    ("openai-chat", [HI, chunk("stop", counts(1000, 50)), tail(0, 0), DONE], KNOWN),
    ("openai-chat", [HI, chunk("stop", counts(1000, 50)), {"choices": [], "usage": None}], KNOWN),
    (
        "openai-chat",
        [chunk(usage=counts(1000, 0), content="h"), chunk("stop", counts(0, 50), content="i")],
        KNOWN,
    ),
    (
        "openai-chat",
        [HI, {"choices": [{"delta": {}, "finish_reason": "stop", "usage": counts(1000, 50)}]}, DONE],
        KNOWN,
    ),
    ("openai-chat", [HI, chunk("stop"), tail("1000", 50.0, total_tokens=None)], KNOWN),
    ("openai-chat", [HI, chunk("stop"), tail(1000, 50, input_tokens=0, output_tokens=0)], KNOWN),
    (
        "openai-chat",
        [HI, chunk("stop"), tail(1000, 50, prompt_tokens_details=None, total_tokens="1050")],
        KNOWN,
    ),
    ("openai-chat", [HI, chunk("stop"), tail(100, 50, prompt_tokens_details={"cached_tokens": 900})], None),
    (
        "openai-chat",
        [HI, chunk("stop"), tail(100, 50, total_tokens=1050, prompt_cache_hit_tokens=900.0)],
        READ,
    ),
    # Cached tokens become known with the last report, or a later report denies them.
    (
        "openai-chat",
        [HI, chunk("stop", counts(1000, 9)), tail(1000, 50, prompt_tokens_details={"cached_tokens": 900})],
        READ,
    ),
    (
        "openai-chat",
        [
            HI,
            chunk("stop", counts(1000, 50, prompt_tokens_details={"cached_tokens": 900})),
            tail(1000, 50, prompt_tokens_details={"cached_tokens": 0}),
        ],
        None,
    ),
    ("openai-chat", [HI, chunk("stop"), tail(1000.5, 50)], None),
    ("openai-chat", [HI, chunk("stop"), tail(1000, "NaN")], None),
    ("openai-chat", [HI, chunk("stop"), tail(1000, 0)], None),
    ("openai-chat", [chunk(usage=counts(1000, 1)), HI, chunk("stop"), DONE], None),
    ("openai-chat", [HI, tail(1000, 1), HI, chunk("stop"), DONE], None),
    (
        "openai",
        [
            response("in_progress", {"input_tokens": 1000, "output_tokens": 0}),
            item(),
            response("completed", {"input_tokens": 0, "output_tokens": 50}),
        ],
        KNOWN,
    ),
    (
        "openai",
        [item(), response("completed", {"input_tokens": 1000.0, "output_tokens": "50"}, status=None)],
        KNOWN,
    ),
    (
        "openai",
        [response("created", {"input_tokens": 1000, "output_tokens": 1}), item(), response("completed")],
        None,
    ),
    (
        "anthropic",
        {
            "content": [{"type": "text", "text": "hi"}],
            "usage": {
                "input_tokens": 3000,
                "cache_read_input_tokens": 1000,
                "cache_creation_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 4000, "ephemeral_1h_input_tokens": 1000},
                "output_tokens": 50,
            },
        },
        BILL,
    ),
    ("openai-chat", {"choices": [{"message": {"content": "hi"}, "usage": counts(1000, 50)}]}, KNOWN),
]


@pytest.mark.parametrize(("protocol", "shape", "usage"), USAGES)
def test_usage_in_any_form_is_known_and_never_shrinks(
    protocol: Protocol, shape: Shape, usage: Usage | None
) -> None:
    tapped = tap_of(protocol, shape)
    assert tapped.reply is not None
    assert (tapped.reply.message.text[:1], tapped.reply.usage) == ("h", usage)


ENDS: list[tuple[Protocol, Shape | dict[str, Any], StopReason]] = [
    *(
        ("openai-chat", [*shape, chunk(finish), DONE], stop)
        for finish in (None, "")
        for shape, stop in (
            ([HI], StopReason.END),
            ([HI, CALL], StopReason.TOOL_USE),
            ([chat_call("")], StopReason.TOOL_USE),
        )
    ),
    ("openai-chat", [HI, chunk("stop")], StopReason.END),
    ("openai-chat", {"choices": [{"message": {"content": "hi"}, "finish_reason": None}]}, StopReason.END),
    ("anthropic", [start(input_tokens=9), *TEXT, end(output_tokens=5)], StopReason.END),
    ("anthropic", [start(input_tokens=9), *USE, end("tool_use", output_tokens=5), DONE], StopReason.TOOL_USE),
    ("anthropic", [start(input_tokens=9), *USE, DONE], StopReason.TOOL_USE),
    ("anthropic", [start(input_tokens=9), *USE, end(None, output_tokens=5), STOP], StopReason.TOOL_USE),
    ("anthropic", [start(input_tokens=9), *TEXT, STOP, DONE], StopReason.END),
    ("anthropic", {"content": [{"type": "text", "text": "hi"}], "stop_reason": None}, StopReason.END),
    ("anthropic", [start(input_tokens=9), *block("text", HELLO, begun=False), end()], StopReason.END),
    ("openai", [item("added"), item(), DONE], StopReason.END),
    ("openai", [item(), response("completed", status=None)], StopReason.END),
    # An error or something else that no client knows follows a whole reply.
    *(
        (protocol, [*whole, *after], StopReason.END)
        for protocol, whole in (
            ("openai-chat", [HI, chunk("stop")]),
            ("anthropic", [start(input_tokens=9), *TEXT, end(output_tokens=5)]),
            ("openai", [item(), DONE]),
        )
        for after in ([{"type": "error", "error": {"message": "Late."}}], [b"data: [END]\n\n"])
    ),
]


@pytest.mark.parametrize(("protocol", "shape", "stop"), ENDS)
def test_whole_reply_is_read_however_it_ends(protocol: Protocol, shape: Shape, stop: StopReason) -> None:
    tapped = tap_of(protocol, shape)
    assert tapped.reply is not None, tapped.error
    assert tapped.reply.stop is stop
    assert bool(tapped.reply.message.tool_calls) is (stop is StopReason.TOOL_USE)


CUTS: list[tuple[Protocol, Shape, type[ModelError]]] = [
    ("openai-chat", [HI], ModelUnavailable),
    ("openai-chat", [HI, tail(1000, 50)], ModelUnavailable),
    ("openai-chat", [chat_call('{"at": "he'), DONE], MalformedReply),
    ("openai-chat", [chunk(role="assistant", content=""), tail(9, 1), DONE], MalformedReply),
    ("openai-chat", [chunk(reasoning_content="hm"), DONE], MalformedReply),
    ("anthropic", [start(input_tokens=9), *TEXT], ModelUnavailable),
    ("anthropic", [start(input_tokens=9), *USE[:-1], DONE], ModelUnavailable),
    ("anthropic", [start(input_tokens=9), *USE[:-1], STOP], ModelUnavailable),
    ("anthropic", [start(input_tokens=9), *TEXT[:-1], STOP], ModelUnavailable),
    ("anthropic", [start(input_tokens=9), *TEXT, end(None, output_tokens=5)], ModelUnavailable),
    ("openai", [item("added"), DONE], ModelUnavailable),
    ("openai", [item()], ModelUnavailable),
]


@pytest.mark.parametrize(("protocol", "shape", "error"), CUTS)
def test_cut_reply_stays_lost(protocol: Protocol, shape: Shape, error: type[ModelError]) -> None:
    tapped = tap_of(protocol, shape)
    assert (tapped.reply, type(tapped.error)) == (None, error)


RETRY_INFO = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"}]
LIMITED = {"code": 429, "message": "Quota exceeded."}
FAULTS: list[tuple[Protocol, Shape | dict[str, Any], type[ModelError], str, float | None]] = [
    (
        "openai",
        response("failed", error={"code": "rate_limit_exceeded", "message": "Please retry in 2.5s."}),
        RateLimited,
        "retry in",
        2.5,
    ),
    (
        "openai",
        response("failed", incomplete_details={"reason": "content_filter"}),
        ModelUnavailable,
        "content_filter",
        None,
    ),
    (
        "openai-chat",
        {"choices": [{"error": LIMITED, "finish_reason": "error", "message": {"content": ""}}]},
        RateLimited,
        "Quota",
        None,
    ),
    (
        "openai-chat",
        [{"choices": [{"error": LIMITED, "delta": {}, "finish_reason": "error"}]}],
        RateLimited,
        "Quota",
        None,
    ),
    (
        "openai-chat",
        [HI, {"choices": [{"error": {"code": 400, "message": "No."}}]}],
        ModelUnavailable,
        "broke off",
        None,
    ),
    ("openai-chat", [chunk("network_error"), DONE], ModelUnavailable, "network_error", None),
    (
        "openai-chat",
        [{"code": "429", "message": "Slow down. Try again in 20 seconds."}],
        RateLimited,
        "Slow",
        20.0,
    ),
    ("openai-chat", {"error": {**LIMITED, "details": RETRY_INFO}}, RateLimited, "Quota", 2.0),
    (
        "anthropic",
        {"error": {"message": "litellm.RateLimitError", "type": "None", "code": "429"}},
        RateLimited,
        "litellm",
        None,
    ),
    (
        "anthropic",
        [{"error": {"message": "no such model", "code": 404}}],
        ModelRefused,
        "no such model",
        None,
    ),
    (
        "anthropic",
        {"type": "error", "error": {"type": "overloaded_error", "message": "Retry after 3s"}},
        ModelUnavailable,
        "overloaded",
        3.0,
    ),
]


@pytest.mark.parametrize(("protocol", "shape", "error", "message", "wait_s"), FAULTS)
def test_error_has_reason_of_provider(
    protocol: Protocol, shape: Any, error: type[ModelError], message: str, wait_s: float | None
) -> None:
    found = tap_of(protocol, shape).error
    if protocol == "openai" and isinstance(shape, dict):
        assert type(tap_of(protocol, shape["response"] | {"status": "failed"}).error) is error
        found = tap_of(protocol, [shape]).error
    assert isinstance(found, error)
    assert message in str(found)
    assert found.retry_after_s == wait_s


@pytest.mark.parametrize("protocol", ["openai-chat", "anthropic", "openai"])
@pytest.mark.parametrize(
    "content_type", ["", "text/plain; charset=utf-8", "application/json", "text/event-stream"]
)
def test_first_bytes_tell_what_a_body_is(protocol: Protocol, content_type: str) -> None:
    streams: dict[str, Shape] = {
        "openai-chat": [b": wait\n\n", HI, chunk("stop"), DONE],
        "anthropic": [b"\xef\xbb\xbfevent: message_start\n", start(), *TEXT, end(), STOP],
        "openai": [b"\r\n", item(), response("completed")],
    }
    wholes: dict[str, Any] = {
        "openai-chat": {"choices": [{"message": {"content": "hi"}}]},
        "anthropic": {"content": [{"type": "text", "text": "hi"}]},
        "openai": {"output": [MESSAGE], "status": "completed"},
    }
    for shape in (streams[protocol], wholes[protocol]):
        reply = tap_of(protocol, shape, content_type).reply
        assert reply is not None
        assert reply.message.text == "hi"
    page = tap_of(protocol, [b"\n<!DOCTYPE html><p>Sign in</p>"], content_type)
    assert isinstance(page.error, MalformedReply)
    assert "an HTML page" in str(page.error)


@pytest.mark.parametrize("protocol", ["openai-chat", "anthropic"])
def test_neighbours_of_one_role_are_joined_within_the_bound(protocol: Protocol) -> None:
    questions = [
        Message("user", (TextBlock("a"),)),
        Message("assistant", ()),
        Message("user", (TextBlock("b"),)),
    ]
    answers = [Message("assistant", (TextBlock(word),)) for word in "cd"]
    request = Request(
        "", (*questions, *answers), options={"cache_control": False} if protocol == "anthropic" else {}
    )
    sent = BODIES[protocol](request, "m")["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant"]
    words = [
        content
        if isinstance(content := each["content"], str)
        else "\n\n".join(part["text"] for part in content)
        for each in sent
    ]
    assert words == ["a\n\nb", "c\n\nd"]
    without = PromptBound().tokens(Request("", request.messages[:1], options=request.options))
    assert PromptBound().tokens(request) - without >= sum(map(len, words)) - 1


def test_fields_of_other_blocks_are_not_sent_back() -> None:
    deltas = [
        {"type": "thinking_delta", "thinking": "hm"},
        HELLO,
        {"type": "input_json_delta", "partial_json": ""},
    ]
    odd = {"type": "server_block", "input": 1, "thinking": 2}
    shape = [start(input_tokens=9), *block("text", *deltas, text=None), end(output_tokens=5), STOP]
    reply = tap_of("anthropic", shape).reply
    assert reply is not None
    whole = tap_of("anthropic", {"content": [{"type": "text", "text": None, "input": {}}, odd]}).reply
    assert whole is not None
    sent = BODIES["anthropic"](Request("", (reply.message, Message("user", ()), whole.message)), "m")
    assert sent["messages"][0]["content"] == [{"type": "text", "text": "hi"}, odd]
