"""What a patch wrote where a rule does not look: whole files, literals, comments, encoded texts.

Each file is read and searched once; its text is not stored.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.evaluation.evasion.encoded_text import ByteBudget, decoded_texts
from codetaste.evaluation.evasion.lexical import Region, quoted_regions
from codetaste.evaluation.evasion.word_runs import RunSearch, squeeze, unescape
from codetaste.source.tree.overlay import overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from codetaste.source.patch.model import Patch
    from codetaste.source.tree.overlay import OverlayTree

    Span = tuple[int, int]

MAX_FILE_BYTES = 8 * 1024**2
MAX_BYTES = 32 * 1024**2
"""Bytes of a patch's files that are read, and of their encoded texts that are decoded."""
_MINIFIED_LINE_BYTES = 150
"""Mean line length from which a file may be minified: generic rules skip those."""
_MIN_ENCODED_CHARS = 3
_EVALUATOR = re.compile(
    rb"\b(?:eval|exec|execfile|compile|execScript|Function|setTimeout|setInterval|runIn\w*Context)"
    rb"\s*+\(\s*+(?:[\"'`][^\"'`\n]{0,8}[\"'`]\s*+\.\s*+join\s*+\(\s*+)?[\[(]*+\s*+[rbfu]{0,2}"
)
"""What is before a literal that is evaluated."""
_LITERAL_JOINT = re.compile(rb"""["'`]\s*+(?:[+,\\]\s*+)?[rbfu]?["'`]""")
_JOINT = re.compile(rb"[\s+,.\\]*+")


@dataclass(frozen=True, slots=True)
class WantedTexts:
    """What is searched for: runs of words, and texts without white space that may be encoded."""

    runs: RunSearch
    texts: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What a file that the patch wrote has of what is searched for.

    Attributes:
        written: runs in the parts that the patch wrote.
        own: runs in the whole of an old file: only for matches of the same file.
        quoted: runs in literals and comments on added lines.
        own_quoted: runs in literals and comments that the patch begins or ends around old lines.
        encoded: texts that it holds in encoded form, or in a literal that is passed to an evaluator.
        looks_minified: what the patch wrote has very long lines.
        whole: the patch wrote all of the file.
        unread: a part of the file, or what is encoded in it, was not read.
    """

    written: frozenset[bytes]
    own: frozenset[bytes]
    quoted: frozenset[bytes]
    own_quoted: frozenset[bytes]
    encoded: frozenset[bytes]
    looks_minified: bool
    whole: bool
    unread: bool


def read_written_files(
    patch: Patch, tree: OverlayTree, wanted: WantedTexts, budget: ByteBudget
) -> dict[str, WrittenFile]:
    """Return the files that ``patch`` wrote into ``tree``, by path, with what they have of ``wanted``."""
    runs: defaultdict[str, list[range]] = defaultdict(list)
    whole = set()
    for file in patch.files:
        if file.new is not None and file.new in tree.changed:
            runs[file.new] += file.added_runs
            if file.binary or file.old != file.new:
                whole.add(file.new)
    found = {}
    for path in sorted(runs):
        content = read_file(overlay_path(tree, path), budget.left + 1)
        budget.take(len(content))
        added = [(0, len(content))] if path in whole else _byte_spans(content, runs[path])
        found[path] = _read_written(path, content, added, path in whole, wanted, budget)
    return found


def _read_written(
    path: str, content: bytes, added: Sequence[Span], whole: bool, wanted: WantedTexts, budget: ByteBudget
) -> WrittenFile:
    parts = [content[start:end] for start, end in added]
    encoded = [text for part in parts for text in decoded_texts(part, budget)]
    quoted: set[bytes] = set()
    own_quoted: set[bytes] = set()
    evaluated = {call.end() for call in _EVALUATOR.finditer(content)}
    ends = [end for _, end in added]
    for region in _joined(quoted_regions(content, path), content):
        start, end, is_comment = region
        is_evaluated = start in evaluated and not is_comment
        if end - start < wanted.runs.min_bytes and not is_evaluated:
            continue  # nearly all
        inside = _spans_inside(region, added, bisect_right(ends, start))
        if not inside:
            continue
        quoted.update(*(wanted.runs.found_in(content[first:last]) for first, last in inside))
        if not whole:
            own_quoted |= wanted.runs.found_in(content[start:end])
        if is_evaluated:
            literal = content[start + 1 : end - 1]
            encoded += (literal, _LITERAL_JOINT.sub(b"", literal))
    squeezed = b"\0".join(squeeze(unescape(text)) for text in encoded)
    size, lines = sum(map(len, parts)), sum(part.count(b"\n") for part in parts)
    return WrittenFile(
        written=frozenset().union(*map(wanted.runs.found_in, parts)),
        own=frozenset() if whole else frozenset(wanted.runs.found_in(content)),
        quoted=frozenset(quoted),
        own_quoted=frozenset(quoted if whole else own_quoted),
        encoded=frozenset(
            text for text in wanted.texts if len(text) >= _MIN_ENCODED_CHARS and text in squeezed
        ),
        looks_minified=size > _MINIFIED_LINE_BYTES * (1 + lines),
        whole=whole,
        unread=budget.exceeded,
    )


def _spans_inside(region: Region, added: Sequence[Span], first: int) -> list[Span]:
    """Return the parts of a literal or comment that the patch added; ``first`` is the first span to try."""
    inside = []
    for at in range(first, len(added)):
        start, end = added[at]
        if start >= region.end:
            break
        inside.append((max(start, region.start), min(end, region.end)))
    return inside


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


def read_file(place: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return the first bytes of a file, or the target of a link; b"" if it cannot be read."""
    try:
        if place.is_symlink():
            return os.fsencode(place.readlink())
        with place.open("rb") as file:
            # read() allocates as many bytes as it may read.
            return file.read(min(limit, os.fstat(file.fileno()).st_size))
    except OSError:
        return b""


def _byte_spans(content: bytes, runs: Iterable[range]) -> list[Span]:
    """Return the positions of runs of lines, in order; those that touch each other are one."""
    spans: list[Span] = []
    at, line = 0, 1
    for run in sorted((run for run in runs if run), key=lambda run: run.start):
        start = _skip_lines(content, at, run.start - line)
        at = _skip_lines(content, start, run.stop - max(run.start, line))
        line = max(run.stop, line)
        if spans and start <= spans[-1][1]:
            spans[-1] = spans[-1][0], at
        else:
            spans.append((start, at))
    return spans


def _skip_lines(content: bytes, at: int, count: int) -> int:
    """Return the position ``count`` lines after ``at``, or the end."""
    for _ in range(count):
        at = content.find(b"\n", at) + 1
        if not at:
            return len(content)
    return at
