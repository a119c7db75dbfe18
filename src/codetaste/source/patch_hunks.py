"""The body of one file in a patch: hunks of lines, or what stands for binary contents."""

from __future__ import annotations

import re
import zlib
from base64 import b85decode
from dataclasses import dataclass
from typing import NamedTuple

from codetaste.errors import PatchError

_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@[^\n]*\n")
# Runs of lines, taken whole: a loop over single lines costs three times as much. Beside each of them is how
# often one of its lines counts in the old and in the new file.
_CONTEXT = (re.compile(rb"(?: [^\n]*\n|\r?\n)++"), 1, 1)  # a mailer may have cut the blank of an empty line
_RUNS = {
    **dict.fromkeys(b" \n\r", _CONTEXT),
    ord("-"): (re.compile(rb"(?:-[^\n]*\n)++"), 1, 0),
    ord("+"): (re.compile(rb"(?:\+[^\n]*\n)++"), 0, 1),
}
_NO_NEWLINE = re.compile(rb"\\ [^\n]*\n")

_DIFFER = re.compile(rb"(?:Binary files|Files) [^\n]* differ\r?\n")
_BINARY = re.compile(rb"GIT binary patch\r?\n")
_DATA = re.compile(rb"(literal|delta) (\d{1,12})\r?\n((?:[A-Za-z][^\n]+\n)++)\r?\n")
_UPPER = 26
_DELTA_START = 20
"""Bytes that hold both sizes a delta begins with."""


class Binary(NamedTuple):
    """What stands for binary contents: whether there is any, what it unpacks to (bytes), where it ends."""

    found: bool
    made_bytes: int
    end: int


def line_at(content: bytes, at: int) -> int:
    """Return the number of the line that holds position ``at``, from 1."""
    return content.count(b"\n", 0, at) + 1


@dataclass(slots=True)
class _Hunk:
    """A hunk while it is read: where it begins, the next line of either file, and how many are left."""

    start: int
    old_at: int
    old_left: int
    new_at: int
    new_left: int


def read_hunks(content: bytes, at: int, removed: list[range], added: list[range]) -> int:
    """Read the hunks that begin at ``at``, if there are any, and return where they end.

    Args:
        content: the whole patch.
        at: a position in it.
        removed: gets the runs of lines that go.
        added: gets those that come.

    Raises:
        PatchError: a hunk has other lines than its header counts.
    """
    while content.startswith(b"@@ -", at):
        header = _HUNK.match(content, at)
        if header is None:
            raise _fault(content, at, "the header of a hunk makes no sense")
        old, old_lines, new, new_lines = (1 if text is None else int(text) for text in header.groups())
        hunk = _Hunk(at, old, old_lines, new, new_lines)
        at = header.end()
        while hunk.old_left or hunk.new_left:
            at = _read_run(content, at, hunk, removed, added)
        if marker := _NO_NEWLINE.match(content, at):
            at = marker.end()
    return at


def _read_run(content: bytes, at: int, hunk: _Hunk, removed: list[range], added: list[range]) -> int:
    """Read lines of one kind, and return where they end."""
    pattern, in_old, in_new = _RUNS.get(content[at] if at < len(content) else -1, _CONTEXT)
    run = pattern.match(content, at)
    if run is None and (marker := _NO_NEWLINE.match(content, at)):
        return marker.end()
    most = min(hunk.old_left if in_old else hunk.new_left, hunk.new_left if in_new else hunk.old_left)
    if run is None or not most:
        raise _short(content, at, hunk)
    end = run.end()
    lines = content.count(b"\n", at, end)
    if lines > most:  # what follows only looks like more of it
        lines, end = most, _after_lines(content, at, most)
    if not in_new:
        removed.append(range(hunk.old_at, hunk.old_at + lines))
    if not in_old:
        added.append(range(hunk.new_at, hunk.new_at + lines))
    hunk.old_at += in_old * lines
    hunk.old_left -= in_old * lines
    hunk.new_at += in_new * lines
    hunk.new_left -= in_new * lines
    return end


def _after_lines(content: bytes, at: int, lines: int) -> int:
    for _ in range(lines):
        at = content.find(b"\n", at) + 1
    return at


def _short(content: bytes, at: int, hunk: _Hunk) -> PatchError:
    where = "the patch ends here" if at == len(content) else "a line that does not belong there"
    if at < len(content) and content.find(b"\n", at) < 0:
        where = "the patch ends here, in the midst of a line"
    lacking = f"{hunk.old_left:,} old and {hunk.new_left:,} new lines"
    return _fault(content, at, f"{where}; the hunk of line {line_at(content, hunk.start)} lacks {lacking}")


def _fault(content: bytes, at: int, what: str) -> PatchError:
    line = line_at(content, at)
    return PatchError(f"line {line}: {what}", line=line)


def read_binary(content: bytes, at: int) -> Binary:
    """Read what stands for binary contents at ``at``, if it is that.

    Raises:
        PatchError: it is damaged.
    """
    if differ := _DIFFER.match(content, at):
        return Binary(found=True, made_bytes=0, end=differ.end())
    begin = _BINARY.match(content, at)
    if begin is None:
        return Binary(found=False, made_bytes=0, end=at)
    made, at, first = 0, begin.end(), True
    while data := _DATA.match(content, at):
        kind, size, lines = data.groups()
        made += int(size)
        if kind == b"delta":
            made += _delta_makes(content, at, lines)
        at, first = data.end(), False
    if first:
        raise _fault(content, at, "binary contents that make no sense or end too early")
    return Binary(found=True, made_bytes=made, end=at)


def _delta_makes(content: bytes, at: int, lines: bytes) -> int:
    """Return the size that a delta says it makes; only its first bytes are unpacked."""
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
        raise _fault(content, at, "binary contents that are damaged") from None


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, the lowest first; return it and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at
