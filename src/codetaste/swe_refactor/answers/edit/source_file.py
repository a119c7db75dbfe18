"""A Java file that is edited: its encoding, its line ends, and the edits by byte range."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import parse_java
from codetaste.swe_refactor.answers.problem import AnswerFault
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind

if TYPE_CHECKING:
    from codetaste.swe_refactor.answers.java.syntax import SourceUnit

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ByteEdit:
    """Bytes ``start`` to ``end`` of a file are replaced by ``content``; a new file has 0 and 0."""

    path: str
    start: int
    end: int
    content: bytes


@dataclass(slots=True)
class SourceFile:
    """A file at the base with the edits so far. Offsets of edits are those of ``unit``.

    Attributes:
        path: the file, relative to the tree.
        raw: its bytes.
        encoding: UTF-8, or Latin-1 for all that is no UTF-8, which keeps every byte.
        newline: the line end of most of its lines.
        unit: its syntax.
        edits: start, end and new text of each edit.
    """

    path: str
    raw: bytes
    encoding: str
    newline: str
    unit: SourceUnit
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def replace(self, start: int, end: int, text: str) -> None:
        """Add an edit; the line ends of ``text`` become those of the file."""
        self.edits.append((start, end, text.replace("\n", self.newline)))

    def byte_edits(self) -> tuple[ByteEdit, ...]:
        """Return the edits by the bytes of the file, in order; insertions at one place are one edit.

        Raises:
            AnswerFault: the encoding does not have a character of the new text.
        """
        found = list[ByteEdit]()
        for start, end, text in sorted(self.edits, key=lambda edit: edit[:2]):
            content, at, to = self._encode(text), self._raw_offset(start), self._raw_offset(end)
            if found and found[-1].end == at:
                last = found.pop()
                content, at = last.content + content, last.start
            found.append(ByteEdit(self.path, at, to, content))
        return tuple(found)

    def line_start(self, at: int) -> int:
        """Return where the line of an offset begins."""
        data = self.unit.data
        return max(data.rfind(b"\n", 0, at), data.rfind(b"\r", 0, at)) + 1

    def indent_at(self, at: int) -> str:
        """Return the white space at the beginning of the line of an offset."""
        blank = re.compile(rb"[ \t]*").match(self.unit.data, self.line_start(at))
        return blank[0].decode() if blank else ""

    def _encode(self, text: str) -> bytes:
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise AnswerFault(
                Kind.NOT_ENCODABLE, f"{self.path} is no UTF-8, and U+{ord(character):04X} is not in Latin-1."
            ) from None

    def _raw_offset(self, at: int) -> int:
        if self.encoding == "utf-8":
            return at + len(_BOM) * self.raw.startswith(_BOM)
        return len(self.unit.data[:at].decode("utf-8"))


def open_source(path: str, raw: bytes) -> SourceFile:
    """Return a file to edit.

    Raises:
        AnswerFault: its syntax takes too long to find.
    """
    try:
        text, encoding = raw.removeprefix(_BOM).decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text, encoding = raw.decode("latin-1"), "latin-1"
    unit = parse_java(text.encode("utf-8"))
    if unit is None:
        raise AnswerFault(Kind.WRONG_TREE, f"{path} takes too long to be read.")
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    return SourceFile(path, raw, encoding, newline, unit)


def apply_edits(raw: bytes, edits: tuple[ByteEdit, ...]) -> bytes:
    """Return a file with its edits, which are in order and do not overlap."""
    pieces, at = list[bytes](), 0
    for edit in edits:
        pieces += [raw[at : edit.start], edit.content]
        at = edit.end
    return b"".join([*pieces, raw[at:]])
