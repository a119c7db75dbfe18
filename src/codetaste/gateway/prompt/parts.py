"""The parts of a request's prompt: tools, blocks of instructions and messages.

A part is named by its content, so equal parts have the same name in every request, wherever the agent puts
its cache markers, and a transcript contains each part once.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.llm.metering.prompt_bound import max_json_tokens
from codetaste.llm.wire.common.allow_list import PER_PICTURE
from codetaste.llm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.messages import Reply

_CACHE_MARKER = '"cache_control"'

_PICTURE = re.compile(r'"type":"(?:image|input_image|image_url)"')

_PICTURE_HINT = '"type":"i'

OVERHEAD_TOKENS = 64
"""Tokens that a provider may add around a part: a message, a tool or a block. The size of each part has them,
and they are added again for each message that the provider may have merged with others when it counted."""

_INDENT = 4
"""Spaces of each level of the tools in a prompt, in the templates of Llama, Qwen and others."""

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')

_STRUCTURE = re.compile(r"[\[\]{},]")
"""Marks in JSON, without its strings, before or after which indented JSON has a line."""

_NAME_DIGITS = 32

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

_MARKERS = tuple({"type": "ephemeral", **ttl} for ttl in ({}, {"ttl": "5m"}, {"ttl": "1h"}))
"""Values of ``cache_control``; anything else under this name is content."""

_NOT_SETTINGS = frozenset({"tools", "metadata", "stream"}).union(
    *({protocol.messages_key, protocol.system_key} for protocol in PROTOCOLS.values())
)


class PartKind(StrEnum):
    """What a part is of the prompt, as written in transcripts."""

    SETTINGS = "settings"
    TOOL = "tool"
    SYSTEM = "system"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a request's prompt.

    Attributes:
        kind: what it is of the prompt.
        name: hash of its content.
        size: upper bound of its tokens.
        value: its content, without cache markers.
        data: its JSON, as it can be sent to the provider.
    """

    kind: PartKind
    name: str
    size: int
    value: Any
    data: bytes


def request_parts(protocol: str, body: Mapping[str, Any]) -> tuple[PromptPart, ...]:
    """Return all parts of a request in ``protocol``, in order; settings come first."""
    system, messages = PROTOCOLS[protocol].system_key, PROTOCOLS[protocol].messages_key
    settings = {name: value for name, value in body.items() if name not in _NOT_SETTINGS}
    return (
        _part(PartKind.SETTINGS, settings),
        *(_part(PartKind.TOOL, tool) for tool in listed(body.get("tools"))),
        *(_part(PartKind.SYSTEM, block) for block in listed(body.get(system or ""))),
        *(_part(PartKind.MESSAGE, each) for each in listed(body.get(messages))),
    )


def reply_parts(reply: object) -> tuple[PromptPart, ...]:
    """Return the parts of a reply: a list of messages or items, or a text."""
    return tuple(_part(PartKind.MESSAGE, each) for each in listed(reply))


def raw_reply_messages(reply: Reply) -> list[object]:
    """Return a reply as the messages that its provider's protocol has for it."""
    raw = reply.message.raw
    if raw is None:
        return []
    if raw.protocol == "anthropic":
        return [{"role": "assistant", "content": [*raw.blocks]}]
    return [*raw.blocks]


def listed(value: object) -> list[Any]:
    """Return a list as it is, and another value as a list of one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _part(kind: PartKind, value: Any) -> PromptPart:  # noqa: ANN401 - JSON data
    text = to_json(value)
    data = text.encode("utf-8", "replace")
    if _CACHE_MARKER in text:
        # The marker is no content: it has no tokens, and a part with and without it is the same.
        value = _without_markers(value)
        text = to_json(value)
    return PromptPart(kind, hash_of(text), tokens_of(text), value, data)


def hash_of(text: str) -> str:
    """Return the name of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_NAME_DIGITS]


def tokens_of(text: str) -> int:
    """Return an upper bound of the tokens of a part or block with this JSON."""
    pictures = len(_PICTURE.findall(text)) if _PICTURE_HINT in text else 0
    return OVERHEAD_TOKENS + max_json_tokens(text) + PER_PICTURE * pictures


def indentation_of(text: str) -> int:
    """Return how many bytes more this JSON has with the indentation that chat templates give to tools."""
    more = depth = 0
    for mark in _STRUCTURE.findall(_STRING.sub("", text)):
        depth += (mark in "[{") - (mark in "]}")
        more += 1 + _INDENT * depth
    return more


def to_json(value: Any) -> str:  # noqa: ANN401 - JSON data
    """Return a value as JSON without spaces."""
    return _JSON.encode(value)


def _without_markers(block: Any) -> Any:  # noqa: ANN401 - JSON data
    """Return a tool, message or block without the cache markers on it and on the blocks in it."""
    if not isinstance(block, dict):
        return block
    bare = dict(block)
    if bare.get("cache_control") in _MARKERS:
        del bare["cache_control"]
    if isinstance(content := bare.get("content"), list):
        bare["content"] = [_without_markers(each) for each in content]
    return bare
