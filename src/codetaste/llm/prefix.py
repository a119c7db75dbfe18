"""Provider-reported token counts of conversation prefixes; only the rest is bounded by its bytes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.llm.messages import Usage

_K = TypeVar("_K")
_V = TypeVar("_V")

PLAUSIBLE_FACTOR = 2
"""A reported usage is implausible above this many times the upper bound of the call."""
_CONVERSATIONS = 20_000
"""Prefixes kept in memory; an evicted one is bounded by its bytes."""


@dataclass(frozen=True, slots=True)
class PrefixKey:
    """A conversation up to some message: ``key`` identifies it, ``size`` bounds its tokens by its bytes."""

    key: bytes
    size: int


class PrefixCounts:
    """The token counts that the provider of one model has reported, by prefix key."""

    def __init__(self) -> None:
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def tokens(self, prefixes: Iterable[PrefixKey]) -> int:
        """Return an upper bound of a conversation's tokens, given all its prefixes, shortest first."""
        bound = base = last = 0
        for prefix in prefixes:
            counted = self._counts.get(prefix.key)
            if counted is not None:
                bound, base = counted, prefix.size
            last = prefix.size
        return bound + last - base

    def learn(self, key: bytes, tokens: int) -> None:
        """Store the provider's count for the conversation ``key``."""
        remember_recent(self._counts, key, tokens, _CONVERSATIONS)


def is_plausible_usage(usage: Usage, prompt: int, output: int) -> bool:
    """Whether a reported usage is plausible for a call bounded by ``prompt`` and ``output`` tokens."""
    if not all(type(count) is int and count >= 0 for count in (usage.prompt, usage.output)):
        return False
    return 0 < usage.prompt <= PLAUSIBLE_FACTOR * prompt and usage.output <= PLAUSIBLE_FACTOR * output


def remember_recent(memory: OrderedDict[_K, _V], key: _K, value: _V, most: int) -> None:
    """Put ``value`` into an LRU cache of at most ``most`` entries."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > most:
        memory.popitem(last=False)
