"""Body of one file in a patch: hunks of lines, or binary contents."""

from __future__ import annotations

import re
import zlib
from base64 import b85decode
from typing import NamedTuple

from codetaste.errors import PatchError, PatchTooLarge

MAX_RUNS = 2_000_000
"""Limit of runs of changed lines, which bounds the memory of a parsed patch."""

_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@[^\n]*\n")
# Lines are matched in runs: a loop over single lines costs several times as much. First context, then removed
# lines, then added ones; a mailer may have removed the blank of an empty context line.
_BLOCK = re.compile(rb"((?: [^\n]*\n|\r?\n)*+)((?:-[^\n]*\n)*+)((?:\+[^\n]*\n)*+)")
# The most common hunk, matched at once: one change with lines of context, before another header or the end.
_USUAL = re.compile(
    _HUNK.pattern + rb"((?: [^\n]*\n)*+)((?:-[^\n]*\n)*+)((?:\+[^\n]*\n)*+)((?: [^\n]*\n)*+)(?=@@ -|diff |\Z)"
)
_NO_NEWLINE = re.compile(rb"\\ [^\n]*\n")

_DIFFER = re.compile(rb"(?:Binary files|Files) [^\n]* differ\r?\n")
_BINARY = re.compile(rb"GIT binary patch\r?\n")
_DATA = re.compile(rb"(literal|delta) (\d{1,12})\r?\n((?:[A-Za-z][^\n]+\n)++)\r?\n")
_UPPER = 26
_DELTA_START = 20
"""Bytes that hold both sizes at the start of a delta."""


class BinaryBody(NamedTuple):
    """Binary body of a file: whether there is one, its declared unpacked size (bytes), and where it ends."""

    found: bool
    declared_bytes: int
    end: int


def line_at(content: bytes, at: int) -> int:
    """Return the number, from 1, of the line at position ``at``."""
    return content.count(b"\n", 0, at) + 1


def read_hunks(content: bytes, at: int, removed: list[range], added: list[range]) -> int:
    """Read the hunks at ``at``, if there are any; return the position of their end.

    Args:
        content: the whole patch.
        at: a position in it.
        removed: gets the runs of removed lines.
        added: gets the runs of added lines.

    Raises:
        PatchError: the lines of a hunk do not match the counts of its header.
        PatchTooLarge: the file changes in more than two million places.
    """
    while content.startswith(b"@@ -", at):
        if (usual := _USUAL.match(content, at)) and _add_usual(content, usual, removed, added):
            at = usual.end()
            continue
        header = _HUNK.match(content, at)
        if header is None:
            raise _fault(content, at, "invalid hunk header")
        at = _read_lines(content, header, removed, added)
        if content.startswith(b"\\", at) and (marker := _NO_NEWLINE.match(content, at)):
            at = marker.end()
    return at


def _add_usual(content: bytes, hunk: re.Match[bytes], removed: list[range], added: list[range]) -> bool:
    """Add the runs of a hunk that was matched at once; False if its lines are not those that it declares."""
    first, second, third, end = hunk.start(6), hunk.start(7), hunk.start(8), hunk.end()
    before = content.count(b"\n", hunk.start(5), first)
    gone, come = content.count(b"\n", first, second), content.count(b"\n", second, third)
    context = before + content.count(b"\n", third, end)
    old, old_count, new, new_count = hunk.group(1, 2, 3, 4)
    if context + gone != int(old_count or 1) or context + come != int(new_count or 1):
        return False
    if gone:
        start = int(old) + before
        removed.append(range(start, start + gone))
    if come:
        start = int(new) + before
        added.append(range(start, start + come))
    return len(removed) + len(added) <= MAX_RUNS


def _read_lines(content: bytes, header: re.Match[bytes], removed: list[range], added: list[range]) -> int:
    old_text, old_count, new_text, new_count = header.groups(b"1")
    old, old_left, new, new_left = int(old_text), int(old_count), int(new_text), int(new_count)
    at = header.end()
    while old_left or new_left:
        context, gone, come, end = _block(content, at, old_left, new_left)
        if end == at:
            where = "the patch ends here" if at == len(content) else "unexpected line"
            if at < len(content) and content.find(b"\n", at) < 0:
                where = "the patch ends here, in the middle of a line"
            hunk, missing = line_at(content, header.start()), f"{old_left:,} old and {new_left:,} new lines"
            raise _fault(content, at, f"{where}; the hunk at line {hunk} is missing {missing}")
        old, new = old + context, new + context
        if gone:
            removed.append(range(old, old + gone))
        if come:
            added.append(range(new, new + come))
        old, new = old + gone, new + come
        old_left -= context + gone
        new_left -= context + come
        at = end
        if len(removed) + len(added) > MAX_RUNS:
            raise PatchTooLarge(f"the patch changes its files in more than {MAX_RUNS:,} places")
    return at


def _block(content: bytes, at: int, old_left: int, new_left: int) -> tuple[int, int, int, int]:
    """Count context, removed and added lines at ``at``, up to the given limits; return also their end."""
    block = _BLOCK.match(content, at)
    if block is None:  # cannot happen: every group may be empty
        return 0, 0, 0, at
    first, second, end = block.end(1), block.end(2), block.end()
    context = content.count(b"\n", at, first) if first > at else 0
    gone = content.count(b"\n", first, second) if second > first else 0
    come = content.count(b"\n", second, end) if end > second else 0
    if context > min(old_left, new_left):  # the lines after that only look like context
        context = min(old_left, new_left)
        return context, 0, 0, _after_lines(content, at, context)
    if context + gone > old_left:
        gone = old_left - context
        return context, gone, 0, _after_lines(content, first, gone)
    if context + come > new_left:
        come = new_left - context
        return context, gone, come, _after_lines(content, second, come)
    marker = _NO_NEWLINE.match(content, end) if content.startswith(b"\\", end) else None
    return context, gone, come, marker.end() if marker else end


def _after_lines(content: bytes, at: int, lines: int) -> int:
    for _ in range(lines):
        at = content.find(b"\n", at) + 1
    return at


def _fault(content: bytes, at: int, what: str) -> PatchError:
    line = line_at(content, at)
    return PatchError(f"line {line}: {what}", line=line)


def read_binary(content: bytes, at: int) -> BinaryBody:
    """Read the binary contents at ``at``, if there are any.

    Raises:
        PatchError: they are damaged.
    """
    if differ := _DIFFER.match(content, at):
        return BinaryBody(found=True, declared_bytes=0, end=differ.end())
    begin = _BINARY.match(content, at)
    if begin is None:
        return BinaryBody(found=False, declared_bytes=0, end=at)
    made, at, first = 0, begin.end(), True
    while data := _DATA.match(content, at):
        kind, size, lines = data.groups()
        made += int(size)
        if kind == b"delta":
            made += _delta_size(content, at, lines)
        at, first = data.end(), False
    if first:
        raise _fault(content, at, "invalid or truncated binary contents")
    return BinaryBody(found=True, declared_bytes=made, end=at)


def _delta_size(content: bytes, at: int, lines: bytes) -> int:
    """Return the size that a delta declares for its result; only its first bytes are unpacked."""
    unpack, start = zlib.decompressobj(), b""
    try:
        for line in re.finditer(rb"([A-Za-z])([^\r\n]+)\r?\n", lines):
            letter = line[1][0]
            length = letter - ord("A") + 1 if letter <= ord("Z") else letter - ord("a") + 1 + _UPPER
            start += unpack.decompress(b85decode(line[2])[:length], _DELTA_START - len(start))
            if len(start) >= _DELTA_START or unpack.eof:
                break
        return _number(start, _number(start, 0)[1])[0]
    except (ValueError, zlib.error, IndexError):
        raise _fault(content, at, "damaged binary contents") from None


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits per byte, lowest first; return it and the position of its end."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the highest bit: another byte follows
            return value, at
