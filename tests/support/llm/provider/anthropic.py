"""Replies in Anthropic's protocol, implemented from its documentation alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.llm.provider.reply import Block, Event, arguments, parse_arguments, pieces


def anthropic_events(
    body: dict[str, Any], blocks: list[Block], stop: str, usage: Any, name: str
) -> Iterator[Event]:
    begun = {**usage, "output_tokens": 1} if isinstance(usage, dict) else usage
    message = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": body["model"]}
    yield {
        "type": "message_start",
        "message": {**message, "content": [], "stop_reason": None, "usage": begun},
    }
    yield {"type": "ping"}
    for index, block in enumerate(blocks):
        start, deltas = _start_and_deltas(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": stop, "stop_sequence": None}
    closing = {"usage": {"output_tokens": usage["output_tokens"]}} if isinstance(usage, dict) else {}
    yield {"type": "message_delta", "delta": delta, **closing}
    yield {"type": "message_stop"}


def _start_and_deltas(block: Block) -> tuple[Block, list[Block]]:
    match block["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
            return {**block, "text": ""}, deltas
        case "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            return start, [*deltas, {"type": "signature_delta", "signature": block["signature"]}]
        case "tool_use":
            start = {name: block[name] for name in ("type", "id", "name")} | {"input": {}}
            deltas = [
                {"type": "input_json_delta", "partial_json": piece} for piece in pieces(arguments(block))
            ]
            return start, deltas
        case _:
            return block, []


def message(body: dict[str, Any], blocks: list[Block], stop: str, usage: Any, name: str) -> dict[str, Any]:
    """Return a reply that is not streamed."""
    content = [
        {**{key: block[key] for key in block if key != "partial"}, "input": parse_arguments(block)}
        if block["type"] == "tool_use"
        else block
        for block in blocks
    ]
    head = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": body["model"]}
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}
