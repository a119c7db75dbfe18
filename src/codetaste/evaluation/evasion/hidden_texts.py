"""Texts that a patch wrote where a rule does not look: whole files, literals, comments, encoded texts.

Texts are compared as sequences of words, so line breaks, indentation, quotes and comment marks do not matter.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from codetaste.evaluation.evasion.encoded_text import ByteBudget, decoded_texts
from codetaste.evaluation.evasion.lexical import Region, quoted_regions
from codetaste.source.tree.overlay import overlay_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from codetaste.rules.scan.model import Match
    from codetaste.source.patch.model import Patch
    from codetaste.source.tree.overlay import OverlayTree

CONTEXT_WORDS = 12
"""So many words in a row are no coincidence: three or four lines of code."""
_MAX_FILE_BYTES = 8 * 1024**2
_MAX_BYTES = 32 * 1024**2
"""Size limit of all texts of a patch together."""
_MAX_ENCODED_BYTES = 16 * 1024**2
_MIN_ENCODED_CHARS = 3
_WORD = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
_SIMPLE_ESCAPE = re.compile(rb"\\[abefnrtv0]")
_EVALUATOR = re.compile(
    rb"\b(?:eval|exec|execfile|compile|execScript|Function|setTimeout|setInterval|runIn\w*Context)"
    rb"\s*\(\s*[rbfu]{0,2}$"
)
_EVALUATOR_BYTES = 40
_JOINT = re.compile(rb"[\s+,.\\]*+")


@dataclass(frozen=True)
class WrittenText:
    """Pieces of text with the paths of their files; a run of words never spans two pieces."""

    pieces: tuple[tuple[str, bytes], ...]

    @cached_property
    def vocabulary(self) -> frozenset[bytes]:
        """All words."""
        return frozenset(word for _, piece in self.pieces for word in split_words(piece))

    @cached_property
    def runs(self) -> dict[int, str]:
        """The hash of every run of ``CONTEXT_WORDS`` words, and of each shorter piece, with its path."""
        found: dict[int, str] = {}
        for path, piece in self.pieces:
            words = split_words(piece)
            for at in range(max(len(words) - CONTEXT_WORDS, 0) + 1 if words else 0):
                found.setdefault(hash(b" ".join(words[at : at + CONTEXT_WORDS])), path)
        return found

    def place_of(self, words: Sequence[bytes]) -> str | None:
        """Return the path of the piece that has ``words`` one after the other, if there is one."""
        path = self.runs.get(hash(b" ".join(words[:CONTEXT_WORDS])))
        if path is None or len(words) <= CONTEXT_WORDS:
            return path
        whole = b" %s " % b" ".join(words)
        return next(
            (at for at, piece in self.pieces if whole in b" %s " % b" ".join(split_words(piece))), None
        )


@dataclass
class HiddenTexts:
    """What a patch wrote into R∘X̂ that some rule may not see.

    Attributes:
        places: whole new files, or the lines added to an old one, by path.
        own_places: whole old files, by path: only for matches of the same file.
        own_quoted: literals and comments that the patch begins or ends around old lines, likewise.
        encoded: decoded and evaluated texts, without white space, with the path.
    """

    places: dict[str, WrittenText] = field(default_factory=dict)
    own_places: dict[str, WrittenText] = field(default_factory=dict)
    own_quoted: dict[str, WrittenText] = field(default_factory=dict)
    encoded: list[tuple[str, bytes]] = field(default_factory=list)
    _quoted: list[tuple[str, bytes]] = field(default_factory=list)
    _decoding: ByteBudget = field(default_factory=lambda: ByteBudget(_MAX_ENCODED_BYTES))

    @cached_property
    def quoted(self) -> WrittenText:
        """Literals and comments on added lines of all files."""
        return WrittenText(tuple(self._quoted))

    def in_places(self, paths: Collection[str]) -> WrittenText:
        """Return what the patch wrote into these files."""
        return WrittenText(
            tuple(piece for path in paths if path in self.places for piece in self.places[path].pieces)
        )

    def at(self, path: str, *, own: bool) -> Iterator[WrittenText]:
        """Yield the texts of one file: for its own matches all of it."""
        yield self.places[path]
        if own and path in self.own_places:
            yield self.own_places[path]

    def add(self, path: str, content: bytes, added: Sequence[tuple[int, int]], *, whole: bool) -> None:
        """Add the file ``path``, of which the patch wrote the parts ``added``, or the whole."""
        parts = [content[start:end] for start, end in added]
        self.places[path] = WrittenText(tuple((path, part) for part in parts))
        if not whole:
            self.own_places[path] = WrittenText(((path, content),))
        own: list[bytes] = []
        encoded: list[bytes] = []
        for part in parts:
            encoded += decoded_texts(part, self._decoding)
        for region in _joined(quoted_regions(content, path), content):
            inside = [
                content[max(start, region.start) : min(end, region.end)]
                for start, end in added
                if start < region.end and region.start < end
            ]
            if not inside:
                continue
            self._quoted += ((path, text) for text in inside)
            own.append(content[region.start : region.end])
            start = max(region.start - _EVALUATOR_BYTES, 0)
            if not region.is_comment and _EVALUATOR.search(content[start : region.start]):
                encoded.append(own[-1][1:-1])
        self.own_quoted[path] = WrittenText(tuple((path, text) for text in own))
        self.encoded += ((path, _squeeze(_unescape(text))) for text in encoded)

    def encoded_place_of(self, text: bytes) -> str | None:
        """Return the file with an encoded text that has ``text``, a text without white space."""
        if len(text) < _MIN_ENCODED_CHARS:
            return None
        return next((path for path, encoded in self.encoded if text in encoded), None)


def read_hidden_texts(patch: Patch, tree: OverlayTree) -> HiddenTexts:
    """Return the texts that ``patch`` wrote into ``tree``."""
    runs: defaultdict[str, list[range]] = defaultdict(list)
    whole = set()
    for file in patch.files:
        if file.new is not None and file.new in tree.changed:
            runs[file.new] += file.added_runs
            if file.binary or file.old != file.new:
                whole.add(file.new)
    texts, left = HiddenTexts(), _MAX_BYTES
    for path in sorted(runs):
        content = read_file(overlay_path(tree, path))[:left]
        left -= len(content)
        added = [(0, len(content))] if path in whole else _byte_spans(content, runs[path])
        texts.add(path, content, added, whole=path in whole)
    return texts


def _joined(regions: Iterable[Region], content: bytes) -> Iterator[Region]:
    """Yield literals with nothing but commas or plus signs between them as one: a list of lines."""
    last: Region | None = None
    for region in regions:
        if (
            last
            and not last.is_comment | region.is_comment
            and _JOINT.fullmatch(content, last.end, region.start)
        ):
            last = Region(last.start, region.end, is_comment=False)
            continue
        if last:
            yield last
        last = region
    if last:
        yield last


def read_file(place: Path) -> bytes:
    """Return the first 8 MiB of a file, or the target of a link; b"" if it cannot be read."""
    try:
        if place.is_symlink():
            return os.fsencode(place.readlink())
        with place.open("rb") as file:
            return file.read(_MAX_FILE_BYTES)
    except OSError:
        return b""


class OldFile:
    """A file of R as lines and words, for the matches in it."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._lines = content.split(b"\n")

    @cached_property
    def _words(self) -> tuple[list[bytes], list[int]]:
        """All words, and for each line the number of words before it, with the total at the end."""
        words: list[bytes] = []
        before = [0]
        for line in self._lines:
            words += split_words(line)
            before.append(len(words))
        return words, before

    def text(self, match: Match) -> bytes:
        """Return the text of ``match`` without white space."""
        lines = self._lines[match.start_line - 1 : match.end_line]
        if lines and match.end_column > 1:
            lines[-1] = lines[-1][: match.end_column - 1]
        if lines and match.start_column > 1:
            lines[0] = lines[0][match.start_column - 1 :]
        return _squeeze(b"\n".join(lines))

    def place_in(self, text: WrittenText, match: Match) -> str | None:
        """Return the path where ``text`` has the lines of ``match`` with enough of what is around them."""
        words = split_words(b"\n".join(self._lines[match.start_line - 1 : match.end_line]))
        if not words or not text.vocabulary.issuperset(words):
            return None
        if len(words) >= CONTEXT_WORDS:
            return text.place_of(words)
        every, before = self._words
        start, end = before[match.start_line - 1], before[min(match.end_line, len(before) - 1)]
        first, last = max(end - CONTEXT_WORDS, 0), min(start, max(len(every) - CONTEXT_WORDS, 0))
        windows = (every[at : at + CONTEXT_WORDS] for at in range(first, last + 1))
        return next((path for window in windows if (path := text.place_of(window))), None)


def split_words(content: bytes) -> list[bytes]:
    """Return the words of a text: letters, digits and underscores, without escape sequences of literals."""
    return _WORD.findall(_unescape(content))


def _byte_spans(content: bytes, runs: Iterable[range]) -> list[tuple[int, int]]:
    starts = [0, *(match.end() for match in re.finditer(rb"\n", content)), len(content)]
    last = len(starts) - 1
    return [(starts[min(run.start - 1, last)], starts[min(run.stop - 1, last)]) for run in runs]


def _unescape(text: bytes) -> bytes:
    """Replace escape sequences such as that of a line break, whose letter is no word."""
    return _SIMPLE_ESCAPE.sub(b" ", text) if b"\\" in text else text


def _squeeze(text: bytes) -> bytes:
    return b"".join(text.split())
