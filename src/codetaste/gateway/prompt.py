"""The parts of a request's prompt: tools, blocks of instructions and messages; and the bound of its tokens.

A part is named by its content, so equal parts have the same name in every request, wherever the agent puts
its cache markers. Tokens that a provider has counted before need not be bounded by bytes again, and a
transcript contains each part once.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.llm.metering.prompt_bound import TOKENS_PER_CALL, is_plausible_usage
from codetaste.llm.wire.common.billed_features import PER_PICTURE
from codetaste.llm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.llm.messages import Reply, Request


_CACHE_MARKER = '"cache_control"'

_PICTURE = re.compile(r'"type":"(?:image|input_image|image_url)"')

_PICTURE_HINT = '"type":"i'

_OVERHEAD_TOKENS = 64
"""Tokens that a provider may add around a part: a message, a tool or a block."""

_NAME_DIGITS = 32

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

_MAX_MARKER_CHARS = 100
"""Maximum length of a cache marker; a longer value is not one."""

_NOT_SETTINGS = frozenset({"tools", "metadata", "stream"}).union(
    *({protocol.messages_key, protocol.system_key} for protocol in PROTOCOLS.values())
)

_MAX_COUNTS = 16
"""Counts stored per session: its last eight requests, with and without their replies."""

_MAX_FIRST_COUNTS = 4
"""First counts stored per model, of its latest sessions; the instructions of sessions are largely equal."""

PartKey = int
"""Hash of a part's name and the number of equal parts before it."""


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
        *(_part(PartKind.TOOL, tool) for tool in _listed(body.get("tools"))),
        *(_part(PartKind.SYSTEM, block) for block in _listed(body.get(system or ""))),
        *(_part(PartKind.MESSAGE, each) for each in _listed(body.get(messages))),
    )


def reply_parts(reply: object) -> tuple[PromptPart, ...]:
    """Return the parts of a reply: a list of messages or items, or a text."""
    return tuple(_part(PartKind.MESSAGE, each) for each in _listed(reply))


def raw_reply_messages(reply: Reply) -> list[object]:
    """Return a reply as the messages that its provider's protocol has for it."""
    raw = reply.message.raw
    if raw is None:
        return []
    if raw.protocol == "anthropic":
        return [{"role": "assistant", "content": [*raw.blocks]}]
    return [*raw.blocks]


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
        PROTOCOLS[protocol].system_key: PartKind.SYSTEM,
        PROTOCOLS[protocol].messages_key: PartKind.MESSAGE,
        "tools": PartKind.TOOL,
    }
    pieces = [b"{"]
    for name, value in sent.items():
        kind = kinds.get(name)
        pieces.append(f"{_to_json(name)}:".encode("utf-8", "replace"))
        if kind is None or value is None or value is not received.get(name):
            pieces.append(_to_json(value).encode("utf-8", "replace"))
        else:
            listed = [piece for part in parts if part.kind is kind for piece in (part.data, b",")][:-1]
            pieces.extend([b"[", *listed, b"]"] if isinstance(value, list) else listed)
        pieces.append(b",")
    pieces[-1] = b"}"
    return b"".join(pieces)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _part(kind: PartKind, value: Any) -> PromptPart:  # noqa: ANN401 - JSON data
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
            if name != "cache_control"
            or not isinstance(item, dict)
            or item.get("type") != "ephemeral"
            or len(str(item)) > _MAX_MARKER_CHARS
        }
    return [_without_markers(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class _PromptCount:
    """A provider's token count of a prompt with these parts."""

    keys: frozenset[PartKey]
    tokens: int


class TokenCounts:
    """Token counts of a model, shared by all sessions."""

    def __init__(self) -> None:
        self._first_counts: deque[_PromptCount] = deque(maxlen=_MAX_FIRST_COUNTS)

    def for_session(self) -> SessionTokenCounts:
        """Return the counts of a new session, which start with the shared ones."""
        return SessionTokenCounts(self._first_counts)


class SessionTokenCounts:
    """Token counts of one session and one model."""

    def __init__(self, first_counts: deque[_PromptCount]) -> None:
        self._first_counts, self._has_first = first_counts, False
        self._counts: deque[_PromptCount] = deque(first_counts, maxlen=_MAX_COUNTS)

    def tokens(self, sizes: dict[PartKey, int]) -> int:
        """Return an upper bound of a prompt's tokens, given the maximum size of each part."""
        bounds = [TOKENS_PER_CALL + sum(sizes.values())]
        keys = sizes.keys()
        bounds.extend(
            count.tokens + TOKENS_PER_CALL + sum(map(sizes.__getitem__, keys - count.keys))
            for count in self._counts
        )
        return min(bounds)

    def learn(self, keys: frozenset[PartKey], tokens: int) -> None:
        """Store a provider's count."""
        count = _PromptCount(keys, tokens)
        self._counts.append(count)
        if not self._has_first:
            self._has_first = True
            self._first_counts.append(count)


class PartBound:
    """Bounds the prompt tokens of one request by its parts."""

    def __init__(self, parts: Iterable[PromptPart], counts: SessionTokenCounts) -> None:
        self._sizes, self._seen = dict[PartKey, int](), Counter[str]()
        self._add(parts, self._sizes)
        self._counts, self._bound = counts, counts.tokens(self._sizes)

    def tokens(self, request: Request) -> int:  # noqa: ARG002 - bounded by the parts as received
        """Return an upper bound of the prompt's tokens."""
        return self._bound

    def learn(self, request: Request, reply: Reply) -> None:
        """Store the provider's counts of the prompt alone and with the reply, if they are plausible."""
        usage = reply.usage
        if usage is None or not is_plausible_usage(usage, self.tokens(request), request.max_output_tokens):
            return
        self._counts.learn(frozenset(self._sizes), usage.prompt)
        if reply.message.raw is not None:
            whole = dict(self._sizes)
            self._add(reply_parts(raw_reply_messages(reply)), whole)
            self._counts.learn(frozenset(whole), usage.prompt + usage.output)

    def _add(self, parts: Iterable[PromptPart], sizes: dict[PartKey, int]) -> None:
        for part in parts:
            sizes[hash((part.name, self._seen[part.name]))] = part.size
            self._seen[part.name] += 1
