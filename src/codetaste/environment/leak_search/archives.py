"""Archives and compressed files inside an image: their members, inflated within limits.

Known are zip (wheels, jars, npm's and Go's packages), tar, gzip, bzip2 and xz. Other kinds are named in the
report as not searched.
"""

from __future__ import annotations

import bz2
import errno
import lzma
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Protocol

from codetaste.core.files import storage_error
from codetaste.environment.leak_search.content import TooLarge, store
from codetaste.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from codetaste.environment.leak_search.content import Content

MAX_MEMBER_BYTES = 1024**3
MAX_INFLATED_BYTES = 4 * 1024**3
"""Of all members of one file of the image, of archives in it, too."""
MAX_MEMBERS = 500_000
MAX_DEPTH = 4
_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0"
_ZIP, _ZIP_END = b"PK\x03\x04", b"PK\x05\x06"
_ZIP_TAIL = 66_000
"""A zip's end is within so many last bytes."""
_UNKNOWN = {
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a rar archive",
    b"\xed\xab\xee\xdb": "an rpm package",
    b"!<arch>\ndebian-binary": "a deb package",
    b"hsqs": "a squashfs image",
    b"\x04\x22\x4d\x18": "compressed with lz4",
}
_ENCRYPTED = 1
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    struct.error,
)
"""What the readers of the standard library raise for damaged archives, besides OSError."""
_OWN_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
"""Errors of files of the search, which say nothing of the archive."""
_TAR_MAGIC = b"ustar"


class Unsearchable(Exception):
    """A file, or a part of it, cannot be searched; the text is the reason."""


@dataclass(slots=True)
class Allowance:
    """How much may still be inflated from one file of the image."""

    check: Callable[[], None]
    bytes_left: int = MAX_INFLATED_BYTES
    members_left: int = MAX_MEMBERS
    problems: list[tuple[str, str]] = field(default_factory=list)
    """Members that cannot be searched, and why."""

    def store(self, stream: _Readable) -> Content:
        """Store a member.

        Raises:
            Unsearchable: a limit is exceeded.
        """
        self.members_left -= 1
        if self.members_left < 0:
            raise Unsearchable(f"an archive with more than {MAX_MEMBERS:,} members")
        try:
            content = store(stream.read, min(MAX_MEMBER_BYTES, self.bytes_left), self.check)
        except TooLarge:
            if self.bytes_left < MAX_MEMBER_BYTES:
                raise Unsearchable(f"inflates to more than {MAX_INFLATED_BYTES:,} bytes") from None
            raise Unsearchable(f"a member has more than {MAX_MEMBER_BYTES:,} bytes") from None
        self.bytes_left -= content.size
        return content


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def members(content: Content, allowance: Allowance) -> Iterator[tuple[str, Content]]:
    """Yield name and content of each member of an archive; nothing if it is none. The caller closes them.

    Raises:
        Unsearchable: it is damaged, of a kind that cannot be read, or too large; members before that are
            yielded.
        StorageFull: no space for what is extracted.
    """
    head = content.head
    for magic, kind in _UNKNOWN.items():
        if head.startswith(magic):
            raise Unsearchable(kind)
    try:
        yield from _members(content, allowance)
    except _DAMAGED as error:
        raise Unsearchable("a damaged archive") from error
    except OSError as error:
        if error.errno in _OWN_FAULTS:
            raise storage_error(error, "a temporary file", SandboxError) from error
        raise Unsearchable("a damaged archive") from error


def _members(content: Content, allowance: Allowance) -> Iterator[tuple[str, Content]]:
    head = content.head
    if head.startswith(_GZIP):
        yield (
            "",
            allowance.store(_Inflated(content.open(), lambda: zlib.decompressobj(zlib.MAX_WBITS | 16))),
        )
    elif head.startswith(_BZIP2) and head[4:10] == b"1AY&SY":
        yield "", allowance.store(_Inflated(content.open(), bz2.BZ2Decompressor))
    elif head.startswith(_XZ):
        yield "", allowance.store(_Inflated(content.open(), lzma.LZMADecompressor))
    elif head[257:262] == _TAR_MAGIC:
        yield from _tar_members(content.open(), allowance)
    elif _is_zip(content):
        yield from _zip_members(content.open(), allowance)


def _is_zip(content: Content) -> bool:
    """Whether it is a zip archive; caches of downloads have bytes of their own before it and after it."""
    if content.size < 22:  # noqa: PLR2004 - the smallest one
        return False
    if content.head.startswith(_ZIP):
        return True
    if not (content.head.startswith(b"cc=") or _ZIP in content.head):
        return False
    file = content.open()
    file.seek(max(0, content.size - _ZIP_TAIL))
    return _ZIP_END in file.read(_ZIP_TAIL)


def _zip_members(file: IO[bytes], allowance: Allowance) -> Iterator[tuple[str, Content]]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            if info.flag_bits & _ENCRYPTED:
                allowance.problems.append((info.filename, "an encrypted member"))
                continue
            try:
                with archive.open(info) as stream:
                    content = allowance.store(stream)
            except NotImplementedError:
                allowance.problems.append((info.filename, "a member with an unknown compression"))
                continue
            yield info.filename, content


def _tar_members(file: IO[bytes], allowance: Allowance) -> Iterator[tuple[str, Content]]:
    with tarfile.open(fileobj=file, mode="r|", errorlevel=0) as archive:
        for info in archive:
            allowance.check()
            stream = archive.extractfile(info) if info.isreg() else None
            if stream is not None:
                yield info.name, allowance.store(stream)


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /, max_length: int = ...) -> bytes: ...


@dataclass(slots=True)
class _Inflated:
    """Reads a compressed file of several streams, in bounded steps."""

    file: IO[bytes]
    make: Callable[[], _Decompressor]
    _stream: _Decompressor | None = None
    _pending: bytes = b""

    def read(self, size: int) -> bytes:
        while True:
            if self._stream is None:
                self._pending = self._pending or self.file.read(size)
                if not self._pending.strip(b"\0"):
                    return b""
                self._stream = self.make()
            if not self._pending and not self._needs_no_input():
                self._pending = self.file.read(size)
                if not self._pending:
                    raise EOFError
            data, self._pending = self._pending, b""
            piece = self._stream.decompress(data, size)
            # zlib returns what it has not consumed, the others keep it.
            self._pending = getattr(self._stream, "unconsumed_tail", b"")
            if self._stream.eof:
                self._pending, self._stream = self._stream.unused_data, None
            if piece:
                return piece

    def _needs_no_input(self) -> bool:
        return self._stream is not None and not getattr(self._stream, "needs_input", True)
