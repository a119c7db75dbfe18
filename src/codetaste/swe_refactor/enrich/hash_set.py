"""The order in which Java iterates over a set of strings; the published lists were written in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIRST_CAPACITY = 16
_LOAD_FACTOR = 0.75
_WORD = 0xFFFFFFFF


def hash_set_order(texts: Iterable[str]) -> list[str]:
    """Return distinct texts in the order of a ``java.util.HashSet`` to which they were added in turn.

    Its buckets are trees when many of its elements collide, which is not reproduced.
    """
    unique = list(dict.fromkeys(texts))
    capacity = _FIRST_CAPACITY
    while len(unique) > capacity * _LOAD_FACTOR:
        capacity *= 2
    return sorted(unique, key=lambda text: _spread(string_hash(text)) & (capacity - 1))


def string_hash(text: str) -> int:
    """Return ``String.hashCode`` of Java, without a sign: over its UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & _WORD
    return value


def _spread(value: int) -> int:
    return value ^ (value >> 16)
