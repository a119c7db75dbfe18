"""The bound of a prompt's tokens: what a provider has counted before need not be bounded by bytes again.

A count is used only for requests of the same shape (settings, headers, URL), and for pieces that it surely
contains: those that are counted in every request, such as text and tool results, the reply's own thinking,
and the thinking that led to the last results of tools. Other thinking may be counted in a later request
though it was not in this one, so it is bounded again, by its bytes or by the tokens of its reply.

In Chat Completions a template decides what of a conversation is in the prompt, and one message may replace
another. So there a count is used only for conversations that begin with all messages of the counted one.
Elsewhere, any other conversation gets ``OVERHEAD_TOKENS`` for each message, since a provider may have merged
messages of one role in the counted request, and then not counted what it adds around each of them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.gateway.prompt.parts import (
    OVERHEAD_TOKENS,
    PartKind,
    hash_of,
    raw_reply_messages,
    reply_parts,
    to_json,
)
from codetaste.gateway.prompt.pieces import (
    TurnStep,
    adds_tools,
    counts_current_thinking,
    long_texts,
    split_part,
    turn_step,
)
from codetaste.llm.metering.prompt_bound import is_bounded, remember_recent, removes_turns
from codetaste.llm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.gateway.prompt.parts import PromptPart
    from codetaste.gateway.prompt.pieces import Piece
    from codetaste.llm.messages import Reply, Request

_NOT_COUNTING = frozenset({"model", "metadata", "client_metadata", "stream_options", "store", "user"}).union(
    {"temperature", "top_p", "prompt_cache_key", "parallel_tool_calls"},
    *(protocol.cap_names for protocol in PROTOCOLS.values()),
)
"""Settings that do not change how many tokens a provider counts for a prompt."""

_MAX_WRITTEN = 4_000
"""Pieces and long texts of replies stored per session; an older one is bounded by its bytes."""

_MAX_COUNTS = 16
"""Counts stored per session: its last eight requests, with and without their replies."""

_MAX_FIRST_COUNTS = 4
"""First counts stored per model, of its latest sessions; the instructions of sessions are largely equal."""

_TOOLS_AND_MESSAGES = (PartKind.TOOL, PartKind.MESSAGE)

PieceKey = int
"""Hash of a piece's kind and name, and the number of equal pieces up to it."""


@dataclass(frozen=True, slots=True)
class _PromptCount:
    """A provider's token count of a prompt.

    Attributes:
        shape: hash of what else decides the count: settings, headers and URL.
        counted: the pieces that it surely contains.
        number: of the pieces of its messages that are counted in every request.
        beginning: hash of these, in order.
        tokens: the provider's count.
    """

    shape: str
    counted: frozenset[PieceKey]
    number: int
    beginning: int
    tokens: int

    def begins(self, prompt: _Prompt) -> bool:
        """Whether a prompt begins with all messages of the counted one, apart from their thinking."""
        beginnings = prompt.beginnings
        return self.number < len(beginnings) and beginnings[self.number] == self.beginning


class TokenCounts:
    """Token counts of a model, shared by all sessions."""

    def __init__(self) -> None:
        self._first_counts: deque[_PromptCount] = deque(maxlen=_MAX_FIRST_COUNTS)

    def for_session(self) -> SessionTokenCounts:
        """Return the counts of a new session, which start with the shared ones."""
        return SessionTokenCounts(self._first_counts)


@dataclass(slots=True)
class _Prompt:
    """The pieces of a prompt.

    Attributes:
        parts: kinds and names of its parts.
        sizes: upper bounds of the tokens of its pieces, which may be those of the replies that had them.
        size: upper bound of all its tokens, by the sizes of its pieces alone.
        counted: the pieces that are counted in every request.
        turn: the others of the turn that its last messages belong to.
        answered: how many of ``turn`` results of tools follow.
        beginnings: hashes of the first counted pieces of its messages, by their number.
        written: whether the model writes all such pieces.
        seen: how many pieces of a kind and name it has.
    """

    parts: list[tuple[PartKind, str]] = field(default_factory=list)
    sizes: dict[PieceKey, int] = field(default_factory=dict)
    counted: set[PieceKey] = field(default_factory=set)
    turn: list[PieceKey] = field(default_factory=list)
    answered: int = 0
    beginnings: list[int] = field(default_factory=lambda: [0])
    written: bool = True
    seen: dict[int, int] = field(default_factory=dict)
    size: int = 0

    def copy(self) -> _Prompt:
        """Return a copy to which parts can be added."""
        collections = self.parts.copy(), self.sizes.copy(), self.counted.copy(), self.turn.copy()
        beginnings, seen = self.beginnings.copy(), self.seen.copy()
        return _Prompt(*collections, self.answered, beginnings, self.written, seen, self.size)

    def add(self, part: PromptPart, protocol: str, written_tokens: Mapping[str, int]) -> None:
        """Add a part; ``written_tokens`` are bounds of pieces and texts by name, of replies that had them."""
        if adds_tools(part) and any(kind in _TOOLS_AND_MESSAGES for kind, _ in self.parts):
            # It may replace tools of the same names, which then are counted in later requests only.
            self.written = False
        self.parts.append((part.kind, part.name))
        for piece in split_part(part, protocol):
            key = self.key_of(piece)
            self.size += piece.size
            self.sizes[key] = piece.size_with(written_tokens)
            self.written = self.written and piece.written
            if piece.counted:
                self.add_counted(key, part.kind)
            else:
                self.turn.append(key)
        step = turn_step(part, protocol) if part.kind is PartKind.MESSAGE else TurnStep.OTHER
        if step is TurnStep.RESULT:
            self.answered = len(self.turn)
        elif step is TurnStep.OTHER:
            self.turn, self.answered = [], 0

    def add_counted(self, key: PieceKey, kind: PartKind) -> None:
        """Add a piece that is counted in every request."""
        self.counted.add(key)
        if kind is PartKind.MESSAGE:
            self.beginnings.append(hash((self.beginnings[-1], key)))

    def key_of(self, piece: Piece) -> PieceKey:
        """Return the key of the next piece."""
        key = hash((piece.kind, piece.name))
        number = self.seen[key] = self.seen.get(key, 0) + 1
        return hash((key, number))


class SessionTokenCounts:
    """Token counts of one session and one model."""

    def __init__(self, first_counts: deque[_PromptCount]) -> None:
        self._first_counts, self._has_first = first_counts, False
        self._counts: deque[_PromptCount] = deque(first_counts, maxlen=_MAX_COUNTS)
        self._written: OrderedDict[str, int] = OrderedDict()
        self._last = _Prompt()

    def prompt(self, parts: Sequence[PromptPart], protocol: str) -> _Prompt:
        """Return the prompt with these parts; those of the request before are not looked at again."""
        known = self._last
        if [(part.kind, part.name) for part in parts[: len(known.parts)]] != known.parts:
            known = _Prompt()
        prompt = known.copy()
        for part in parts[len(known.parts) :]:
            prompt.add(part, protocol, self._written)
        self._last = prompt.copy()
        return prompt

    def tokens(self, shape: str, prompt: _Prompt, *, ordered: bool) -> int:
        """Return an upper bound of a prompt's tokens without overhead.

        Args:
            shape: of the request.
            prompt: of the request.
            ordered: whether counts are used only for conversations that begin with the counted one.
        """
        sizes, keys = prompt.sizes, {*prompt.sizes}
        bounds = [sum(sizes.values())]
        if_merged = OVERHEAD_TOKENS * (len(prompt.beginnings) - 1)
        for count in self._counts:
            if count.shape == shape and ((begins := count.begins(prompt)) or not ordered):
                new = sum(map(sizes.__getitem__, keys - count.counted))
                bounds.append(count.tokens + new + (0 if begins else if_merged))
        return min(bounds)

    def learn(self, count: _PromptCount) -> None:
        """Store a provider's count."""
        self._counts.append(count)
        if not self._has_first:
            self._has_first = True
            self._first_counts.append(count)

    def learn_written(self, name: str, tokens: int) -> None:
        """Store that a piece or a text was in a reply of so many output tokens."""
        remember_recent(self._written, name, tokens, _MAX_WRITTEN)


class PartBound:
    """Bounds the prompt tokens of one request by its parts.

    Args:
        parts: of the request.
        protocol: of the request.
        variant: values of headers and parameters of the URL that may change how the provider counts.
        counts: of the session and the model.
        overhead_tokens: tokens that the provider may add to every prompt.
    """

    def __init__(
        self,
        parts: Sequence[PromptPart],
        protocol: str,
        variant: Sequence[str],
        counts: SessionTokenCounts,
        overhead_tokens: int,
    ) -> None:
        self.overhead_tokens, self._protocol, self._counts = overhead_tokens, protocol, counts
        settings = next(part.value for part in parts if part.kind is PartKind.SETTINGS)
        counting = {name: value for name, value in settings.items() if name not in _NOT_COUNTING}
        self._shape = hash_of(to_json([protocol, counting, *variant]))
        self._prompt = counts.prompt(parts, protocol)
        self._learns = self._prompt.written and not removes_turns(settings)
        if ordered := PROTOCOLS[protocol].has_template:
            # Templates put the tools beside a message of the user, if there is one.
            self._learns = self._learns and any(map(_is_of_user, parts))
        self._counts_thinking = counts_current_thinking(settings, protocol)
        self._bound = overhead_tokens + counts.tokens(self._shape, self._prompt, ordered=ordered)

    def ignore_count(self) -> None:
        """Learn nothing from the reply: another prompt was sent than the client's."""
        self._learns = False

    def tokens(self, request: Request) -> int:  # noqa: ARG002 - bounded by the parts as received
        """Return an upper bound of the prompt's tokens, by the provider's earlier counts."""
        return self._bound

    def tokens_by_size(self, request: Request) -> int:  # noqa: ARG002 - bounded by the parts as received
        """Return an upper bound of the prompt's tokens that rests on no earlier count."""
        return self.overhead_tokens + self._prompt.size

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
            for piece in split_part(part, self._protocol):
                if not piece.written:
                    return
                for name in (piece.name, *long_texts(piece.value)):
                    self._counts.learn_written(name, usage.output + OVERHEAD_TOKENS)
                key = self._prompt.key_of(piece)
                if piece.counted:
                    self._prompt.add_counted(key, piece.kind)
                else:
                    self._prompt.counted.add(key)
        if self._learns:
            self._learn(usage.prompt + usage.output)

    def _learn(self, tokens: int) -> None:
        prompt = self._prompt
        thinking = prompt.turn[: prompt.answered] if self._counts_thinking else ()
        counted = frozenset(prompt.counted.union(thinking))
        number = len(prompt.beginnings) - 1
        self._counts.learn(_PromptCount(self._shape, counted, number, prompt.beginnings[-1], tokens))


def _is_of_user(part: PromptPart) -> bool:
    return part.kind is PartKind.MESSAGE and isinstance(part.value, dict) and part.value.get("role") == "user"
