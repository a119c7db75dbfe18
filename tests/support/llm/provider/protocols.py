"""The three protocols side by side: replies streamed and whole, usage, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import pytest

from support.llm.provider.anthropic import anthropic_events, message
from support.llm.provider.openai import chat_events, completion, responses_events, whole_response
from support.llm.provider.reply import Block, Event

Protocol = Literal["anthropic", "openai", "openai-chat"]
UsageReport = Callable[[dict[str, Any]], Any]
"""Maps the usage in the protocol's form to what is reported instead."""

PROTOCOLS: tuple[Protocol, ...] = ("anthropic", "openai", "openai-chat")
PROTOCOLS_OTHERS_HEAVY = (
    PROTOCOLS[0],
    *(pytest.param(name, marks=pytest.mark.heavy) for name in PROTOCOLS[1:]),
)
"""For tests of seconds: that of the first protocol is no heavy one, those of the others are."""
_EVENTS = {"anthropic": anthropic_events, "openai": responses_events, "openai-chat": chat_events}
_WHOLE = {"anthropic": message, "openai": whole_response, "openai-chat": completion}


def protocol_of(path: str) -> Protocol:
    """Return the protocol of an endpoint."""
    for end, protocol in (("/messages", "anthropic"), ("/responses", "openai")):
        if path.partition("?")[0].endswith(end):
            return protocol  # type: ignore[return-value]
    assert path.endswith("/chat/completions"), path
    return "openai-chat"


def sse(protocol: Protocol, event: Event | str) -> bytes:
    """Format one server-sent event; a text is sent as it is."""
    data = event if isinstance(event, str) else json.dumps(event)
    name = "" if isinstance(event, str) or protocol == "openai-chat" else f"event: {event.get('type')}\n"
    return f"{name}data: {data}\n\n".encode("utf-8", "surrogatepass")


def usage_of(protocol: Protocol, counts: dict[str, Any]) -> dict[str, Any]:
    """Return ``counts`` in the form of a protocol."""
    if protocol == "anthropic":
        return {name: count for name, count in counts.items() if name != "reasoning_tokens"}
    read, written = counts.get("cache_read_input_tokens") or 0, counts.get("cache_creation_input_tokens") or 0
    prompt, output = counts["input_tokens"] + read + written, counts["output_tokens"]
    cached = {"cached_tokens": read, "cache_write_tokens": written}
    thought = {"reasoning_tokens": counts.get("reasoning_tokens", 0)}
    names = ("input", "output") if protocol == "openai" else ("prompt", "completion")
    return {
        f"{names[0]}_tokens": prompt,
        f"{names[0]}_tokens_details": cached,
        f"{names[1]}_tokens": output,
        f"{names[1]}_tokens_details": thought,
        "total_tokens": prompt + output,
    }


def error_of(protocol: Protocol, kind: str, message: str) -> dict[str, Any]:
    """Return the body of a refusal."""
    if protocol == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_error"}
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def error_event_of(protocol: Protocol, kind: str, message: str) -> Event:
    """Return the event that ends a stream with an error."""
    if protocol == "openai":
        return {"type": "error", "code": kind, "message": message, "param": None, "sequence_number": 99}
    return error_of(protocol, kind, message)


def events_of(
    body: dict[str, Any],
    blocks: list[Block],
    stop: str,
    usage: dict[str, Any] | None,
    *,
    protocol: Protocol = "anthropic",
    report: UsageReport | None = None,
    name: str = "1",
) -> list[Event | str]:
    """Return the events of a streamed reply; ``name`` is the provider's name of the request."""
    return list(_EVENTS[protocol](body, blocks, stop, _reported_usage(protocol, usage, report), name))


def whole_of(
    body: dict[str, Any],
    blocks: list[Block],
    stop: str,
    usage: dict[str, Any] | None,
    *,
    protocol: Protocol = "anthropic",
    report: UsageReport | None = None,
    name: str = "1",
) -> dict[str, Any]:
    """Return a reply that is not streamed."""
    return _WHOLE[protocol](body, blocks, stop, _reported_usage(protocol, usage, report), name)


def _reported_usage(protocol: Protocol, usage: dict[str, Any] | None, report: UsageReport | None) -> Any:
    """Return the usage as it is reported; None is not reported."""
    actual = None if usage is None else usage_of(protocol, usage)
    return actual if actual is None or report is None else report(actual)


def system_and_reply_count(protocol: Protocol, body: dict[str, Any]) -> tuple[str, int]:
    """Return the system prompt of a request, and the number of replies in its conversation so far."""
    if protocol == "anthropic":
        system = "".join(block["text"] for block in body.get("system", ()))
        return system, sum(message["role"] == "assistant" for message in body["messages"])
    if protocol == "openai-chat":
        instructions = [message for message in body["messages"] if message["role"] in {"system", "developer"}]
        system = "".join(str(message["content"]) for message in instructions)
        return system, sum(message["role"] == "assistant" for message in body["messages"])
    replies, ours = 0, True
    for item in body["input"]:
        before, ours = ours, item.get("role") == "user" or item.get("type") == "function_call_output"
        replies += before and not ours
    return body.get("instructions") or "", replies
