"""A part of a patch that a page has as HTML: readable without a script, marked lines first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.site.trial.patch.patch_data import shown_path
from codetaste.site.trial.visible_text import visible_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.rules.scan.model import Match
    from codetaste.site.trial.patch.marked_patch import MarkedFile, MarkedPatch

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MAX_LINES = 40
_LINES_OF_FILE = 20
_MAX_WALKED = 2_000
_MAX_WALKED_BYTES = 256 * 1024
_MAX_FILES = 25
_MAX_LINE_CHARS = 240
_MAX_RULES = 3


@dataclass(frozen=True, slots=True)
class LineMark:
    """That rules match a line: of which kind, "additive", "reductive" or "remaining", and which rules."""

    kind: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    """One line: its numbers, None where the other file has it, its sign (" ", "-" or "+"), and its text."""

    old: int | None
    new: int | None
    sign: str
    text: str
    marks: tuple[LineMark, ...] = ()


@dataclass(frozen=True, slots=True)
class ExcerptFile:
    """Lines of one file: its number from 1, its path, and how many lines of its changes are left out."""

    number: int
    path: str
    lines: tuple[ExcerptLine, ...]
    left_out: int


def make_excerpt(patch: MarkedPatch) -> tuple[ExcerptFile, ...]:
    """Return lines of files with marks, then of others, up to 40 lines in the order of the patch."""
    numbered = list(enumerate(patch.files, 1))
    marked = [each for each in numbered if _has_marks(each[1])]
    chosen: list[ExcerptFile] = []
    lines_left = _MAX_LINES
    for number, file in [*marked, *(each for each in numbered if not _has_marks(each[1]))][:_MAX_FILES]:
        if lines_left <= 0:
            break
        lines = tuple(_excerpt_lines(patch.content, file, min(_LINES_OF_FILE, lines_left)))
        lines_left -= len(lines)
        if lines:
            left_out = file.counts.added + file.counts.removed - sum(line.sign != " " for line in lines)
            chosen.append(ExcerptFile(number, shown_path(file.path), lines, max(0, left_out)))
    return tuple(sorted(chosen, key=lambda each: each.number))


def _has_marks(file: MarkedFile) -> bool:
    return bool(file.counts.hits_added or file.counts.hits_removed or file.matches.remaining)


@dataclass(frozen=True, slots=True)
class _LineSets:
    """Lines that matches cover, by kind."""

    additive: frozenset[int]
    reductive: frozenset[int]
    remaining: frozenset[int]


def _excerpt_lines(content: bytes, file: MarkedFile, limit: int) -> Iterator[ExcerptLine]:
    """Yield the first ``limit`` lines with a mark, with their neighbours; without marks, the first lines."""
    sets = _LineSets(*(_covered(each) for each in _kinds(file)))
    wanted_old, wanted_new = _near(sets.reductive), _near(sets.additive | sets.remaining)
    every = not _has_marks(file)
    for old, new, raw in _walk(content, file):
        if not limit:
            return
        if every or (old in wanted_old) or (new in wanted_new):
            limit -= 1
            text = raw[1 : 4 * _MAX_LINE_CHARS].decode("utf-8", "replace")
            sign = raw[:1].decode("latin-1") or " "
            marks = _marks(file, sign, old, new)
            yield ExcerptLine(old, new, sign, visible_text(text, _MAX_LINE_CHARS), marks)


def _walk(content: bytes, file: MarkedFile) -> Iterator[tuple[int | None, int | None, bytes]]:
    """Yield old number, new number and text of the first lines of a file's hunks; a number of 0 is none."""
    start, end = file.file.span
    old = new = old_left = new_left = 0
    for raw in content[start : min(end, start + _MAX_WALKED_BYTES)].split(b"\n", _MAX_WALKED):
        if not (old_left or new_left):
            if header := _HUNK.match(raw):
                old, old_left, new, new_left = (
                    int(header[1]), int(header[2] or 1), int(header[3]), int(header[4] or 1)
                )  # fmt: skip
            continue
        in_old, in_new = raw[:1] != b"+", raw[:1] != b"-"
        if raw[:1] == b"\\":
            continue
        yield old if in_old else None, new if in_new else None, raw
        old, old_left = old + in_old, old_left - in_old
        new, new_left = new + in_new, new_left - in_new


def _kinds(file: MarkedFile) -> tuple[Sequence[Match], Sequence[Match], Sequence[Match]]:
    return file.matches.additive, file.matches.reductive, file.matches.remaining


def _covered(matches: Sequence[Match]) -> frozenset[int]:
    return frozenset(line for each in matches for line in range(each.start_line, each.end_line + 1))


def _near(lines: frozenset[int]) -> frozenset[int]:
    return frozenset(near for line in lines for near in (line - 1, line, line + 1))


def _marks(file: MarkedFile, sign: str, old: int | None, new: int | None) -> tuple[LineMark, ...]:
    """Return the marks of a line: an additive rule marks only what the patch adds."""
    found: list[tuple[str, Sequence[Match], int]] = []
    if new is None:
        found.append(("reductive", file.matches.reductive, old or 0))
    else:
        found += [("additive", file.matches.additive, new)] if sign == "+" else []
        found.append(("remaining", file.matches.remaining, new))
    marks = ((kind, _rules_at(matches, line)) for kind, matches, line in found)
    return tuple(LineMark(kind, rules) for kind, rules in marks if rules)


def _rules_at(matches: Sequence[Match], line: int) -> tuple[str, ...]:
    rules = dict.fromkeys(each.rule_id for each in matches if each.start_line <= line <= each.end_line)
    return tuple(rules)[:_MAX_RULES]
