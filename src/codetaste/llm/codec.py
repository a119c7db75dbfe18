"""Lossless conversion of neutral messages to and from JSON, for journals and cassettes.

JSON cannot represent every Python string, integer or float (lone surrogates, integers of thousands of digits,
infinities). Such a value is written as ``{"$": kind, "v": text}``, so that any JSON library can store it and
the same value comes back.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import (
    Message,
    Raw,
    Reply,
    Request,
    Stop,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.messages import Block

_PLAIN_INT = 2**63
"""Integers below it are written as numbers, which every JSON reader accepts."""


def canonical(value: Any) -> str:  # noqa: ANN401 - JSON data
    """Return the canonical JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:  # noqa: ANN401 - JSON data
    """Return the sha256 of a JSON value, in hex."""
    return sha256(canonical(value).encode()).hexdigest()


def pack(value: Any) -> Any:  # noqa: ANN401 - JSON data in, JSON data out
    """Return ``value`` as JSON data that every reader and writer preserves exactly.

    Raises:
        TypeError: it contains something other than JSON data.
    """
    match value:
        case None | bool():
            return value
        case str():
            return value if _encodable(value) else _tagged("s", value.encode("utf-8", "surrogatepass").hex())
        case int():
            return int(value) if -_PLAIN_INT < value < _PLAIN_INT else _tagged("i", hex(value))
        case float():
            return float(value) if math.isfinite(value) else _tagged("f", repr(value))
        case list() | tuple():
            return [pack(item) for item in value]
        case _ if hasattr(value, "items"):
            return _pack_mapping(value)
        case _:
            raise TypeError(f"{type(value).__name__} is not JSON data")


def unpack(value: Any) -> Any:  # noqa: ANN401 - JSON data
    """Restore a value from ``value_to_json``; mappings come back as dicts, sequences as lists."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {key: unpack(item) for key, item in value.items()}
    return _untag(value["$"], value["v"])


def _untag(kind: str, written: Any) -> Any:  # noqa: ANN401 - JSON data
    match kind:
        case "s":
            return bytes.fromhex(written).decode("utf-8", "surrogatepass")
        case "i":
            return int(written, 16)
        case "f":
            return float(written)
        case "m":
            return {unpack(key): unpack(item) for key, item in written}
        case _:
            raise ValueError(f"unknown kind of value: {kind!r}")


def _tagged(kind: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON data
    return {"$": kind, "v": value}


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pack_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    if any(not isinstance(key, str) for key in value):
        raise TypeError("the keys of a JSON object must be strings")
    if "$" in value or not all(map(_encodable, value)):
        return _tagged("m", [[pack(key), pack(item)] for key, item in value.items()])
    return {key: pack(item) for key, item in value.items()}


def block_to_json(block: Block) -> dict[str, Any]:
    """Return one block of a message as JSON."""
    match block:
        case Text(text):
            return {"type": "text", "text": pack(text)}
        case ToolCall(call_id, name, arguments, fault):
            written = {"type": "call", "id": pack(call_id), "name": pack(name), "arguments": pack(arguments)}
            return written if fault is None else {**written, "fault": pack(fault)}
        case ToolResult(call_id, content, is_error):
            written = {"type": "result", "call": pack(call_id), "content": pack(content)}
            return {**written, "error": True} if is_error else written


def block_from_json(data: Mapping[str, Any]) -> Block:
    """Return the block that ``block_to_json`` wrote.

    Raises:
        KeyError, ValueError: the data is not a block.
    """
    match data["type"]:
        case "text":
            return Text(unpack(data["text"]))
        case "call":
            arguments = unpack(data["arguments"])
            return ToolCall(unpack(data["id"]), unpack(data["name"]), arguments, unpack(data.get("fault")))
        case "result":
            content = unpack(data["content"])
            return ToolResult(unpack(data["call"]), content, is_error=data.get("error", False))
        case other:
            raise ValueError(f"unknown type of block: {other!r}")


def message_to_json(message: Message) -> dict[str, Any]:
    """Return a message as JSON, with the provider's raw blocks."""
    written: dict[str, Any] = {
        "role": message.role,
        "content": [block_to_json(block) for block in message.content],
    }
    return _with_raw(written, message.raw)


def message_from_json(data: Mapping[str, Any]) -> Message:
    """Return the message that ``message_to_json`` wrote."""
    content = tuple(block_from_json(block) for block in data["content"])
    return Message(data["role"], content, _raw_from(data))


def _with_raw(written: dict[str, Any], raw: Raw | None) -> dict[str, Any]:
    return (
        written if raw is None else {**written, "raw": {"protocol": raw.protocol, "blocks": pack(raw.blocks)}}
    )


def _raw_from(data: Mapping[str, Any]) -> Raw | None:
    raw = data.get("raw")
    return None if raw is None else Raw(raw["protocol"], tuple(unpack(raw["blocks"])))


def tool_to_json(tool: ToolSpec) -> dict[str, Any]:
    """Return the specification of a tool as JSON."""
    written = {
        "name": pack(tool.name),
        "description": pack(tool.description),
        "parameters": pack(tool.parameters),
    }
    return _with_raw(written, tool.raw)


def request_to_json(request: Request) -> dict[str, Any]:
    """Return a whole request as JSON."""
    return {
        "system": pack(request.system),
        "messages": [message_to_json(message) for message in request.messages],
        "tools": [tool_to_json(tool) for tool in request.tools],
        "max_output_tokens": request.max_output_tokens,
        "options": pack(request.options),
    }


def usage_to_json(usage: Usage | None) -> dict[str, Any] | None:
    """Return a usage as JSON, None if unknown. Implausible counts are preserved for inspection."""
    if usage is None:
        return None
    return {field.name: pack(getattr(usage, field.name)) for field in fields(usage)}


def usage_from_json(data: Mapping[str, Any] | None) -> Usage | None:
    """Return the usage that ``usage_to_json`` wrote."""
    return None if data is None else Usage(**unpack(data))


def reply_to_json(reply: Reply) -> dict[str, Any]:
    """Return a reply as JSON."""
    return {
        "message": message_to_json(reply.message),
        "stop": reply.stop.value,
        "usage": usage_to_json(reply.usage),
        "model": pack(reply.model),
        "request_id": pack(reply.request_id),
    }


def reply_from_json(data: Mapping[str, Any]) -> Reply:
    """Return the reply that ``reply_to_json`` wrote.

    Raises:
        KeyError, TypeError, ValueError: the data is not a reply.
    """
    return Reply(
        message=message_from_json(data["message"]),
        stop=Stop(data["stop"]),
        usage=usage_from_json(data["usage"]),
        model=unpack(data["model"]),
        request_id=unpack(data["request_id"]),
    )
