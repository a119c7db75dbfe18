"""The parts of a request's prompt: tools, blocks of instructions and messages; and the bound of its tokens.

A part is named by its content, so equal parts have the same name in every request, wherever the agent puts
its cache markers. A transcript contains each part once, and tokens that a provider has counted before need
not be bounded by bytes again. A count is used only for requests of the same shape (settings and betas), and
only for pieces that are counted in every request, such as text and tool results, not for others, such as the
thinking of earlier turns.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict, deque
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from codetaste.llm.metering.prompt_bound import is_bounded, max_tokens, remember_recent, removes_turns
from codetaste.llm.wire.common.allow_list import PER_PICTURE
from codetaste.llm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.llm.messages import Reply, Request


_CACHE_MARKER = '"cache_control"'

_PICTURE = re.compile(r'"type":"(?:image|input_image|image_url)"')

_PICTURE_HINT = '"type":"i'

_OVERHEAD_TOKENS = 64
"""Tokens that a provider may add around a part: a message, a tool or a block."""

_NAME_DIGITS = 32

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

_MARKERS = tuple({"type": "ephemeral", **ttl} for ttl in ({}, {"ttl": "5m"}, {"ttl": "1h"}))
"""Values of ``cache_control``; anything else under this name is content."""

_NOT_SETTINGS = frozenset({"tools", "metadata", "stream"}).union(
    *({protocol.messages_key, protocol.system_key} for protocol in PROTOCOLS.values())
)

_NOT_COUNTING = frozenset({"model", "metadata", "client_metadata", "stream_options", "store", "user"}).union(
    {"temperature", "top_p", "prompt_cache_key", "parallel_tool_calls"},
    *(protocol.cap_names for protocol in PROTOCOLS.values()),
)
"""Settings that do not change how many tokens a provider counts for a prompt."""

_COUNTED_TYPES = frozenset({None, "text", "input_text", "output_text", "refusal", "message"}).union(
    {"tool_use", "tool_result", "function_call", "function_call_output"},
    {"custom_tool_call", "custom_tool_call_output", "local_shell_call", "local_shell_call_output"},
    {"image", "input_image", "image_url"},
)
"""Types of messages, items and blocks that are counted in every request."""

_THINKING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})

_UNCOUNTED_KEYS = frozenset({"reasoning", "reasoning_content", "reasoning_details"})
"""Keys of a message in Chat Completions whose content may be removed in later turns."""

_DEFERRED = b'"defer_loading"'
"""Key of a tool that is counted only once it is loaded."""

_MAX_WRITTEN = 4_000
"""Pieces of replies stored per session; an older one is bounded by its bytes."""

_MAX_PARTS = 4_000
"""Parts of requests whose pieces are stored per session."""

_MAX_COUNTS = 16
"""Counts stored per session: its last eight requests, with and without their replies."""

_MAX_FIRST_COUNTS = 4
"""First counts stored per model, of its latest sessions; the instructions of sessions are largely equal."""

PieceKey = int
"""Hash of a piece's kind and name, and in a request of the number of equal pieces before it."""


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


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _part(kind: PartKind, value: Any) -> PromptPart:  # noqa: ANN401 - JSON data
    text = to_json(value)
    named = data = text.encode("utf-8", "surrogatepass")
    size = _OVERHEAD_TOKENS + max_tokens(text)
    if _PICTURE_HINT in text:
        size += PER_PICTURE * len(_PICTURE.findall(text))
    if _CACHE_MARKER in text:
        value = _without_markers(value)
        named = to_json(value).encode("utf-8", "surrogatepass")
    if not text.isascii():
        data = text.encode("utf-8", "replace")
    return PromptPart(kind, _hash(named), size, value, data)


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()[:_NAME_DIGITS]


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


class _Piece(NamedTuple):
    """A part of a prompt, or a block of it.

    Attributes:
        name: hash of its content.
        key: hash of the name and of the part's kind.
        size: upper bound of its tokens.
        counted: whether the provider counts it in every request that contains it; otherwise it may count it
            in one request and not in another, such as the thinking of earlier turns.
        written: whether the model writes such pieces. A count is not stored if there are others, such as
            results of hosted tools, deferred tools and summaries that replace earlier messages.
    """

    name: str
    key: PieceKey
    size: int
    counted: bool
    written: bool


def _pieces(part: PromptPart, protocol: str) -> Iterator[_Piece]:
    """Yield a part as one piece if all of it is counted in every request; otherwise its blocks."""
    message = part.value
    if part.kind is not PartKind.MESSAGE or not isinstance(message, dict):
        counted = _DEFERRED not in part.data
        yield _Piece(part.name, hash((part.kind, part.name)), part.size, counted, written=counted)
        return
    role = message.get("role")
    # Chat templates remove reasoning from the text of earlier turns.
    text_counted = protocol != "openai-chat" or role != "assistant"
    if _is_counted(message) and (text_counted or not message.get("content")):
        yield _Piece(part.name, hash((part.kind, part.name)), part.size, counted=True, written=True)
        return
    rest = dict(message)
    for block in _listed(rest.pop("content", None)):
        counted = _is_counted(block)
        yield _piece([role, block], counted and text_counted, counted or _is_thinking(block))
    for call in _listed(rest.pop("tool_calls", None)):
        yield _piece(["tool_calls", call], counted=True, written=True)
    counted = _is_counted(rest)
    yield _piece(rest, counted, counted or _is_thinking(rest) or not _UNCOUNTED_KEYS.isdisjoint(rest))


def _piece(value: object, counted: bool, written: bool) -> _Piece:
    text = to_json(value)
    size = _OVERHEAD_TOKENS + max_tokens(text) + PER_PICTURE * len(_PICTURE.findall(text))
    name = _hash(text.encode("utf-8", "surrogatepass"))
    return _Piece(name, hash((PartKind.MESSAGE, name)), size, counted, written)


def _is_thinking(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in _THINKING_TYPES


def _is_counted(block: object) -> bool:
    """Whether a message, item or block, with all blocks in it, is counted in every request."""
    if not isinstance(block, dict):
        return True
    if block.get("type") not in _COUNTED_TYPES or not _UNCOUNTED_KEYS.isdisjoint(block):
        return False
    inner = (block.get(name) for name in ("content", "output"))
    return all(_is_counted(each) for blocks in inner if isinstance(blocks, list) for each in blocks)


@dataclass(frozen=True, slots=True)
class _PromptCount:
    """A provider's token count of a prompt.

    Attributes:
        shape: hash of what else decides the count: settings and betas.
        counted: the pieces that are counted in every request.
        messages: all pieces of the messages. What was not counted of them is not counted either in a longer
            conversation that begins with them.
        beginning: hash of ``messages``, in order.
        tokens: the provider's count.
    """

    shape: str
    counted: frozenset[PieceKey]
    messages: tuple[PieceKey, ...]
    beginning: int
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
        self._written: OrderedDict[str, int] = OrderedDict()
        self._pieces: OrderedDict[tuple[object, ...], tuple[_Piece, ...]] = OrderedDict()

    def pieces(self, part: PromptPart, protocol: str) -> tuple[_Piece, ...]:
        """Return the pieces of a part; a turn of a conversation repeats the messages of the turn before."""
        if part.kind is not PartKind.MESSAGE:
            return tuple(_pieces(part, protocol))
        key = (protocol, part.name, part.size)
        pieces = self._pieces.get(key)
        if pieces is None:
            pieces = tuple(_pieces(part, protocol))
            remember_recent(self._pieces, key, pieces, _MAX_PARTS)
        return pieces

    def written_tokens(self, name: str, size: int) -> int:
        """Return an upper bound of a piece's tokens: of its bytes, or of the reply that contained it."""
        written = self._written.get(name, size)
        return min(size, written)

    def tokens(self, shape: str, sizes: dict[PieceKey, int], beginnings: Sequence[int]) -> int:
        """Return an upper bound of a prompt's tokens without overhead.

        Args:
            shape: of the prompt.
            sizes: upper bounds of its pieces.
            beginnings: hashes of the first pieces of its messages, by their number.
        """
        bounds = [sum(sizes.values())]
        for count in self._counts:
            if count.shape == shape:
                number = len(count.messages)
                continues = number < len(beginnings) and beginnings[number] == count.beginning
                new = sizes.keys() - count.counted
                new = new.difference(count.messages) if continues else new
                bounds.append(count.tokens + sum(map(sizes.__getitem__, new)))
        return min(bounds)

    def learn(self, count: _PromptCount) -> None:
        """Store a provider's count."""
        self._counts.append(count)
        if not self._has_first:
            self._has_first = True
            self._first_counts.append(count)

    def learn_written(self, name: str, tokens: int) -> None:
        """Store that a piece was in a reply of so many output tokens."""
        remember_recent(self._written, name, tokens, _MAX_WRITTEN)


class PartBound:
    """Bounds the prompt tokens of one request by its parts.

    Args:
        parts: of the request.
        protocol: of the request.
        betas: header values that may change how the provider counts.
        counts: of the session and the model.
        overhead_tokens: tokens that the provider may add to every prompt.
    """

    def __init__(
        self,
        parts: Sequence[PromptPart],
        protocol: str,
        betas: Sequence[str],
        counts: SessionTokenCounts,
        overhead_tokens: int,
    ) -> None:
        self.overhead_tokens, self._protocol, self._counts = overhead_tokens, protocol, counts
        self._seen = dict[PieceKey, int]()
        settings = next(part.value for part in parts if part.kind is PartKind.SETTINGS)
        counting = {name: value for name, value in settings.items() if name not in _NOT_COUNTING}
        self._shape = _hash(to_json([counting, *betas]).encode("utf-8", "surrogatepass"))
        self._learns = not removes_turns(settings)
        self._counted, self._messages = set[PieceKey](), list[PieceKey]()
        sizes, beginnings, beginning = dict[PieceKey, int](), [0], 0
        for part in parts:
            is_message = part.kind is PartKind.MESSAGE
            for piece in counts.pieces(part, protocol):
                name, _, size, counted, written = piece
                key = self._key(piece)
                sizes[key] = counts.written_tokens(name, size)
                if not written:
                    self._learns = False
                if counted:
                    self._counted.add(key)
                if is_message:
                    self._messages.append(key)
                    beginning = hash((beginning, key))
                    beginnings.append(beginning)
        self._beginning = beginning
        self._bound = overhead_tokens + counts.tokens(self._shape, sizes, beginnings)

    def tokens(self, request: Request) -> int:  # noqa: ARG002 - bounded by the parts as received
        """Return an upper bound of the prompt's tokens."""
        return self._bound

    def learn(self, request: Request, reply: Reply) -> None:
        """Store the provider's counts of the prompt alone and with the reply, if within the bounds."""
        usage = reply.usage
        if usage is None or not is_bounded(usage, self._bound, request.max_output_tokens):
            return
        if self._learns:
            self._learn(usage.prompt)
        if reply.message.raw is None:
            return
        for part in reply_parts(raw_reply_messages(reply)):
            for piece in _pieces(part, self._protocol):
                if not piece.written:
                    return
                self._counts.learn_written(piece.name, usage.output + _OVERHEAD_TOKENS)
                key = self._key(piece)
                self._counted.add(key)
                self._messages.append(key)
                self._beginning = hash((self._beginning, key))
        if self._learns:
            self._learn(usage.prompt + usage.output)

    def _learn(self, tokens: int) -> None:
        counted, messages = frozenset(self._counted), tuple(self._messages)
        self._counts.learn(_PromptCount(self._shape, counted, messages, self._beginning, tokens))

    def _key(self, piece: _Piece) -> PieceKey:
        number = self._seen.get(piece.key, 0)
        self._seen[piece.key] = number + 1
        return hash((piece.key, number)) if number else piece.key
