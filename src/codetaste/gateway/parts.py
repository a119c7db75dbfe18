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
    from collections.abc import Iterator, Mapping

_MARKER = '"cache_control"'
_PICTURE = re.compile(r'"type":"(?:image|input_image|image_url)"')
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
    """A part of a request. ``size`` is a number of tokens that it cannot exceed."""

    kind: str
    name: str
    size: int
    value: Any


def parts_of(protocol: str, body: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return all that a request in ``protocol`` puts into a prompt, in order: settings come first."""
    return tuple(_parts(protocol, body))


def said_parts(said: object) -> tuple[Part, ...]:
    """Return what was said as parts: a list of messages or items, or a text."""
    return tuple(_part("message", each) for each in _listed(said))


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
    data = text.encode("utf-8", "surrogatepass")
    size = _AROUND + len(data)
    if '"image' in text or '"input_image' in text:
        size += PER_PICTURE * len(_PICTURE.findall(text))
    if _MARKER in text:
        value = _unmarked(value)
        data = _written(value).encode("utf-8", "surrogatepass")
    name = sha256(data).hexdigest()[:_DIGITS]
    return Part(kind, name, size, value)


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
