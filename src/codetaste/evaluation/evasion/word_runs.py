"""Texts as sequences of words, and the search for many runs of words at once.

Line breaks, indentation, quotes and comment marks do not matter to it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.rules.scan.model import Match

CONTEXT_WORDS = 12
"""So many words in a row are no coincidence: three or four lines of code."""
_KEY_BYTES = 2 * CONTEXT_WORDS - 1
"""The length of the shortest run of so many words."""
_WORD = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
_ESCAPES = tuple(b"\\%c" % letter for letter in b"abefnrtv0")
_SPACE = ord(" ")
_NO_WORD_TO_SPACE = bytes(byte if _WORD.match(bytes([byte])) else _SPACE for byte in range(256))


class RunSearch:
    """Finds ``runs`` in texts, with work and memory in proportion to the text.

    A run of fewer than ``CONTEXT_WORDS`` words is found only where it is the whole text.

    Attributes:
        min_bytes: a shorter text has none of the runs.
    """

    def __init__(self, runs: Iterable[bytes]) -> None:
        """Prepare the search; a run has one space between two words."""
        self._short: set[bytes] = set()
        self._long: defaultdict[bytes, list[bytes]] = defaultdict(list)
        different = frozenset(runs)
        self.min_bytes = min(map(len, different), default=_KEY_BYTES)
        for run in different:
            if run.count(b" ") + 1 < CONTEXT_WORDS:
                self._short.add(run)
            else:
                self._long[run[:_KEY_BYTES]].append(run)

    def found_in(self, text: bytes) -> set[bytes]:
        """Return the runs that ``text`` has."""
        if len(text) < self.min_bytes:
            return set()
        words = _normalize(text)
        if words.count(b" ") + 1 < CONTEXT_WORDS:
            return self._short & {words}
        found: set[bytes] = set()
        words += b" "
        at, end = 0, len(words)
        while at < end:
            for run in self._long.get(words[at : at + _KEY_BYTES], ()):
                if words.startswith(run, at) and words[at + len(run)] == _SPACE:
                    found.add(run)
            at = words.index(b" ", at) + 1
        return found


class OldFile:
    """A file of R as lines and words, for the matches in it."""

    def __init__(self, content: bytes) -> None:
        self._lines = content.split(b"\n")

    @cached_property
    def _words(self) -> tuple[list[bytes], list[int]]:
        """All words, and for each line the number of words before it, with the total at the end."""
        words: list[bytes] = []
        before = [0]
        for line in self._lines:
            words += _WORD.findall(unescape(line))
            before.append(len(words))
        return words, before

    def text(self, match: Match) -> bytes:
        """Return the text of ``match`` without white space."""
        lines = self._lines[match.start_line - 1 : match.end_line]
        if lines and match.end_column > 1:
            lines[-1] = lines[-1][: match.end_column - 1]
        if lines and match.start_column > 1:
            lines[0] = lines[0][match.start_column - 1 :]
        return squeeze(b"\n".join(lines))

    def runs(self, match: Match) -> tuple[bytes, ...]:
        """Return the runs each of which has the lines of ``match`` with enough of what is around them."""
        words, before = self._words
        last_line = len(before) - 1
        start, end = before[min(match.start_line - 1, last_line)], before[min(match.end_line, last_line)]
        if start >= end:
            return ()
        if end - start >= CONTEXT_WORDS:
            return (b" ".join(words[start:end]),)
        first, last = max(end - CONTEXT_WORDS, 0), min(start, max(len(words) - CONTEXT_WORDS, 0))
        return tuple(b" ".join(words[at : at + CONTEXT_WORDS]) for at in range(first, last + 1))


def _normalize(text: bytes) -> bytes:
    """Return the words of ``text`` with one space between two of them, without an object for each word."""
    words = unescape(text).translate(_NO_WORD_TO_SPACE)
    while b"  " in words:
        words = words.replace(b"  ", b" ")
    return words.strip()


def unescape(text: bytes) -> bytes:
    """Replace escape sequences such as that of a line break, whose letter is no word."""
    if b"\\" in text:
        for escape in _ESCAPES:
            text = text.replace(escape, b" ")
    return text


def squeeze(text: bytes) -> bytes:
    """Return ``text`` without white space."""
    return text.translate(None, b" \t\n\r\v\f")
