"""Streaming reader of an untrusted tar archive, with little memory and without writing to disk.

It reads headers of ustar, GNU (long names) and pax, as container engines write them. Names are not checked;
that and the use of the members is up to the caller.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from codetaste.core.text import printable_name
from codetaste.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Generator


_TAR_BLOCK = 512
_END_BLOCK = bytes(_TAR_BLOCK)
_MAX_EXTENSION_BYTES = 1 << 20
"""Limit on one extended header; a name cannot be longer than a path."""
_CHECKSUM = slice(148, 156)
_BINARY_FLAG = 0x80
_LENGTH_DIGITS = 20
"""Decimal digits of 2**64."""
_PAX_KEYS = {b"path", b"linkpath", b"size"}
_SPARSE_KEY = b"GNU.sparse"


class MemberKind(Enum):
    """The type of a member."""

    FILE = "a file"
    HARD_LINK = "a hard link"
    LINK = "a link"
    FOLDER = "a folder"
    PIPE = "a named pipe"
    DEVICE = "a device"
    OTHER = "of an unknown kind"


_MEMBER_KINDS = {
    **dict.fromkeys((b"0", b"\0", b"7"), MemberKind.FILE),
    b"1": MemberKind.HARD_LINK,
    b"2": MemberKind.LINK,
    b"5": MemberKind.FOLDER,
    b"6": MemberKind.PIPE,
    **dict.fromkeys((b"3", b"4"), MemberKind.DEVICE),
}
_KINDS_WITH_CONTENT = {MemberKind.FILE, MemberKind.OTHER}


@dataclass(frozen=True, slots=True)
class TarMember:
    """One member; ``size`` is the content's in bytes, ``link`` the target of a link. Names are unchecked."""

    name: bytes
    kind: MemberKind
    size: int
    executable: bool
    link: bytes


class TarHandler(Protocol):
    """Receives the members one by one."""

    def member(self, member: TarMember) -> bool:
        """Receive a member; return True to receive its content."""
        ...

    def content(self, chunk: bytes) -> None:
        """Receive the next piece of the last member's content; it is never empty."""
        ...

    def end(self) -> None:
        """Receive the end of the content."""
        ...


class DamagedTar(SourceError):
    """The stream is not a tar archive, or ends too early. Members read before it are valid."""


class TarTooLarge(DamagedTar):
    """The stream exceeds its limit. Members read before it are valid."""


class TarReader:
    """Parses a stream that is fed in pieces, and passes its members to ``handler``.

    Args:
        handler: receives the members.
        limit_bytes: limit on the stream.
    """

    def __init__(self, handler: TarHandler, limit_bytes: int = sys.maxsize) -> None:
        self._handler = handler
        self._limit = self._left = limit_bytes
        self._data = b""
        self._position = 0
        self.ended = False
        self._reading = self._archive()
        next(self._reading)

    def feed(self, data: bytes) -> None:
        """Parse the next piece; b"" marks the end of the stream. Data after the archive's end is ignored.

        Raises:
            TarTooLarge: the stream has, or will have, more than ``limit_bytes``.
            DamagedTar: the stream cannot be parsed further.
        """
        if self.ended:
            return
        self._left -= len(data)
        if self._left < 0:
            raise TarTooLarge(f"it holds more than {self._limit:,} bytes")
        self._data = self._data[self._position :] + data
        self._position = 0
        if not data:
            raise DamagedTar("the archive ends too early")
        try:
            self._reading.send(None)
        except StopIteration:
            self.ended = True

    def _read(self, size: int) -> Generator[None, None, bytes]:
        while len(self._data) - self._position < size:
            yield
        start, self._position = self._position, self._position + size
        return self._data[start : self._position]

    def _archive(self) -> Generator[None, None, None]:
        pending: dict[bytes, bytes] = {}
        while (header := (yield from self._read(_TAR_BLOCK))) != _END_BLOCK:
            # The checksum counts itself as eight spaces.
            if sum(header) - sum(header[_CHECKSUM]) + 8 * 0x20 != _number_field(header[_CHECKSUM]):
                raise DamagedTar("the archive is damaged: a header's checksum is wrong")
            kind, size = header[156:157], _number_field(header[124:136])
            if kind in {b"x", b"g", b"L", b"K"}:
                if size > _MAX_EXTENSION_BYTES:
                    raise DamagedTar(f"the archive has an extended header of {size:,} bytes")
                text = (yield from self._read(size + -size % _TAR_BLOCK))[:size]
                pending |= _extension(kind, text)
                continue
            if b"size" in pending:
                size = _decimal_size(pending[b"size"])
            stored = size if _MEMBER_KINDS.get(kind, MemberKind.OTHER) in _KINDS_WITH_CONTENT else 0
            yield from self._member(_member(header, kind, stored, pending), stored)
            pending = {}

    def _member(self, member: TarMember, stored: int) -> Generator[None, None, None]:
        if stored > self._left + len(self._data) - self._position:
            raise TarTooLarge(f"{printable_name(member.name)} has {stored:,} bytes")
        wanted = self._handler.member(member)
        left, padding = stored, -stored % _TAR_BLOCK
        while left:
            if self._position == len(self._data):
                yield
            end = min(self._position + left, len(self._data))
            left -= end - self._position
            # A file whose name makes it a folder may have content, which is skipped as by GNU tar.
            if wanted and member.size and end > self._position:
                self._handler.content(self._data[self._position : end])
            self._position = end
        if wanted:
            self._handler.end()
        yield from self._read(padding)


def _member(header: bytes, kind: bytes, stored: int, pending: dict[bytes, bytes]) -> TarMember:
    found = _MEMBER_KINDS.get(kind, MemberKind.OTHER)
    if _SPARSE_KEY in pending:
        found = MemberKind.OTHER
    name = pending.get(b"path") or _name(header)
    # Old archives mark a folder by its name alone.
    if found is MemberKind.FILE and name.endswith(b"/"):
        found = MemberKind.FOLDER
    link = pending.get(b"linkpath") or _text_field(header[157:257])
    size = stored if found in _KINDS_WITH_CONTENT else 0
    return TarMember(name, found, size, bool(_number_field(header[100:108]) & 0o100), link)


def _name(header: bytes) -> bytes:
    name, prefix = _text_field(header[:100]), _text_field(header[345:500])
    return b"%s/%s" % (prefix, name) if prefix and header[257:263] == b"ustar\0" else name


def _text_field(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number_field(field: bytes) -> int:
    """Parse a number: octal digits, or GNU's binary form for larger numbers."""
    if field[0] & _BINARY_FLAG:
        value = int.from_bytes(field, "big", signed=True) + (1 << (8 * len(field) - 1))
        if field[0] != _BINARY_FLAG:
            raise DamagedTar("the archive is damaged: a number is negative")
        return value
    digits = _text_field(field).strip()
    if digits.strip(b"01234567"):
        raise DamagedTar(f"the archive is damaged: {digits!r} is not a number")
    return int(digits or b"0", 8)


def _decimal_size(text: bytes) -> int:
    if not text.isdigit() or len(text) > _LENGTH_DIGITS:
        raise DamagedTar("the archive is damaged: a size is not a number")
    return int(text)


def _extension(kind: bytes, text: bytes) -> dict[bytes, bytes]:
    if kind == b"L":
        return {b"path": _text_field(text)}
    if kind == b"K":
        return {b"linkpath": _text_field(text)}
    # Global headers ("g") contain nothing that is used here.
    return _pax_records(text) if kind == b"x" else {}


def _pax_records(text: bytes) -> dict[bytes, bytes]:
    """Parse pax records (length, space, key=value, newline) and return those that are used."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(text):
        space = text.find(b" ", at, at + _LENGTH_DIGITS + 1)
        end = at + _decimal_size(text[at:space])
        key, equals, value = text[space + 1 : end].partition(b"=")
        if space < 0 or not equals or not value.endswith(b"\n") or end > len(text):
            raise DamagedTar("the archive is damaged: an extended header is invalid")
        if key in _PAX_KEYS:
            found[key] = value[:-1]
        elif key.startswith(_SPARSE_KEY):
            found[_SPARSE_KEY] = b""
        at = end
    return found
