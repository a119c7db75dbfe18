"""Streaming reader of an untrusted tar archive, with little memory and without writing to disk.

It reads headers of ustar, GNU (long names) and pax, as container engines write them. Names are not checked;
that and the use of the members is up to the caller.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from codetaste.core.text import printable_name
from codetaste.errors import SandboxError, SourceError

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

    def __init__(self, handler: TarHandler, limit_bytes: int) -> None:
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
            _check_header(header)
            kind, size = header[156:157], _number_field(header[124:136])
            if kind in {b"x", b"g", b"L", b"K"}:
                if size > _MAX_EXTENSION_BYTES:
                    raise DamagedTar(f"the archive has an extended header of {size:,} bytes")
                text = (yield from self._read(_padded(size)))[:size]
                pending |= _extension(kind, text)
                continue
            if b"size" in pending:
                size = _decimal_size(pending[b"size"])
            yield from self._member(_member(header, kind, size, pending))
            pending = {}

    def _member(self, member: TarMember) -> Generator[None, None, None]:
        if member.size > self._left + len(self._data) - self._position:
            raise TarTooLarge(f"{printable_name(member.name)} has {member.size:,} bytes")
        wanted = self._handler.member(member)
        left, padding = member.size, -member.size % _TAR_BLOCK
        while left:
            if self._position == len(self._data):
                yield
            end = min(self._position + left, len(self._data))
            left -= end - self._position
            if wanted and end > self._position:
                self._handler.content(self._data[self._position : end])
            self._position = end
        if wanted:
            self._handler.end()
        yield from self._read(padding)


def _member(header: bytes, kind: bytes, size: int, pending: dict[bytes, bytes]) -> TarMember:
    found = _MEMBER_KINDS.get(kind, MemberKind.OTHER)
    if _SPARSE_KEY in pending:
        found = MemberKind.OTHER
    name = pending.get(b"path") or _name(header)
    # Old archives mark a folder by its name alone.
    if found is MemberKind.FILE and name.endswith(b"/"):
        found = MemberKind.FOLDER
    link = pending.get(b"linkpath") or _text_field(header[157:257])
    has_content = found in {MemberKind.FILE, MemberKind.OTHER}
    return TarMember(
        name, found, size if has_content else 0, bool(_number_field(header[100:108]) & 0o100), link
    )


def _name(header: bytes) -> bytes:
    name, prefix = _text_field(header[:100]), _text_field(header[345:500])
    return b"%s/%s" % (prefix, name) if prefix and header[257:263] == b"ustar\0" else name


def _text_field(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _padded(size: int) -> int:
    return size + -size % _TAR_BLOCK


def _check_header(header: bytes) -> None:
    # The checksum counts itself as eight spaces.
    found = sum(header) - sum(header[_CHECKSUM]) + 8 * 0x20
    if found != _number_field(header[_CHECKSUM]):
        raise DamagedTar("the archive is damaged: a header's checksum is wrong")


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


_BLOCK_BYTES = 512

_MAX_NAME_BYTES = 1024**2
"""Of a long name; Linux allows 4096."""


class TarScanner:
    """Scans an archive that is fed piece by piece."""

    def __init__(self) -> None:
        self.complete = False
        self._buffer = bytearray()
        self._skip = 0
        self._kind: bytes | None = None
        self._name: str | None = None
        self._size: int | None = None

    def feed(self, piece: bytes) -> list[str]:
        """Return the names of the members whose headers are complete with this piece.

        Raises:
            SandboxError: it is not a tar archive.
        """
        names: list[str] = []
        at = 0
        while at < len(piece) and not self.complete:
            if self._skip and self._kind is None:
                step = min(self._skip, len(piece) - at)
                self._skip -= step
                at += step
                continue
            step = min((self._skip or _BLOCK_BYTES) - len(self._buffer), len(piece) - at)
            self._buffer += piece[at : at + step]
            at += step
            if len(self._buffer) == (self._skip or _BLOCK_BYTES):
                block = bytes(self._buffer)
                self._buffer.clear()
                names += self._extended_header(block) if self._kind else self._header(block)
        return names

    def finish(self) -> None:
        """Check that the archive is complete.

        Raises:
            SandboxError: its end is missing.
        """
        if not self.complete:
            raise SandboxError("an archive is incomplete")

    def _header(self, block: bytes) -> list[str]:
        if not any(block):
            self.complete = True
            return []
        try:
            member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise SandboxError(f"an archive cannot be read: {error}") from error
        extended = member.type in {
            tarfile.GNUTYPE_LONGNAME,
            tarfile.GNUTYPE_LONGLINK,
            tarfile.XHDTYPE,
            tarfile.XGLTYPE,
        }
        size = member.size if extended or self._size is None else self._size
        if extended and size > _MAX_NAME_BYTES:
            raise SandboxError(f"an archive has a name of {size} bytes")
        # A link may have the size of its target, whose content does not follow.
        self._skip = -(-size // _BLOCK_BYTES) * _BLOCK_BYTES if extended or member.isreg() else 0
        if extended:
            self._kind = member.type if self._skip else None
            return []
        name, self._name, self._size = self._name or member.name, None, None
        return [name]

    def _extended_header(self, content: bytes) -> list[str]:
        """Read an extended header, which describes the member after it."""
        if self._kind == tarfile.GNUTYPE_LONGNAME:
            self._name = content.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        elif self._kind == tarfile.XHDTYPE:
            records = _all_pax_records(content)
            if b"path" in records:
                self._name = records[b"path"].decode("utf-8", "surrogateescape")
            if b"size" in records:
                self._size = int(records[b"size"])
        self._kind, self._skip = None, 0
        return []


def _all_pax_records(content: bytes) -> dict[bytes, bytes]:
    """Parse pax records of a length, a key and a value; the value may contain any bytes."""
    records = {}
    while content[:1].isdigit():
        length, _, rest = content.partition(b" ")
        key, _, value = rest[: int(length) - len(length) - 1].rstrip(b"\n").partition(b"=")
        records[key] = value
        content = content[int(length) :]
    return records
