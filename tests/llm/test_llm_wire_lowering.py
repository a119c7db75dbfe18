"""What is sent on is what a program asked but for its cap, and no prompt has more tokens than its bound."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback_provider import PROTOCOLS, Protocol
from wire_bodies import ANTHROPIC, CHAT, PICTURE, REAL, read
from wire_cases import BODIES, requests

from codetaste.llm.messages import Request, Usage
from codetaste.llm.wire.bound import WireBound
from codetaste.llm.wire.lowering import lowered
from codetaste.llm.wire.prompt import PER_PICTURE

CAPS: dict[Protocol, tuple[str, ...]] = {
    "anthropic": ("max_tokens",),
    "openai": ("max_output_tokens",),
    "openai-chat": ("max_tokens", "max_completion_tokens"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_lowered_request_differs_in_its_cap_alone(protocol: Protocol) -> None:
    body = copy.deepcopy(REAL[protocol])
    wire = read(protocol, body)
    assert lowered(wire, 2000) == {**body, **dict.fromkeys(CAPS[protocol], 2000)}
    named = lowered(wire, 2000, model="the-real-one")
    assert named == {**body, **dict.fromkeys(CAPS[protocol], 2000), "model": "the-real-one"}
    assert wire.body == body == REAL[protocol]


def test_a_budget_of_thoughts_is_lowered_with_the_cap() -> None:
    thinking = {"type": "enabled", "budget_tokens": 31999}
    wire = read("anthropic", {**ANTHROPIC, "thinking": thinking})
    assert lowered(wire, 32000)["thinking"] == thinking
    assert lowered(wire, 8000)["thinking"] == {"type": "enabled", "budget_tokens": 4000}
    assert lowered(wire, 1024)["thinking"] == {"type": "disabled"}


def test_a_streamed_completion_is_always_asked_for_its_usage_and_has_only_the_caps_that_count() -> None:
    body = {**CHAT, "stream_options": {"include_usage": False, "chunk": 1}, "max_tokens": 9000}
    wire = read("openai-chat", body)
    assert not wire.include_usage
    sent = lowered(wire, 500, caps=("max_completion_tokens",))
    assert sent["stream_options"] == {"include_usage": True, "chunk": 1}
    assert (sent["max_completion_tokens"], "max_tokens" in sent) == (500, False)
    del body["stream_options"]
    assert lowered(read("openai-chat", body), 500)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in lowered(read("openai-chat", {**body, "stream": False}), 500)


def strings(value: Any) -> int:
    """Bytes of all texts in JSON data, names included: no model reads more than these and some numbers."""
    if isinstance(value, dict):
        return sum(len(name.encode()) + strings(inner) for name, inner in value.items())
    if isinstance(value, list):
        return sum(map(strings, value))
    return len(value.encode("utf-8", "replace")) if isinstance(value, str) else 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(requests(), st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_no_prompt_is_bounded_below_the_bytes_that_are_sent(
    protocol: Protocol, request_: Request, text: str
) -> None:
    body = {**BODIES[protocol](request_, "m"), "response_format": {"schema": text}}
    said = body["input" if protocol == "openai" else "messages"]
    said.append({"role": "user", "content": text, "extra": [text]})
    wire = read(protocol, body)
    sent = json.dumps(lowered(wire, 1000), ensure_ascii=False, separators=(",", ":"))
    assert WireBound().tokens(wire) >= len(sent.encode("utf-8", "replace")) - 200  # names of settings
    assert WireBound().tokens(wire) >= strings(body)


def test_every_picture_counts_as_the_dearest_one() -> None:
    for protocol, pictures in (("anthropic", 2), ("openai", 1), ("openai-chat", 1)):
        assert WireBound().tokens(read(protocol, REAL[protocol])) > pictures * PER_PICTURE  # type: ignore[index]
    one = {**ANTHROPIC, "messages": [{"role": "user", "content": [PICTURE]}]}
    none = {**ANTHROPIC, "messages": [{"role": "user", "content": [{"type": "text", "text": "x" * 100}]}]}
    more = WireBound().tokens(read("anthropic", one)) - WireBound().tokens(read("anthropic", none))
    assert more > PER_PICTURE - 200


def grown(protocol: Protocol, turns: int) -> dict[str, Any]:
    """A conversation after so many turns of 1,500 bytes each; the marker of the cache moves along."""
    body = {**REAL[protocol]}
    name = "input" if protocol == "openai" else "messages"
    said: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for turn in range(turns):
        said += [
            {"role": "assistant", "content": f"{turn}" * 1000},
            {"role": "user", "content": f"{turn}" * 500},
        ]
    if protocol == "anthropic":
        marked = {"type": "text", "text": said[-1]["content"], "cache_control": {"type": "ephemeral"}}
        said[-1] = {"role": "user", "content": [marked]}
    body[name] = said
    return body


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_was_counted_bounds_the_beginning_of_the_next_turn(protocol: Protocol) -> None:
    bound = WireBound()
    first = read(protocol, grown(protocol, 3))
    assert bound.tokens(first) > 4500
    bound.learn(first, Usage(input=100, cache_read=900, cache_write=23, output=50), cap=1000)
    assert bound.tokens(first) == 1023
    # What a prompt does not have in it may change: who asks, how long the reply may be, where markers stand.
    again = {**grown(protocol, 4), "metadata": {"turn": 2}, **dict.fromkeys(CAPS[protocol], 77)}
    assert 1023 + 1500 < bound.tokens(read(protocol, again)) < 1023 + 1500 + 300
    # Another system prompt is another conversation.
    other = {**grown(protocol, 4), "instructions": "x", "system": "y", "tools": []}
    assert bound.tokens(read(protocol, other)) > 6000


@pytest.mark.parametrize(
    "usage",
    [Usage(input=10**9), Usage(input=0), Usage(input=10, output=10**9)],
)
def test_counts_that_cannot_be_are_not_learnt(usage: Usage) -> None:
    bound, wire = WireBound(), read("anthropic", ANTHROPIC)
    before = bound.tokens(wire)
    bound.learn(wire, usage, cap=1000)
    assert bound.tokens(wire) == before
