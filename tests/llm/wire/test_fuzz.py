"""Any provider output becomes, in each protocol, a reply that can be sent back or a named error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.errors import MalformedReply, ModelError
from codetaste.llm.codec import reply_from_json, reply_to_json
from codetaste.llm.messages import Message, Reply, Request, TextBlock, ToolResult
from codetaste.llm.metering.prompt_bound import wire_size
from codetaste.llm.wire.anthropic import client as anthropic
from codetaste.llm.wire.anthropic import stream as anthropic_stream
from codetaste.llm.wire.common import openai as openai_errors
from codetaste.llm.wire.openai_chat import client as openai_chat
from codetaste.llm.wire.openai_chat import stream as openai_chat_stream
from codetaste.llm.wire.openai_responses import client as openai_responses
from codetaste.llm.wire.openai_responses import stream as openai_responses_stream
from support.llm.protocol_cases import corrupted, odd_values
from support.llm.provider import server as provider
from support.llm.provider.protocols import whole_of
from support.llm.provider.server import PROTOCOLS

STREAMS = {
    "anthropic": anthropic_stream.AnthropicStreamDecoder,
    "openai": openai_responses_stream.ResponsesStreamDecoder,
    "openai-chat": openai_chat_stream.ChatStreamDecoder,
}
WIRES = {"anthropic": anthropic, "openai": openai_responses, "openai-chat": openai_chat}
BODY = {"model": "m", "stream_options": {"include_usage": True}}
BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    provider.text("Let me look."),
    {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "é"}},
    {"type": "tool_use", "id": "b", "name": "look", "input": {}},
]
COUNTS = {
    "input_tokens": 11,
    "cache_creation_input_tokens": 7,
    "cache_read_input_tokens": 5,
    "output_tokens": 42,
}


def check(read: Callable[[], Reply]) -> None:
    """Assert that a reply can be stored, measured and sent back in every protocol, or is a one-line error."""
    try:
        reply = read()
    except ModelError as error:
        fault = str(error)
        assert (len(fault) < 600, "\n" in fault) == (True, False)
        return
    assert reply_from_json(json.loads(json.dumps(reply_to_json(reply)))) == reply
    assert wire_size(reply.message) > 0
    calls = reply.message.tool_calls
    assert len({call.id for call in calls}) == len(calls)
    assert "a" not in {call.id for call in calls}  # the id was taken
    results = Message("user", tuple(ToolResult(call.id, "x") for call in calls) or (TextBlock("go on"),))
    for wire in WIRES.values():
        body = wire.request_body(Request("s", (reply.message, results)), "m")
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_stream_is_a_reply_or_a_named_error(protocol: Any, data: st.DataObject) -> None:
    events = provider.events_of(BODY, BLOCKS, "tool_use", COUNTS, protocol=protocol)
    decoder = STREAMS[protocol](taken={"a"})
    messages = data.draw(corrupted(events))

    def read() -> Reply:
        for event in messages:
            decoder.feed(event if isinstance(event, str) else json.dumps(event))
            if decoder.complete:
                break
        return decoder.reply()

    check(read)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("where", "what"),
    [
        (r'\{(?=")', '{"x": 1e999, '),
        (r'\{(?=")', f'{{"x": {"[" * 600}{"]" * 600}, '),
        ('"((?:output_)?index)": 0', r'"\1": 1e999'),
    ],
)
def test_unstorable_message_is_a_named_error(protocol: Any, where: str, what: str) -> None:
    decoder = STREAMS[protocol]()

    def read() -> None:
        for event in provider.events_of(BODY, BLOCKS, "tool_use", COUNTS, protocol=protocol):
            decoder.feed(event if isinstance(event, str) else re.sub(where, what, json.dumps(event)))

    with pytest.raises(MalformedReply):
        read()


@pytest.mark.parametrize(
    ("protocol", "event"),
    [
        ("anthropic", {"type": "message_start", "message": [[None, None]]}),
        ("anthropic", {"type": "content_block_start", "index": 0, "content_block": [[None, None]]}),
        ("openai", {"type": "response.output_item.done", "output_index": 0, "item": [[None, None]]}),
        ("openai-chat", {"choices": [[[None, None]]]}),
    ],
)
def test_list_of_pairs_is_not_an_object(protocol: Any, event: dict[str, Any]) -> None:
    with pytest.raises(MalformedReply):
        STREAMS[protocol]().feed(json.dumps(event))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_unstreamed_reply_is_a_reply_or_a_named_error(protocol: Any, data: st.DataObject) -> None:
    whole = whole_of(BODY, BLOCKS, "tool_use", COUNTS, protocol=protocol)
    document = (data.draw(corrupted([whole])) or [None])[0]
    check(lambda: WIRES[protocol].whole_reply(document, taken={"a"}))


errors = st.fixed_dictionaries(
    {},
    optional={
        "message": odd_values | st.text(max_size=80),
        "code": odd_values
        | st.sampled_from(["insufficient_quota", "rate_limit_exceeded", "slow_down", 429, 503]),
        "type": odd_values,
        "param": odd_values,
        "details": odd_values,
    },
)


@given(
    st.integers(300, 599),
    odd_values | errors | st.fixed_dictionaries({"error": odd_values | errors}),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_any_refusal_is_a_named_error(status: int, body: Any, started: bool) -> None:
    for error in (
        anthropic.error_from(status, body, {}),
        anthropic.error_in_stream(body, started=started),
        openai_errors.error_from(status, body, {}),
        openai_errors.error_in_stream(body, accepted=True, started=started),
    ):
        assert isinstance(error, ModelError)
        assert "\n" not in str(error)
        assert len(str(error)) < 600
