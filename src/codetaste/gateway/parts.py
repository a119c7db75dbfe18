"""The parts of a request's prompt: each tool, block of instructions and message, named by its content.

Equal parts have the same name in every request, wherever the agent puts its cache markers. So tokens that a
provider has counted before need not be bounded by bytes again, and a transcript contains each part once.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.llm.wire.prompt import PER_PICTURE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_CACHE_MARKER = '"cache_control"'
_PICTURE = re.compile(r'"type":"(?:image|input_image|image_url)"')
_PICTURE_HINT = '"type":"i'
_OVERHEAD_TOKENS = 64
"""Tokens that a provider may add around a part: a message, a tool or a block."""
_NAME_DIGITS = 32
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_MAX_MARKER_CHARS = 100
"""Maximum length of a cache marker; a longer value is not one."""
CONVERSATION_KEYS = {"anthropic": "messages", "openai": "input", "openai-chat": "messages"}
"""The key of the conversation, by protocol."""
INSTRUCTION_KEYS = {"anthropic": "system", "openai": "instructions"}
_NOT_SETTINGS = frozenset(
    {*CONVERSATION_KEYS.values(), *INSTRUCTION_KEYS.values(), "tools", "metadata", "stream"}
)


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a request's prompt.

    Attributes:
        kind: "settings", "tool", "system" or "message".
        name: hash of its content.
        size: upper bound of its tokens.
        value: its content, without cache markers.
        data: its JSON, as it can be sent to the provider.
    """

    kind: str
    name: str
    size: int
    value: Any
    data: bytes


def request_parts(protocol: str, body: Mapping[str, Any]) -> tuple[PromptPart, ...]:
    """Return all parts of a request in ``protocol``, in order; settings come first."""
    return tuple(_parts(protocol, body))


def reply_parts(reply: object) -> tuple[PromptPart, ...]:
    """Return the parts of a reply: a list of messages or items, or a text."""
    return tuple(_part("message", each) for each in _listed(reply))


def encode_body(
    protocol: str, received: Mapping[str, Any], parts: Sequence[PromptPart], sent: Mapping[str, Any]
) -> bytes:
    """Encode the body to be sent, from the JSON of the parts where they are unchanged.

    Args:
        protocol: of both bodies.
        received: the body from which ``parts`` were made.
        parts: all of its parts, in order.
        sent: the same body with the changed options.
    """
    kinds = {
        INSTRUCTION_KEYS.get(protocol): "system",
        CONVERSATION_KEYS[protocol]: "message",
        "tools": "tool",
    }
    pieces = [b"{"]
    for name, value in sent.items():
        kind = kinds.get(name)
        pieces.append(f"{_to_json(name)}:".encode("utf-8", "replace"))
        if kind is None or value is None or value is not received.get(name):
            pieces.append(_to_json(value).encode("utf-8", "replace"))
        else:
            listed = [piece for part in parts if part.kind == kind for piece in (part.data, b",")][:-1]
            pieces.extend([b"[", *listed, b"]"] if isinstance(value, list) else listed)
        pieces.append(b",")
    pieces[-1] = b"}"
    return b"".join(pieces)


def _parts(protocol: str, body: Mapping[str, Any]) -> Iterator[PromptPart]:
    yield _part("settings", {name: value for name, value in body.items() if name not in _NOT_SETTINGS})
    for tool in _listed(body.get("tools")):
        yield _part("tool", tool)
    for block in _listed(body.get(INSTRUCTION_KEYS.get(protocol, ""))):
        yield _part("system", block)
    for each in _listed(body.get(CONVERSATION_KEYS[protocol])):
        yield _part("message", each)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _part(kind: str, value: Any) -> PromptPart:  # noqa: ANN401 - JSON data
    text = _to_json(value)
    named = data = text.encode("utf-8", "surrogatepass")
    size = _OVERHEAD_TOKENS + len(data)
    if _PICTURE_HINT in text:
        size += PER_PICTURE * len(_PICTURE.findall(text))
    if _CACHE_MARKER in text:
        value = _without_markers(value)
        named = _to_json(value).encode("utf-8", "surrogatepass")
    name = sha256(named).hexdigest()[:_NAME_DIGITS]
    if not text.isascii():
        data = text.encode("utf-8", "replace")
    return PromptPart(kind, name, size, value, data)


def _to_json(value: Any) -> str:  # noqa: ANN401 - JSON data
    return _JSON.encode(value)


def _without_markers(value: Any) -> Any:  # noqa: ANN401 - JSON data
    if isinstance(value, dict):
        return {
            name: _without_markers(item)
            for name, item in value.items()
            if not (name == "cache_control" and _is_marker(item))
        }
    return [_without_markers(item) for item in value] if isinstance(value, list) else value


def _is_marker(value: object) -> bool:
    return (
        isinstance(value, dict) and value.get("type") == "ephemeral" and len(str(value)) <= _MAX_MARKER_CHARS
    )
