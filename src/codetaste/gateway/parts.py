"""What a request is made of: each tool, block of instructions and message, with a name that follows from it.

The same part has the same name in every request, wherever a program has put its cache markers this time. So
what a provider has counted before need not be counted by its bytes again, and a transcript holds it once.
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

_MARKER = '"cache_control"'
_PICTURE = re.compile(r'"type":"(?:image|input_image|image_url)"')
_PERHAPS_A_PICTURE = '"type":"i'
_AROUND = 64
"""Tokens allowed for what a provider wraps around a part: a message, a tool or a block."""
_DIGITS = 32
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_MARKED = 100
"""Characters that no marker of a cache exceeds; what is longer is none."""
SAID = {"anthropic": "messages", "openai": "input", "openai-chat": "messages"}
"""Where a protocol has the conversation."""
INSTRUCTIONS = {"anthropic": "system", "openai": "instructions"}
_NOT_SETTINGS = frozenset({*SAID.values(), *INSTRUCTIONS.values(), "tools", "metadata", "stream"})


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a request.

    Attributes:
        kind: "settings", "tool", "system" or "message".
        name: follows from its content.
        size: a number of tokens that it cannot exceed.
        value: its content, without the markers of a cache.
        data: its JSON, as it can be sent on.
    """

    kind: str
    name: str
    size: int
    value: Any
    data: bytes


def parts_of(protocol: str, body: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return all that a request in ``protocol`` puts into a prompt, in order: settings come first."""
    return tuple(_parts(protocol, body))


def said_parts(said: object) -> tuple[Part, ...]:
    """Return what was said as parts: a list of messages or items, or a text."""
    return tuple(_part("message", each) for each in _listed(said))


def written(protocol: str, asked: Mapping[str, Any], parts: Sequence[Part], sent: Mapping[str, Any]) -> bytes:
    """Write the body to be sent, from the texts of the parts where they are in it as they were asked.

    Args:
        protocol: of both bodies.
        asked: the body that ``parts`` are of.
        parts: all of them, in order.
        sent: the same body, but for what decides the money.
    """
    kinds = {INSTRUCTIONS.get(protocol): "system", SAID[protocol]: "message", "tools": "tool"}
    pieces = [b"{"]
    for name, value in sent.items():
        kind = kinds.get(name)
        pieces.append(f"{_written(name)}:".encode("utf-8", "replace"))
        if kind is None or value is None or value is not asked.get(name):
            pieces.append(_written(value).encode("utf-8", "replace"))
        else:
            listed = [piece for part in parts if part.kind == kind for piece in (part.data, b",")][:-1]
            pieces.extend([b"[", *listed, b"]"] if isinstance(value, list) else listed)
        pieces.append(b",")
    pieces[-1] = b"}"
    return b"".join(pieces)


def _parts(protocol: str, body: Mapping[str, Any]) -> Iterator[Part]:
    yield _part("settings", {name: value for name, value in body.items() if name not in _NOT_SETTINGS})
    for tool in _listed(body.get("tools")):
        yield _part("tool", tool)
    for block in _listed(body.get(INSTRUCTIONS.get(protocol, ""))):
        yield _part("system", block)
    for each in _listed(body.get(SAID[protocol])):
        yield _part("message", each)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _part(kind: str, value: Any) -> Part:  # noqa: ANN401 - JSON data
    text = _written(value)
    named = data = text.encode("utf-8", "surrogatepass")
    size = _AROUND + len(data)
    if _PERHAPS_A_PICTURE in text:
        size += PER_PICTURE * len(_PICTURE.findall(text))
    if _MARKER in text:
        value = _unmarked(value)
        named = _written(value).encode("utf-8", "surrogatepass")
    name = sha256(named).hexdigest()[:_DIGITS]
    if not text.isascii():
        data = text.encode("utf-8", "replace")
    return Part(kind, name, size, value, data)


def _written(value: Any) -> str:  # noqa: ANN401 - JSON data
    return _JSON.encode(value)


def _unmarked(value: Any) -> Any:  # noqa: ANN401 - JSON data
    """Return JSON data without the markers of a cache."""
    if isinstance(value, dict):
        return {
            name: _unmarked(item)
            for name, item in value.items()
            if not (name == "cache_control" and _is_marker(item))
        }
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


def _is_marker(value: object) -> bool:
    return isinstance(value, dict) and value.get("type") == "ephemeral" and len(str(value)) <= _MARKED
