"""The lines of an hour file that may be merged pull requests, found without parsing the others.

A file is read in blocks. Each line of it is counted and must look like a JSON object; only lines that name
the type of event and do not say that nothing was merged are yielded. In JSON a quote inside a text is
escaped, so no text can look like these marks.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TYPE = b'"PullRequestEvent"'
_UNMERGED = b'"merged":false'
_JOINED = re.compile(rb'\}\{(?="[a-z_]+":)')
"""Two events without a line break between them, as in some early hours."""

_READ_BYTES = 64 * 1024
"""Compressed bytes read at once: what is lost at most before a torn place."""
_MAX_LINE_BYTES = 32 * 1024**2
_GZIP = b"\x1f\x8b"
_MAX_EXAMPLES = 20


class Line(NamedTuple):
    """A line of an hour; ``number`` counts from 1."""

    number: int
    text: bytes


class LineFault(NamedTuple):
    """Why a line cannot be used."""

    line: int
    reason: str


@dataclass(slots=True)
class Faults:
    """Counts of faults by reason, and the first of them with their lines."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[LineFault] = field(default_factory=list)

    def add(self, line: int, reason: str) -> None:
        """Count a fault."""
        self.counts[reason] += 1
        if len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(LineFault(line, reason))


class _Torn(Exception):
    """The compressed data ends too early or is damaged."""


class HourLines:
    """Reads one file, gzipped or plain.

    Attributes:
        count: lines that were read.
        torn: why the file could not be read to its end; "" if it could.
        faults: lines that cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = 0
        self.torn = ""
        self.faults = Faults()

    def candidates(self) -> Iterator[Line]:
        """Yield the lines that may be merged pull requests; after a torn place the rest is left out."""
        try:
            with self._path.open("rb") as file:
                for block in self._blocks(file):
                    yield from self._candidates_in(block)
        except _Torn as error:
            self.torn = str(error)
        except OSError as error:
            self.torn = f"cannot be read: {error.strerror or error}"

    def _blocks(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the content in blocks of complete lines; a line above the maximum size is left out."""
        rest, too_long = b"", False
        try:
            for piece in _decompressed(file):
                block = rest + piece
                end = block.rfind(b"\n") + 1
                block, rest = block[:end], block[end:]
                if too_long:
                    block, rest = block.partition(b"\n")[2], rest if end else b""
                    too_long = not end
                elif len(rest) > _MAX_LINE_BYTES:
                    self._skip("longer than 32 MiB")
                    rest, too_long = b"", True
                yield block
        except _Torn:
            if rest:
                self._skip("cut off by the end of the readable data")
            raise
        yield rest

    def _skip(self, reason: str) -> None:
        self.count += 1
        self.faults.add(self.count, reason)

    def _candidates_in(self, block: bytes) -> Iterator[Line]:
        for line in block.removesuffix(b"\n").split(b"\n") if block else ():
            text = line if line.endswith(b"}") else line.strip()
            if not (text.startswith(b"{") and text.endswith(b"}")):
                self._skip("not a JSON object" if text else "an empty line")
            elif _TYPE not in text:
                self.count += 1
            else:
                for event in _JOINED.sub(b"}\n{", text).split(b"\n") if b'}{"' in text else (text,):
                    self.count += 1
                    if _TYPE in event and _UNMERGED not in event:
                        yield Line(self.count, event)


def _decompressed(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a gzip file of one or more members, or of a plain file.

    Raises:
        _Torn: the compressed data ends too early or is damaged.
    """
    data = file.read(_READ_BYTES)
    if not data.startswith(_GZIP):
        while data:
            yield data
            data = file.read(_READ_BYTES)
        return
    member = zlib.decompressobj(wbits=31)
    while data:
        try:
            yield member.decompress(data)
        except zlib.error as error:
            raise _Torn(f"damaged gzip data before byte {file.tell():,}: {error}") from None
        data = member.unused_data
        if member.eof:
            data = (data.lstrip(b"\0") + file.read(_READ_BYTES)).lstrip(b"\0")
            if data and not data.startswith(_GZIP):
                raise _Torn(f"something else follows the gzip data before byte {file.tell():,}")
            member = zlib.decompressobj(wbits=31)
        else:
            data = file.read(_READ_BYTES)
            if not data:
                raise _Torn("the gzip data ends too early")
