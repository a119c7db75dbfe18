"""A tap on a relayed reply knows its usage and content, however it is cut, and raises nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.errors import MalformedReply, ModelUnavailable
from codetaste.llm.messages import StopReason, Usage
from codetaste.llm.wire.usage_tap import TapResult, UsageTap
from support.llm.protocol_cases import corrupted, cut
from support.llm.provider.protocols import error_event_of, sse, whole_of
from support.llm.provider.server import PROTOCOLS, Protocol, events_of

BODY = {"model": "m", "stream_options": {"include_usage": True}}
BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "text", "text": "Let me look."},
    {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "é"}},
    {"type": "tool_use", "id": "b", "name": "look", "input": {}},
]
COUNTS = {
    "input_tokens": 11,
    "cache_creation_input_tokens": 7,
    "cache_read_input_tokens": 5,
    "output_tokens": 42,
}
USAGE = Usage(input=11, cache_read=5, cache_write=7, output=42)

STREAM = "text/event-stream"


def tap_result(protocol: Protocol, pieces: list[bytes], *, streamed: bool = True) -> TapResult:
    tap = UsageTap(protocol, content_type=STREAM if streamed else "application/json", request_id="req_9")
    for piece in pieces:
        tap.feed(piece)
    return tap.result()


def stream_events(protocol: Protocol) -> list[bytes]:
    """Return the events of a provider's reply with thoughts, text and two calls."""
    events = events_of(BODY, BLOCKS, "tool_use", COUNTS, protocol=protocol)
    return [sse(protocol, event) for event in events]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_tap_of_stream_is_independent_of_chunk_boundaries(protocol: Protocol, data: st.DataObject) -> None:
    tapped = tap_result(protocol, cut(data.draw, b"".join(stream_events(protocol))))
    assert (tapped.complete, tapped.usage, tapped.error) == (True, USAGE, None)
    assert tapped.reply is not None
    assert (tapped.reply.stop, tapped.reply.model, tapped.reply.request_id) == (
        StopReason.TOOL_USE,
        "m",
        "req_9",
    )
    assert tapped.reply.message.text == "Let me look."
    assert [call.id for call in tapped.reply.message.tool_calls] == ["a", "b"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tap_reads_unstreamed_reply(protocol: Protocol) -> None:
    whole = json.dumps(whole_of(BODY, BLOCKS, "tool_use", COUNTS, protocol=protocol)).encode()
    tapped = tap_result(protocol, [whole[:50], whole[50:]], streamed=False)
    assert (tapped.complete, tapped.usage) == (True, USAGE)
    assert tapped.reply is not None
    assert tapped.reply.message.text == "Let me look."
    cut_off = tap_result(protocol, [whole[:50]], streamed=False)
    assert (cut_off.complete, cut_off.usage) == (False, None)
    assert isinstance(cut_off.error, MalformedReply)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_tap_interrupted_stream_is_never_complete(protocol: Protocol, data: st.DataObject) -> None:
    events = stream_events(protocol)
    # The last relevant event is the final one, or the reason or the usage before it.
    end = len(b"".join(events[: -1 if protocol == "openai" else -2]))
    whole = b"".join(events)[: data.draw(st.integers(0, end))]
    tapped = tap_result(protocol, cut(data.draw, whole))
    assert not tapped.complete
    if tapped.reply is None:
        assert isinstance(tapped.error, ModelUnavailable)
        assert not tapped.error.unbilled


def test_tap_interrupted_message_has_prompt_usage() -> None:
    tapped = tap_result("anthropic", stream_events("anthropic")[:4])
    assert tapped.usage == Usage(input=11, cache_read=5, cache_write=7, output=1)
    assert not tapped.complete


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tap_stream_error_is_reported_and_ends_reading(protocol: Protocol) -> None:
    events = stream_events(protocol)
    error = sse(protocol, error_event_of(protocol, "overloaded_error", "too much"))
    tapped = tap_result(protocol, [*events[:3], error, *events[3:]])
    assert isinstance(tapped.error, ModelUnavailable)
    assert (tapped.reply, tapped.complete) == (None, False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "report", [lambda _: None, lambda usage: {**usage, "output_tokens": -1, "completion_tokens": -1}]
)
def test_tap_reply_without_usage_is_incomplete(protocol: Protocol, report: Any) -> None:
    events = events_of(BODY, BLOCKS, "tool_use", COUNTS, protocol=protocol, report=report)
    tapped = tap_result(protocol, [sse(protocol, event) for event in events])
    assert tapped.reply is not None
    assert (tapped.reply.usage, tapped.complete) == (None, False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_tap_any_input_raises_nothing(protocol: Protocol, data: st.DataObject) -> None:
    events = data.draw(corrupted(events_of(BODY, BLOCKS, "tool_use", COUNTS, protocol=protocol)))
    stream = b"".join(sse(protocol, event if isinstance(event, dict | str) else {}) for event in events)
    at = data.draw(st.integers(0, len(stream)))
    noise = data.draw(st.binary(max_size=8))
    tapped = tap_result(protocol, cut(data.draw, stream[:at] + noise + stream[at:]))
    assert (tapped.reply is None) != (tapped.error is None)
    whole = data.draw(st.binary(max_size=60) | st.sampled_from([b"[" * 5000, b"null", b'{"output": 1}']))
    tap_result(protocol, [whole], streamed=False)


def test_tap_endless_stream_uses_bounded_memory() -> None:
    tap = UsageTap("anthropic")
    for _ in range(130):
        tap.feed(b" " * 1024 * 1024)
    assert isinstance(tap.result().error, MalformedReply)


def test_tap_empty_response_is_a_missing_reply() -> None:
    for protocol in PROTOCOLS:
        assert isinstance(tap_result(protocol, []).error, ModelUnavailable)
