"""Upper bound of a prompt's tokens, from the provider's counts of earlier prompts with the same parts.

A prompt has at most the tokens counted for an earlier request plus the bytes of the parts that were not in
it, because providers tokenize part by part. This bounds a growing conversation closely, even if the agent
changes a block of its instructions in each request or drops earlier messages.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.gateway.parts import reply_parts
from codetaste.llm.bound import TOKENS_PER_CALL
from codetaste.llm.prefix import is_plausible_usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.gateway.parts import PromptPart
    from codetaste.llm.messages import Reply, Request

_MAX_COUNTS = 16
"""Counts stored per session: its last eight requests, with and without their replies."""
_MAX_FIRST_COUNTS = 4
"""First counts stored per model, of its latest sessions; the instructions of sessions are largely equal."""
PartKey = int
"""Hash of a part's name and the number of equal parts before it."""


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


def raw_reply_messages(reply: Reply) -> list[object]:
    """Return a reply as the messages that its provider's protocol has for it."""
    raw = reply.message.raw
    if raw is None:
        return []
    if raw.protocol == "anthropic":
        return [{"role": "assistant", "content": [*raw.blocks]}]
    return [*raw.blocks]
