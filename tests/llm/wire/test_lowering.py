"""A forwarded request equals the client's, except for what the budget lowers."""

from __future__ import annotations

import copy

import pytest

from codetaste.llm.wire.anthropic import server as anthropic
from codetaste.llm.wire.codecs import SERVERS
from codetaste.llm.wire.openai_chat import server as chat
from codetaste.llm.wire.protocols import PROTOCOLS as WIRE_PROTOCOLS
from support.llm.client_requests import ANTHROPIC, CHAT, REAL, read
from support.llm.provider.server import PROTOCOLS, Protocol

CAPS: dict[Protocol, tuple[str, ...]] = {
    "anthropic": ("max_tokens",),
    "openai": ("max_output_tokens",),
    "openai-chat": ("max_tokens", "max_completion_tokens"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lowered_request_differs_in_cap_alone(protocol: Protocol) -> None:
    body = copy.deepcopy(REAL[protocol])
    wire = read(protocol, body)
    sent = SERVERS[protocol].capped_body(wire, 2000, WIRE_PROTOCOLS[protocol].cap_names)
    assert sent == {**body, **dict.fromkeys(CAPS[protocol], 2000)}
    assert wire.body == body == REAL[protocol]


def test_thinking_budget_is_lowered_with_cap() -> None:
    thinking = {"type": "enabled", "budget_tokens": 31999}
    wire = read("anthropic", {**ANTHROPIC, "thinking": thinking})
    assert anthropic.capped_body(wire, 32000)["thinking"] == thinking
    assert anthropic.capped_body(wire, 8000)["thinking"] == {"type": "enabled", "budget_tokens": 4000}
    assert anthropic.capped_body(wire, 1024)["thinking"] == {"type": "disabled"}


def test_streamed_completion_requests_usage_and_relevant_caps() -> None:
    body = {**CHAT, "stream_options": {"include_usage": False, "chunk": 1}, "max_tokens": 9000}
    wire = read("openai-chat", body)
    assert not wire.include_usage
    sent = chat.capped_body(wire, 500, caps=("max_completion_tokens",))
    assert sent["stream_options"] == {"include_usage": True, "chunk": 1}
    assert (sent["max_completion_tokens"], "max_tokens" in sent) == (500, False)
    del body["stream_options"]
    assert chat.capped_body(read("openai-chat", body), 500)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in chat.capped_body(read("openai-chat", {**body, "stream": False}), 500)


@pytest.mark.parametrize(
    ("address", "caps"),
    [
        ("http://127.0.0.1:8000/v1", ("max_tokens", "max_completion_tokens")),
        ("https://api.openai.com/v1", ("max_completion_tokens",)),
        ("https://me.openai.azure.com/openai/v1", ("max_completion_tokens",)),
        ("https://api.mistral.ai/v1", ("max_tokens",)),
    ],
)
def test_server_that_refuses_one_name_of_the_cap_gets_the_other(address: str, caps: tuple[str, ...]) -> None:
    assert WIRE_PROTOCOLS["openai-chat"].caps_at(address) == caps
