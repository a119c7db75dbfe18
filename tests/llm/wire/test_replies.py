"""Served replies are read unchanged by our clients and the official ones, streamed or in one piece."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.llm.messages import (
    Message,
    ProviderBlocks,
    Reply,
    Request,
    StopReason,
    TextBlock,
    ToolCall,
    Usage,
)
from codetaste.llm.wire.codecs import SERVERS
from codetaste.llm.wire.common.request import WireRequest, parse_body
from codetaste.llm.wire.usage_tap import TapResult, UsageTap
from support.llm.protocol_cases import BODIES, cut, replies
from support.llm.provider.server import PROTOCOLS, Protocol

PATCH = "*** Begin Patch\n*** Add File: ünï 🙂.txt\n+" + "long " * 200 + "\n*** End Patch\n"
USAGE = Usage(input=11, cache_read=5, cache_write=7, output=42, reasoning=3)
REPLY = Reply(
    Message(
        "assistant", (TextBlock("I look. 🙂" * 60), ToolCall("call_1", "look", {"at": "é", "deep": [1, {}]}))
    ),
    StopReason.TOOL_USE,
    USAGE,
    "m",
    "req_1",
)


def request_of(protocol: Protocol, **more: Any) -> WireRequest:
    body = BODIES[protocol](Request("", (Message("user", (TextBlock("hi"),)),)), "m")
    return SERVERS[protocol].read_request({**body, **more})


STREAM = "text/event-stream"


def tap_result(protocol: Protocol, pieces: list[bytes], *, streamed: bool) -> TapResult:
    tap = UsageTap(protocol, content_type=STREAM if streamed else "application/json", request_id="req_1")
    for piece in pieces:
        tap.feed(piece)
    return tap.result()


def without_raw(reply: Reply | None) -> Reply | None:
    return None if reply is None else replace(reply, message=replace(reply.message, raw=None))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(replies(), st.data())
@settings(max_examples=100, deadline=None)
def test_reply_is_read_as_served_however_it_is_cut(
    protocol: Protocol, reply: Reply, data: st.DataObject
) -> None:
    serving, wire = SERVERS[protocol], request_of(protocol)
    streamed = b"".join(serving.stream_reply(reply, wire, name="1"))
    whole = json.dumps(serving.write_reply(reply, wire, name="1")).encode()
    for body, as_stream in ((streamed, True), (whole, False)):
        tapped = tap_result(protocol, cut(data.draw, body), streamed=as_stream)
        assert without_raw(tapped.reply) == reply
        assert tapped.error is None
        assert (tapped.usage, tapped.complete) == (reply.usage, reply.usage is not None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_long_text_streams_in_many_events_in_all_protocols(
    protocol: Protocol,
) -> None:
    serving = SERVERS[protocol]
    long = replace(REPLY, message=Message("assistant", (TextBlock("word " * 1000),)), stop=StopReason.END)
    events = list(serving.stream_reply(long, request_of(protocol), name="1"))
    assert len(events) > 20
    assert max(map(len, events)) < 12_000
    ping = b'event: ping\ndata: {"type": "ping"}\n\n' if protocol == "anthropic" else b": ping\n\n"
    with_pings = [each for event in events for each in (event, ping)]
    assert without_raw(tap_result(protocol, with_pings, streamed=True).reply) == long


def test_usage_is_reported_in_arithmetic_of_each_protocol() -> None:
    usages = {
        protocol: serving.write_reply(REPLY, request_of(protocol), name="1")["usage"]
        for protocol, serving in SERVERS.items()
    }
    assert usages["anthropic"] == {
        "input_tokens": 11,
        "cache_creation_input_tokens": 7,
        "cache_read_input_tokens": 5,
        "output_tokens": 42,
        "output_tokens_details": {"thinking_tokens": 3},
    }
    assert usages["openai"] == {
        "input_tokens": 23,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 7},
        "output_tokens": 42,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 65,
    }
    assert usages["openai-chat"] == {
        "prompt_tokens": 23,
        "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 7},
        "completion_tokens": 42,
        "completion_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 65,
    }


def test_streamed_completion_includes_usage_only_if_requested() -> None:
    serving = SERVERS["openai-chat"]
    for options, reports in (({"include_usage": True}, 1), ({"include_usage": False}, 0), (None, 0)):
        events = serving.stream_reply(REPLY, request_of("openai-chat", stream_options=options), name="1")
        assert sum(b'"usage"' in event for event in events) == reports


def test_call_of_freeform_tool_is_served_as_text() -> None:
    wire = request_of("openai", tools=[{"type": "custom", "name": "apply_patch"}])
    call = ToolCall("call_9", "apply_patch", {"input": PATCH})
    reply = replace(REPLY, message=Message("assistant", (call,)))
    item = SERVERS["openai"].write_reply(reply, wire, name="7")["output"][0]
    assert item == {
        "id": "ctc_7-0",
        "type": "custom_tool_call",
        "call_id": "call_9",
        "name": "apply_patch",
        "input": PATCH,
        "status": "completed",
    }
    events = [*SERVERS["openai"].stream_reply(reply, wire, name="7")]
    deltas = [
        event["delta"]
        for event in (json.loads(event.partition(b"data: ")[2]) for event in events)
        if event["type"] == "response.custom_tool_call_input.delta"
    ]
    assert len(deltas) > 1
    assert "".join(deltas) == PATCH
    assert without_raw(tap_result("openai", events, streamed=True).reply) == reply
    # For a tool with arguments, it is an ordinary call.
    plain = SERVERS["openai"].write_reply(reply, request_of("openai"), name="7")["output"][0]
    assert (plain["type"], json.loads(plain["arguments"])) == ("function_call", {"input": PATCH})


RAW: dict[Protocol, ProviderBlocks] = {
    "anthropic": ProviderBlocks(
        "anthropic",
        (
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "xx"},
            {"type": "text", "text": "Hi."},
        ),
    ),
    "openai": ProviderBlocks(
        "openai-responses",
        (
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "c2ln",
            },
            {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
            },
        ),
    ),
    "openai-chat": ProviderBlocks(
        "openai-chat", ({"role": "assistant", "content": "Hi.", "reasoning_content": "hm"},)
    ),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_provider_blocks_are_served_unchanged(protocol: Protocol) -> None:
    reply = Reply(
        Message("assistant", (TextBlock("Hi."),), RAW[protocol]), StopReason.END, USAGE, "m", "req_1"
    )
    serving, wire = SERVERS[protocol], request_of(protocol)
    assert tap_result(protocol, [*serving.stream_reply(reply, wire, name="1")], streamed=True).reply == reply
    whole = json.dumps(serving.write_reply(reply, wire, name="1")).encode()
    assert tap_result(protocol, [whole], streamed=False).reply == reply


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lone_surrogate_does_not_break_stream(protocol: Protocol) -> None:
    odd = replace(REPLY, message=Message("assistant", (TextBlock("a\ud83db"),)), stop=StopReason.END)
    events = [*SERVERS[protocol].stream_reply(odd, request_of(protocol), name="1")]
    reply = tap_result(protocol, events, streamed=True).reply
    assert reply is not None
    assert reply.message.text == "a?b"


@contextmanager
def serving_replies(protocol: Protocol, reply: Reply) -> Iterator[str]:
    """Serve ``reply`` to every request with the standard library's server."""
    serving = SERVERS[protocol]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            wire = serving.read_request(parse_body(self.rfile.read(int(self.headers["content-length"]))))
            kind = "text/event-stream" if wire.stream else "application/json"
            whole = json.dumps(serving.write_reply(reply, wire, name="1")).encode()
            self.send_response(200)
            self.send_header("content-type", kind)
            self.end_headers()
            for event in serving.stream_reply(reply, wire, name="1") if wire.stream else [whole]:
                self.wfile.write(event)

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


WORDS, CALL = REPLY.message.text, REPLY.message.tool_calls[0]


def test_official_anthropic_client_reads_reply() -> None:
    from anthropic import Anthropic

    with serving_replies("anthropic", REPLY) as url, Anthropic(api_key="k", base_url=url) as client:
        request: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        with client.messages.stream(**request) as stream:
            results = [stream.get_final_message(), client.messages.create(**request)]
    for message in results:
        text, call = message.content
        assert (text.text, call.id, call.input) == (WORDS, "call_1", CALL.arguments)
        assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 42)
        assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (11, 5)


def test_official_openai_client_reads_response() -> None:
    from openai import OpenAI

    with (
        serving_replies("openai", REPLY) as url,
        OpenAI(api_key="k", base_url=url) as client,
        client.responses.stream(model="m", input="hi") as stream,
    ):
        kinds = [event.type for event in stream]
        results = [stream.get_final_response(), client.responses.create(model="m", input="hi")]
    assert kinds.count("response.output_text.delta") > 1
    for response in results:
        message, call = response.output
        assert (response.output_text, call.call_id) == (WORDS, "call_1")
        assert json.loads(call.arguments) == CALL.arguments
        assert (response.usage.input_tokens, response.usage.output_tokens) == (23, 42)
        assert message.status == "completed"


def test_official_openai_client_reads_completion() -> None:
    from openai import OpenAI

    request: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with (
        serving_replies("openai-chat", REPLY) as url,
        OpenAI(api_key="k", base_url=url) as client,
        client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream,
    ):
        stream.until_done()
        results = [stream.get_final_completion(), client.chat.completions.create(**request)]
    for completion in results:
        message = completion.choices[0].message
        assert message.content == WORDS
        assert json.loads(message.tool_calls[0].function.arguments) == CALL.arguments
        assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (23, 42)
        assert completion.choices[0].finish_reason == "tool_calls"
