"""Anthropic Messages protocol, server side: encode replies, whole or streamed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codetaste.llm.wire.anthropic import STOP_REASONS, message_blocks, wire_usage
from codetaste.llm.wire.sse import format_event, split_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.llm.messages import Reply
    from codetaste.llm.wire.request import WireRequest

REQUEST_ID_HEADER = "request-id"
PING = format_event({"type": "ping"}, name="ping")
"""A keep-alive event, valid between any two events."""


def write_reply(reply: Reply, wire: WireRequest, *, name: str) -> dict[str, Any]:
    """Return the body of a reply that is not streamed.

    Args:
        reply: the model's answer.
        wire: the request.
        name: the id of this reply; letters, digits and dashes.
    """
    stop = {"stop_reason": STOP_REASONS[reply.stop], "stop_sequence": None}
    blocks = message_blocks(reply.message)
    return {**_head(wire, name), "content": blocks, **stop, "usage": wire_usage(reply.usage)}


def stream_reply(reply: Reply, wire: WireRequest, *, name: str) -> Iterator[bytes]:
    """Yield the events of a streamed reply; arguments as ``write_reply``."""
    return (format_event(event, name=event["type"]) for event in _events(reply, wire, name))


def _events(reply: Reply, wire: WireRequest, name: str) -> Iterator[dict[str, Any]]:
    usage = wire_usage(reply.usage)
    begun = {"stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 0}}
    yield {"type": "message_start", "message": {**_head(wire, name), "content": [], **begun}}
    yield {"type": "ping"}
    for index, block in enumerate(message_blocks(reply.message)):
        start, deltas = _split_block(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": STOP_REASONS[reply.stop], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


def _head(wire: WireRequest, name: str) -> dict[str, Any]:
    return {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": wire.model}


def _split_block(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the initial form of a block, and the deltas that complete it."""
    match block:
        case {"type": "text", "text": str(text)}:
            deltas = [{"type": "text_delta", "text": piece} for piece in split_text(text)]
            cited = [{"type": "citations_delta", "citation": each} for each in block.get("citations") or ()]
            return {**block, "text": ""} | ({"citations": []} if cited else {}), deltas + cited
        case {"type": "thinking", "thinking": str(text)}:
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in split_text(text)]
            signature = {"type": "signature_delta", "signature": str(block.get("signature") or "")}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signature]
        case {"type": "tool_use" | "server_tool_use", "input": given}:
            text = json.dumps(given, ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in split_text(text)]
            return {**block, "input": {}}, deltas
    return block, []
