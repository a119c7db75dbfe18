"""Neutral messages to and from JSON, exactly: what the journal and the cassettes hold.

JSON cannot say everything that a Python string, integer or float can (lone surrogates, integers of thousands
of digits, infinities). Such a value is written as ``{"$": kind, "v": text}``, so that whoever stores the JSON
needs no care, and the same value comes back.
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
"""Integers below it are written as numbers: every JSON reader takes them."""


def canonical(value: Any) -> str:  # noqa: ANN401 - JSON data
    """Return the one way to write a JSON value that was made here: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:  # noqa: ANN401 - JSON data
    """Return the sha256 of a JSON value, in hex."""
    return sha256(canonical(value).encode()).hexdigest()


def pack(value: Any) -> Any:  # noqa: ANN401 - JSON data in, JSON data out
    """Return ``value`` as JSON that every reader and writer keeps as it is.

    Raises:
        TypeError: it is no JSON data.
    """
    match value:
        case None | bool():
            return value
        case str():
            return value if _encodable(value) else _odd("s", value.encode("utf-8", "surrogatepass").hex())
        case int():
            return int(value) if -_PLAIN_INT < value < _PLAIN_INT else _odd("i", hex(value))
        case float():
            return float(value) if math.isfinite(value) else _odd("f", repr(value))
        case list() | tuple():
            return [pack(item) for item in value]
        case _ if hasattr(value, "items"):
            return _pack_mapping(value)
        case _:
            raise TypeError(f"{type(value).__name__} is no JSON data")


def unpack(value: Any) -> Any:  # noqa: ANN401 - JSON data
    """Return what was packed into ``value``; mappings come back as dicts, sequences as lists."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {key: unpack(item) for key, item in value.items()}
    return _unpack_odd(value["$"], value["v"])


def _unpack_odd(kind: str, written: Any) -> Any:  # noqa: ANN401 - JSON data
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
            raise ValueError(f"no such kind of value: {kind!r}")


def _odd(kind: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON data
    return {"$": kind, "v": value}


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pack_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    if any(not isinstance(key, str) for key in value):
        raise TypeError("a JSON object's keys are strings")
    if "$" in value or not all(map(_encodable, value)):
        return _odd("m", [[pack(key), pack(item)] for key, item in value.items()])
    return {key: pack(item) for key, item in value.items()}


def block_to_json(block: Block) -> dict[str, Any]:
    """Write one block of a message."""
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
    """Read one block.

    Raises:
        KeyError, ValueError: it is none.
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
            raise ValueError(f"no such block: {other!r}")


def message_to_json(message: Message) -> dict[str, Any]:
    """Write a message with the provider's raw blocks."""
    written: dict[str, Any] = {
        "role": message.role,
        "content": [block_to_json(block) for block in message.content],
    }
    return _with_raw(written, message.raw)


def message_from_json(data: Mapping[str, Any]) -> Message:
    """Read a message."""
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
    """Write a tool as a model sees it."""
    written = {
        "name": pack(tool.name),
        "description": pack(tool.description),
        "parameters": pack(tool.parameters),
    }
    return _with_raw(written, tool.raw)


def tool_from_json(data: Mapping[str, Any]) -> ToolSpec:
    """Read a tool."""
    name, description = unpack(data["name"]), unpack(data["description"])
    return ToolSpec(name, description, unpack(data["parameters"]), _raw_from(data))


def request_to_json(request: Request) -> dict[str, Any]:
    """Write a whole request."""
    return {
        "system": pack(request.system),
        "messages": [message_to_json(message) for message in request.messages],
        "tools": [tool_to_json(tool) for tool in request.tools],
        "max_output_tokens": request.max_output_tokens,
        "options": pack(request.options),
    }


def request_from_json(data: Mapping[str, Any]) -> Request:
    """Read a request."""
    return Request(
        system=unpack(data["system"]),
        messages=tuple(message_from_json(message) for message in data["messages"]),
        tools=tuple(tool_from_json(tool) for tool in data["tools"]),
        max_output_tokens=data["max_output_tokens"],
        options=unpack(data["options"]),
    )


def usage_to_json(usage: Usage | None) -> dict[str, Any] | None:
    """Write a usage; None is unknown. Absurd counts are kept too, so that a person can see them."""
    if usage is None:
        return None
    return {field.name: pack(getattr(usage, field.name)) for field in fields(usage)}


def usage_from_json(data: Mapping[str, Any] | None) -> Usage | None:
    """Read a usage."""
    return None if data is None else Usage(**unpack(data))


def reply_to_json(reply: Reply) -> dict[str, Any]:
    """Write a reply."""
    return {
        "message": message_to_json(reply.message),
        "stop": reply.stop.value,
        "usage": usage_to_json(reply.usage),
        "model": pack(reply.model),
        "request_id": pack(reply.request_id),
    }


def reply_from_json(data: Mapping[str, Any]) -> Reply:
    """Read a reply.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    return Reply(
        message=message_from_json(data["message"]),
        stop=Stop(data["stop"]),
        usage=usage_from_json(data["usage"]),
        model=unpack(data["model"]),
        request_id=unpack(data["request_id"]),
    )
