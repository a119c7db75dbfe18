"""Lossless conversion of neutral messages to and from JSON, for journals and cassettes.

JSON cannot represent every Python string, integer or float (lone surrogates, integers of thousands of digits,
infinities). Such a value is written as ``{"$": kind, "v": text}``, so that any JSON library can store it and
the same value comes back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import (
    Message,
    ProviderBlocks,
    Reply,
    Request,
    StopReason,
    TextBlock,
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


def value_to_json(value: Any) -> Any:  # noqa: ANN401 - JSON data in, JSON data out
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
            return [value_to_json(item) for item in value]
        case _ if hasattr(value, "items"):
            return _pack_mapping(value)
        case _:
            raise TypeError(f"{type(value).__name__} is not JSON data")


def value_from_json(value: Any) -> Any:  # noqa: ANN401 - JSON data
    """Restore a value from ``value_to_json``; mappings come back as dicts, sequences as lists."""
    if isinstance(value, list):
        return [value_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {key: value_from_json(item) for key, item in value.items()}
    return _untag(value["$"], value["v"])


def _text(value: Any) -> str:  # noqa: ANN401 - JSON data
    text = value_from_json(value)
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} instead of a text")
    return text


def _untag(kind: str, written: Any) -> Any:  # noqa: ANN401 - JSON data
    match kind:
        case "s":
            return bytes.fromhex(written).decode("utf-8", "surrogatepass")
        case "i":
            return int(written, 16)
        case "f":
            return float(written)
        case "m":
            return {value_from_json(key): value_from_json(item) for key, item in written}
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
        return _tagged("m", [[value_to_json(key), value_to_json(item)] for key, item in value.items()])
    return {key: value_to_json(item) for key, item in value.items()}


def block_to_json(block: Block) -> dict[str, Any]:
    """Return one block of a message as JSON."""
    match block:
        case TextBlock(text):
            return {"type": "text", "text": value_to_json(text)}
        case ToolCall(call_id, name, arguments, fault):
            written = {
                "type": "call",
                "id": value_to_json(call_id),
                "name": value_to_json(name),
                "arguments": value_to_json(arguments),
            }
            return written if fault is None else {**written, "fault": value_to_json(fault)}
        case ToolResult(call_id, content, is_error):
            written = {"type": "result", "call": value_to_json(call_id), "content": value_to_json(content)}
            return {**written, "error": True} if is_error else written


def block_from_json(data: Mapping[str, Any]) -> Block:
    """Return the block that ``block_to_json`` wrote.

    Raises:
        KeyError, TypeError, ValueError: the data is not a block.
    """
    match data["type"]:
        case "text":
            return TextBlock(_text(data["text"]))
        case "call":
            call_id, name = _text(data["id"]), _text(data["name"])
            arguments, fault = value_from_json(data["arguments"]), value_from_json(data.get("fault"))
            return ToolCall(call_id, name, arguments, fault)
        case "result":
            return ToolResult(_text(data["call"]), _text(data["content"]), is_error=data.get("error", False))
        case other:
            raise ValueError(f"unknown type of block: {other!r}")


def message_to_json(message: Message) -> dict[str, Any]:
    """Return a message as JSON, with the provider's raw blocks."""
    content = [block_to_json(block) for block in message.content]
    return _with_raw({"role": message.role, "content": content}, message.raw)


def message_from_json(data: Mapping[str, Any]) -> Message:
    """Return the message that ``message_to_json`` wrote."""
    content, raw = tuple(block_from_json(block) for block in data["content"]), data.get("raw")
    if raw is not None:
        raw = ProviderBlocks(raw["protocol"], tuple(value_from_json(raw["blocks"])))
    return Message(data["role"], content, raw)


def _with_raw(written: dict[str, Any], raw: ProviderBlocks | None) -> dict[str, Any]:
    if raw is None:
        return written
    return {**written, "raw": {"protocol": raw.protocol, "blocks": value_to_json(raw.blocks)}}


def tool_to_json(tool: ToolSpec) -> dict[str, Any]:
    """Return the specification of a tool as JSON."""
    written = {
        "name": value_to_json(tool.name),
        "description": value_to_json(tool.description),
        "parameters": value_to_json(tool.parameters),
    }
    return _with_raw(written, tool.raw)


def request_to_json(request: Request) -> dict[str, Any]:
    """Return a whole request as JSON."""
    return {
        "system": value_to_json(request.system),
        "messages": [message_to_json(message) for message in request.messages],
        "tools": [tool_to_json(tool) for tool in request.tools],
        "max_output_tokens": request.max_output_tokens,
        "options": value_to_json(request.options),
    }


def usage_to_json(usage: Usage | None) -> dict[str, Any] | None:
    """Return a usage as JSON, None if unknown. Implausible counts are preserved for inspection."""
    if usage is None:
        return None
    return {kind: value_to_json(count) for kind, count in usage.counts().items()}


def usage_from_json(data: Mapping[str, Any] | None) -> Usage | None:
    """Return the usage that ``usage_to_json`` wrote."""
    return None if data is None else Usage(**value_from_json(data))


def reply_to_json(reply: Reply) -> dict[str, Any]:
    """Return a reply as JSON."""
    return {
        "message": message_to_json(reply.message),
        "stop": reply.stop.value,
        "usage": usage_to_json(reply.usage),
        "model": value_to_json(reply.model),
        "request_id": value_to_json(reply.request_id),
    }


def reply_from_json(data: Mapping[str, Any]) -> Reply:
    """Return the reply that ``reply_to_json`` wrote.

    Raises:
        KeyError, TypeError, ValueError: the data is not a reply.
    """
    return Reply(
        message=message_from_json(data["message"]),
        stop=StopReason(data["stop"]),
        usage=usage_from_json(data["usage"]),
        model=_text(data["model"]),
        request_id=_text(data["request_id"]),
    )
