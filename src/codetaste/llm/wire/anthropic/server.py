"""Anthropic Messages protocol, server side: decode requests, encode replies and errors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Message, ProviderBlocks, TextBlock, ToolResult, ToolSpec
from codetaste.llm.wire.anthropic.client import (
    PROTOCOL,
    STOP_REASONS,
    message_blocks,
    wire_tool,
    wire_usage,
)
from codetaste.llm.wire.common.error_codes import ErrorCode, ErrorKind
from codetaste.llm.wire.common.output_cap import lowered_thinking
from codetaste.llm.wire.common.request import (
    content_text,
    decoded_request,
    optional_objects,
    options_of,
    require_object,
    require_objects,
    require_text,
)
from codetaste.llm.wire.common.sse import format_event, split_text
from codetaste.llm.wire.common.tool_calls import read_call
from codetaste.llm.wire.protocols import ANTHROPIC

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.llm.messages import Block, Reply
    from codetaste.llm.wire.common.request import WireRequest


_READ = ("model", *ANTHROPIC.cap_names, "stream", "messages", "system", "tools")

_WRITTEN = {"tool_choice": {"type": "auto"}}


def read_request(body: Any) -> WireRequest:  # noqa: ANN401 - JSON data
    """Read the parsed body of a request."""
    body = require_object(body, "the body")
    messages = require_objects(body.get("messages"), "messages")
    tools = optional_objects(body.get("tools"), "tools")
    # The client sets cache markers itself; more of them would exceed the provider's limit.
    options = options_of(body, _READ, _WRITTEN) | {"cache_control": False}
    if built_in := [tool for tool in tools if not _is_own(tool)]:
        options["tools"] = built_in
    system, blocks = _system(body.get("system"))
    if blocks is not None:
        options["system"] = blocks
    return decoded_request(
        ANTHROPIC,
        body,
        system=system,
        messages=tuple(_message(data, f"messages[{place}]") for place, data in enumerate(messages)),
        tools=tuple(_tool(tool) for tool in tools if _is_own(tool)),
        options=options,
    )


def _is_own(tool: Mapping[str, Any]) -> bool:
    """Whether the client runs the tool itself and defines its parameters."""
    return tool.get("type") in (None, "custom")


def _tool(tool: Mapping[str, Any]) -> ToolSpec:
    schema = tool.get("input_schema")
    neutral = ToolSpec(
        require_text(tool.get("name"), "tools.name"),
        str(tool.get("description") or ""),
        schema if isinstance(schema, dict) else {},
    )
    return neutral if wire_tool(neutral) == tool else replace(neutral, raw=ProviderBlocks(PROTOCOL, (tool,)))


def _system(system: object) -> tuple[str, list[dict[str, Any]] | None]:
    """Return the text of the system prompt, and its blocks if they contain more than the text."""
    if system is None or isinstance(system, str):
        return system or "", None
    blocks = require_objects(system, "system")
    text = "\n\n".join(str(block.get("text") or "") for block in blocks)
    return text, None if blocks == [{"type": "text", "text": text}] else blocks


def _message(data: Mapping[str, Any], where: str) -> Message:
    content = data.get("content")
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}]
    else:
        blocks = optional_objects(content, f"{where}.content")
    role = require_text(data.get("role"), f"{where}.role")
    neutral = Message("assistant" if role == "assistant" else "user", tuple(_neutral(blocks, where)))
    if role != neutral.role:
        # Clients also send "system" messages in mid-conversation, which have no neutral form.
        return replace(neutral, raw=ProviderBlocks(PROTOCOL, ({**data, "content": blocks},)))
    exact = message_blocks(neutral) == blocks
    return neutral if exact else replace(neutral, raw=ProviderBlocks(PROTOCOL, tuple(blocks)))


def _neutral(blocks: list[dict[str, Any]], where: str) -> Iterator[Block]:
    for block in blocks:
        match block.get("type"):
            case "text":
                yield TextBlock(str(block.get("text") or ""))
            case "tool_use":
                call_id = require_text(block.get("id"), f"{where}: the id of a tool_use")
                yield read_call(call_id, block.get("name"), block.get("input"))
            case "tool_result":
                call_id = require_text(block.get("tool_use_id"), f"{where}: the id of a tool_result")
                yield ToolResult(
                    call_id, content_text(block.get("content")), is_error=block.get("is_error") is True
                )
            case "image" | "document":
                yield TextBlock(content_text([block]))
            case _:
                pass


def capped_body(wire: WireRequest, cap: int, caps: Sequence[str] = ANTHROPIC.cap_names) -> dict[str, Any]:
    """Return a client's body with its output capped at ``cap`` tokens; a thinking budget is lowered too."""
    thinking = lowered_thinking(wire.body.get("thinking"), cap)
    return {**wire.body, **dict.fromkeys(caps, cap), **({} if thinking is None else {"thinking": thinking})}


def write_reply(reply: Reply, wire: WireRequest, *, name: str) -> dict[str, Any]:
    """Return the body of a reply that is not streamed."""
    stop = {"stop_reason": STOP_REASONS[reply.stop], "stop_sequence": None}
    blocks = message_blocks(reply.message)
    return {**_head(wire, name), "content": blocks, **stop, "usage": wire_usage(reply.usage)}


def reply_messages(whole: dict[str, Any]) -> list[Any]:
    """Return a reply that ``write_reply`` encoded as messages of a later request."""
    return [{"role": "assistant", "content": whole["content"]}]


def stream_reply(reply: Reply, wire: WireRequest, *, name: str) -> Iterator[bytes]:
    """Yield the events of a streamed reply."""
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


ERROR_CODES = {
    ErrorKind.BUDGET: ErrorCode(402, "permission_error"),
    ErrorKind.RATE_LIMIT: ErrorCode(429, "rate_limit_error"),
    ErrorKind.NOT_ALLOWED: ErrorCode(403, "permission_error"),
    ErrorKind.BAD_TOKEN: ErrorCode(403, "authentication_error"),
    ErrorKind.BAD_REQUEST: ErrorCode(400, "invalid_request_error"),
    ErrorKind.TOO_LARGE: ErrorCode(413, "request_too_large"),
    ErrorKind.UNAVAILABLE: ErrorCode(503, "api_error"),
    ErrorKind.GIVEN_UP: ErrorCode(403, "permission_error"),
}


def error_body(error: ErrorCode, message: str) -> dict[str, Any]:
    """Return the body of an error response."""
    return {"type": "error", "error": {"type": error.kind, "message": message}}


def error_events(error: ErrorCode, message: str) -> bytes:
    """Return an error as the last event of a stream."""
    return format_event(error_body(error, message), name="error")
