"""Reading a tar stream that nobody vouches for, as it comes, with little memory and without touching a disk.

Headers of ustar, GNU (long names) and pax are understood, as container engines write them. What a name may be
and what becomes of a member is for the reader's user to decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from codetaste.errors import SourceError
from codetaste.source.writing import show

if TYPE_CHECKING:
    from collections.abc import Generator

_BLOCK = 512
_NUL_BLOCK = bytes(_BLOCK)
_HEADER_BYTES = 1 << 20
"""Of one extended header: a name cannot be longer than a path."""
_CHECKSUM = slice(148, 156)
_BINARY = 0x80
_LENGTH_DIGITS = 20
"""Of 2**64."""
_KEYS = {b"path", b"linkpath", b"size"}
_SPARSE = b"GNU.sparse"


class Kind(Enum):
    """What a member is."""

    FILE = "a file"
    HARD_LINK = "a hard link"
    LINK = "a link"
    FOLDER = "a folder"
    PIPE = "a named pipe"
    DEVICE = "a device"
    OTHER = "of an unknown kind"


_KINDS = {
    **dict.fromkeys((b"0", b"\0", b"7"), Kind.FILE),
    b"1": Kind.HARD_LINK,
    b"2": Kind.LINK,
    b"5": Kind.FOLDER,
    b"6": Kind.PIPE,
    **dict.fromkeys((b"3", b"4"), Kind.DEVICE),
}


@dataclass(frozen=True, slots=True)
class Member:
    """One member; ``size`` in bytes is the content's, ``link`` where a link leads. Names are as written."""

    name: bytes
    kind: Kind
    size: int
    executable: bool
    link: bytes


class Taker(Protocol):
    """What is given the members one by one."""

    def member(self, member: Member) -> bool:
        """Take note of a member; True asks for its content."""
        ...

    def content(self, chunk: bytes) -> None:
        """Take the next piece of the content of the last member that was asked for; never an empty one."""
        ...

    def end(self) -> None:
        """Know that the content is whole."""
        ...


class DamagedTar(SourceError):
    """The stream is no tar archive, or ends too early. What was read before stands."""


class TarTooLarge(DamagedTar):
    """The stream is longer than it may be. What was read before stands."""


class TarReader:
    """Gives the members of a stream, which is fed to it in pieces, to ``taker``.

    Args:
        taker: is given them.
        limit_bytes: no more is read.
    """

    def __init__(self, taker: Taker, limit_bytes: int) -> None:
        self._taker = taker
        self._limit = self._left = limit_bytes
        self._data = b""
        self._at = 0
        self.ended = False
        self._reading = self._archive()
        next(self._reading)

    def feed(self, data: bytes) -> None:
        """Read on; b"" says that no more will come. What follows the archive's end is passed over.

        Raises:
            TarTooLarge: it is longer than ``limit_bytes``, or will be.
            DamagedTar: it cannot be read further.
        """
        if self.ended:
            return
        self._left -= len(data)
        if self._left < 0:
            raise TarTooLarge(f"it holds more than {self._limit:,} bytes")
        self._data = self._data[self._at :] + data
        self._at = 0
        if not data:
            raise DamagedTar("the archive breaks off")
        try:
            self._reading.send(None)
        except StopIteration:
            self.ended = True

    def _take(self, size: int) -> Generator[None, None, bytes]:
        while len(self._data) - self._at < size:
            yield
        start, self._at = self._at, self._at + size
        return self._data[start : self._at]

    def _archive(self) -> Generator[None, None, None]:
        pending: dict[bytes, bytes] = {}
        while (header := (yield from self._take(_BLOCK))) != _NUL_BLOCK:
            _check(header)
            kind, size = header[156:157], _number(header[124:136])
            if kind in {b"x", b"g", b"L", b"K"}:
                if size > _HEADER_BYTES:
                    raise DamagedTar(f"the archive has an extended header of {size:,} bytes")
                text = (yield from self._take(_padded(size)))[:size]
                pending |= _extension(kind, text)
                continue
            if b"size" in pending:
                size = _decimal(pending[b"size"])
            yield from self._member(_member(header, kind, size, pending))
            pending = {}

    def _member(self, member: Member) -> Generator[None, None, None]:
        if member.size > self._left + len(self._data) - self._at:
            raise TarTooLarge(f"{show(member.name)} has {member.size:,} bytes")
        wanted = self._taker.member(member)
        left, padding = member.size, -member.size % _BLOCK
        while left:
            if self._at == len(self._data):
                yield
            end = min(self._at + left, len(self._data))
            left -= end - self._at
            if wanted and end > self._at:
                self._taker.content(self._data[self._at : end])
            self._at = end
        if wanted:
            self._taker.end()
        yield from self._take(padding)


def _member(header: bytes, kind: bytes, size: int, pending: dict[bytes, bytes]) -> Member:
    found = _KINDS.get(kind, Kind.OTHER)
    if _SPARSE in pending:
        found = Kind.OTHER
    name = pending.get(b"path") or _name(header)
    # Old archives mark a folder by its name alone.
    if found is Kind.FILE and name.endswith(b"/"):
        found = Kind.FOLDER
    link = pending.get(b"linkpath") or _text(header[157:257])
    has_content = found in {Kind.FILE, Kind.OTHER}
    return Member(name, found, size if has_content else 0, bool(_number(header[100:108]) & 0o100), link)


def _name(header: bytes) -> bytes:
    name, prefix = _text(header[:100]), _text(header[345:500])
    return b"%s/%s" % (prefix, name) if prefix and header[257:263] == b"ustar\0" else name


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _padded(size: int) -> int:
    return size + -size % _BLOCK


def _check(header: bytes) -> None:
    # The checksum counts itself as eight spaces.
    found = sum(header) - sum(header[_CHECKSUM]) + 8 * 0x20
    if found != _number(header[_CHECKSUM]):
        raise DamagedTar("the archive is damaged: a header's checksum is wrong")


def _number(field: bytes) -> int:
    """Read a number: octal digits, or GNU's binary form for what is too large for them."""
    if field[0] & _BINARY:
        value = int.from_bytes(field, "big", signed=True) + (1 << (8 * len(field) - 1))
        if field[0] != _BINARY:
            raise DamagedTar("the archive is damaged: a number below zero")
        return value
    digits = _text(field).strip()
    if digits.strip(b"01234567"):
        raise DamagedTar(f"the archive is damaged: {digits!r} is no number")
    return int(digits or b"0", 8)


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > _LENGTH_DIGITS:
        raise DamagedTar("the archive is damaged: a size that is no number")
    return int(text)


def _extension(kind: bytes, text: bytes) -> dict[bytes, bytes]:
    if kind == b"L":
        return {b"path": _text(text)}
    if kind == b"K":
        return {b"linkpath": _text(text)}
    # What holds for all members ("g") says nothing that matters here.
    return _records(text) if kind == b"x" else {}


def _records(text: bytes) -> dict[bytes, bytes]:
    """Read pax records (length, space, key=value, newline), of which few matter."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(text):
        space = text.find(b" ", at, at + _LENGTH_DIGITS + 1)
        end = at + _decimal(text[at:space])
        key, equals, value = text[space + 1 : end].partition(b"=")
        if space < 0 or not equals or not value.endswith(b"\n") or end > len(text):
            raise DamagedTar("the archive is damaged: an extended header makes no sense")
        if key in _KEYS:
            found[key] = value[:-1]
        elif key.startswith(_SPARSE):
            found[_SPARSE] = b""
        at = end
    return found
