"""What a provider has counted for the beginnings of conversations: only what is new is bounded by bytes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.llm.messages import Usage

_K = TypeVar("_K")
_V = TypeVar("_V")

BELIEVABLE = 2
"""A provider that reports more than this many times the most that a call can cost is not believed."""
_CONVERSATIONS = 20_000
"""How many are remembered; a forgotten one is bounded by its bytes."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """A conversation up to some message: ``key`` names it, ``size`` bounds its tokens by bytes."""

    key: bytes
    size: int


class Reported:
    """The tokens that one model's provider has counted for conversations, by the keys of their prefixes."""

    def __init__(self) -> None:
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def tokens(self, prefixes: Iterable[Prefix]) -> int:
        """Return what a conversation cannot exceed, given all its prefixes, shortest first."""
        bound = base = last = 0
        for prefix in prefixes:
            counted = self._counts.get(prefix.key)
            if counted is not None:
                bound, base = counted, prefix.size
            last = prefix.size
        return bound + last - base

    def learn(self, key: bytes, tokens: int) -> None:
        """Remember the provider's count for the conversation ``key``."""
        remember(self._counts, key, tokens, _CONVERSATIONS)


def believable(usage: Usage, prompt: int, output: int) -> bool:
    """Say whether a provider may have counted so where ``prompt`` and ``output`` tokens were the most."""
    if not all(map(_is_count, (usage.prompt, usage.output))):
        return False
    return 0 < usage.prompt <= BELIEVABLE * prompt and usage.output <= BELIEVABLE * output


def remember(memory: OrderedDict[_K, _V], key: _K, value: _V, most: int) -> None:
    """Put ``value`` into a memory of ``most`` entries; the one that was not used for longest goes."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > most:
        memory.popitem(last=False)


def _is_count(value: Any) -> bool:  # noqa: ANN401 - a provider said it
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
