"""The loopback provider's replies are valid for the types of the official clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from support.llm.provider import server as provider
from support.llm.provider.server import PROTOCOLS, Protocol

PATHS = {"anthropic": "/v1/messages", "openai": "/v1/responses", "openai-chat": "/v1/chat/completions"}
BLOCKS = [
    {"type": "thinking", "thinking": "hm … näh", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "ZW5j"},
    {"type": "text", "text": "Let me look. 🙂"},
    {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "é"}},
]
COUNTS = {
    "input_tokens": 11,
    "cache_creation_input_tokens": 7,
    "cache_read_input_tokens": 5,
    "output_tokens": 42,
    "reasoning_tokens": 9,
}


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        yield running


def post(server: provider.Server, protocol: Protocol, *, stream: bool) -> httpx.Response:
    body = {"model": "m", "stream": stream, "stream_options": {"include_usage": True}}
    with httpx.Client(trust_env=False) as client:
        return client.post(server.url + PATHS[protocol], json=body)


def events_in(response: httpx.Response) -> list[Any]:
    payloads = [
        line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")
    ]
    return [json.loads(data) for data in payloads if data != "[DONE]"]


def types_of(protocol: Protocol) -> tuple[Any, Any]:
    """Return the official types of a whole reply and of an event."""
    match protocol:
        case "anthropic":
            from anthropic.types import Message, RawMessageStreamEvent

            return Message, RawMessageStreamEvent
        case "openai":
            from openai.types.responses import Response, ResponseStreamEvent

            return Response, ResponseStreamEvent
        case "openai-chat":
            from openai.types.chat import ChatCompletion, ChatCompletionChunk

            return ChatCompletion, ChatCompletionChunk


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_loopback_replies_match_official_client_types(server: provider.Server, protocol: Protocol) -> None:
    server.default = provider.reply(*BLOCKS, stop="tool_use", usage=COUNTS, chunked=True)
    whole, event = types_of(protocol)
    document = post(server, protocol, stream=False).json()
    TypeAdapter(whole).validate_python(document)
    events = [each for each in events_in(post(server, protocol, stream=True)) if each.get("type") != "ping"]
    for each in events:
        TypeAdapter(event).validate_python(each)
    assert len(events) > 10
    assert [one.usd for one in server.bill] == [one.usd for one in server.bill[:1]] * 2
    # 11 × 3 + 5 × 0.3 + 7 × 3.75 + 42 × 15 millionths of a dollar
    assert str(server.billed_usd / 2) == "0.00069075"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_provider_reported_usage_equals_bill(server: provider.Server, protocol: Protocol) -> None:
    server.default = provider.reply(*BLOCKS, usage=COUNTS)
    usage = post(server, protocol, stream=False).json()["usage"]
    reported = {"anthropic": (11, 42), "openai": (23, 42), "openai-chat": (23, 42)}[protocol]
    names = (
        ("prompt_tokens", "completion_tokens")
        if protocol == "openai-chat"
        else ("input_tokens", "output_tokens")
    )
    assert tuple(usage[name] for name in names) == reported
    (billed,) = server.bill
    assert (billed.prompt, billed.output) == (23, 42)


def test_connection_is_reused_until_idle_timeout(server: provider.Server) -> None:
    server.default = provider.reply(provider.text("x"))
    with httpx.Client(trust_env=False) as client:
        for _ in range(3):
            client.post(server.url + PATHS["anthropic"], json={"model": "m"})
    assert len(set(server.ports)) == 1
    server.idle_s = 0.0
    with httpx.Client(trust_env=False) as client, pytest.raises(httpx.TransportError):
        client.post(server.url + PATHS["anthropic"], json={"model": "m"})
