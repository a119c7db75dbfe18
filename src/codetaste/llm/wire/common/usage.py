"""Token counts as providers report them: in several forms and places, and more than once for one reply."""

from __future__ import annotations

from operator import ge
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.llm.messages import Usage


def count(value: object) -> int | None:
    """Return a count, which may be a whole float or a text of digits; None for any other value."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None


def largest(*values: object) -> int | None:
    """Return the largest of the counts given, not regarding null; None if none is, or one is no count."""
    given = [value for value in values if value is not None]
    counts = [number for value in given if (number := count(value)) is not None]
    return max(counts) if counts and len(counts) == len(given) else None


class UsageReports:
    """The usage of one reply, reported in parts: a count never shrinks, and stays if it is not repeated.

    Servers fill counts that they do not know with 0 or null. Two reports of which neither includes the other
    contradict each other: the usage is then unknown.

    Args:
        decode: returns the usage in a report, None if it has none.
    """

    def __init__(self, decode: Callable[[object], Usage | None]) -> None:
        self._decode = decode
        self._counts: dict[str, Any] = {}
        self._contradictory = False

    @property
    def usage(self) -> Usage | None:
        """The usage reported so far."""
        return None if self._contradictory else self._decode(self._counts)

    def add(self, report: object) -> None:
        """Take a report, if it is one."""
        if not isinstance(report, dict):
            return
        newest = _merged(self._counts, report, lambda _, later: later)
        merged = _merged(self._counts, report, max)
        before, after, both = (
            usage and (usage.input, usage.cache_read, usage.cache_write)
            for usage in map(self._decode, (self._counts, newest, merged))
        )
        if before and after and both != after:
            self._contradictory |= not all(map(ge, before, after))
        self._counts = merged


def _merged(earlier: Any, later: Any, choose: Callable[[int, int], int]) -> Any:  # noqa: ANN401 - JSON data
    if isinstance(earlier, dict) and isinstance(later, dict):
        return earlier | {name: _merged(earlier.get(name), each, choose) for name, each in later.items()}
    first, second = count(earlier), count(later)
    if first is None or second is None:
        return earlier if later is None else later
    return choose(first, second)
