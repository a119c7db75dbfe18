"""Safe unpacking of untrusted archives.

Tar (plain, gzip, bzip2, xz) and zip are read member by member with Python's readers. Which kinds of members
are allowed and where they are written is decided here and in ``tree/writer.py``, independently of the Python
version (3.11.2, the one of Debian 12, has no extraction filters).
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, cast

from codetaste.core.files import open_regular_file, storage_error
from codetaste.core.text import printable_name
from codetaste.errors import SourceError, UnsafeArchive
from codetaste.source.tree.writer import TreeLimits, TreeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_CHUNK_BYTES = 1 << 20
_BAD_DATA = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    LookupError,  # raised by Python's readers for an empty header
    NotImplementedError,  # an unsupported compression method in a zip
    RecursionError,  # a chain of extended headers
)
_ENCRYPTED = 0x1


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of an unpacked archive. Sizes in bytes.

    ``ratio`` limits the unpacked size relative to the packed one, but never below ``ratio_floor_bytes``.
    """

    tree: TreeLimits = field(default_factory=lambda: TreeLimits(members=100_000, total_bytes=2 * 1024**3))
    ratio: int = 200
    ratio_floor_bytes: int = 64 * 1024**2


def unpack_archive(
    archive: Path,
    into: Path,
    *,
    label: str = "",
    limits: ArchiveLimits | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Unpack ``archive`` to the new folder ``into``; a single top-level folder is stripped.

    Args:
        archive: a tar (plain, gzip, bzip2, xz) or zip file, recognised by its content.
        into: must not exist; it appears when everything is unpacked.
        label: name of the archive in messages; its file name by default.
        limits: a larger archive is rejected.
        check: called regularly; it raises to stop the work.

    Raises:
        UnsafeArchive: a member must not be unpacked; the message names it.
        SourceError: the file is damaged, or not an archive.
        StorageFull: no space left.
    """
    label = label or archive.name
    limits = limits or ArchiveLimits()
    stage = into.with_name(f"{into.name}.unpacking")
    try:
        stage.mkdir(parents=True)
        writer = TreeWriter(stage, label, limits.tree, check)
        _read(archive, writer, limits, label)
        tops = writer.top_entries()
        top = next(iter(tops)) if len(tops) == 1 else ()
        top = top if writer.is_folder(top) else ()
        writer.finish(top, contained=True)
        stage.joinpath(*map(os.fsdecode, top)).rename(into)
    except _BAD_DATA as error:
        raise SourceError(f"{label}: the archive is damaged: {error or type(error).__name__}") from error
    except OSError as error:
        raise storage_error(error, label, SourceError) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _read(archive: Path, writer: TreeWriter, limits: ArchiveLimits, label: str) -> None:
    with open_regular_file(archive) as file:
        start = file.read(6)
        file.seek(0)
        packed = os.fstat(file.fileno()).st_size
        bound = max(limits.ratio_floor_bytes, limits.ratio * packed)
        if start.startswith(b"PK"):
            _read_zip(file, writer, min(bound, limits.tree.total_bytes), limits)
            return
        # Headers and padding count too: this is the limit of all decompressed bytes.
        overhead = 2048 * limits.tree.members
        stream = _Bounded(_decompressed(file, start), min(bound, limits.tree.total_bytes + overhead), label)
        _read_tar(stream, writer)


def _decompressed(file: IO[bytes], start: bytes) -> IO[bytes]:
    if start.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.open(file))
    if start.startswith(b"BZh"):
        return cast("IO[bytes]", bz2.open(file))
    if start.startswith(b"\xfd7zXZ\0"):
        return cast("IO[bytes]", lzma.open(file))
    return file


class _Bounded:
    """A stream that raises when more than ``bound`` bytes are read."""

    def __init__(self, stream: IO[bytes], bound: int, label: str) -> None:
        self._stream = stream
        self._bound = self._left = bound
        self._label = label

    def read(self, size: int) -> bytes:
        chunk = self._stream.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise UnsafeArchive(
                f"{self._label}: unpacks to more than {self._bound:,} bytes, too many for its size"
            )
        return chunk


def _read_tar(stream: _Bounded, writer: TreeWriter) -> None:
    with tarfile.open(
        fileobj=cast("IO[bytes]", stream),  # in stream mode only read() is called
        mode="r|",
        encoding="utf-8",
        errors="surrogateescape",
    ) as tar:
        for member in tar:
            name = _encoded_name(member.name)
            if member.isdir():
                writer.add_folder(name)
            elif member.issym():
                writer.add_link(name, _encoded_name(member.linkname))
            elif member.islnk():
                writer.add_copy(name, _encoded_name(member.linkname))
            elif member.isreg() and not member.issparse():
                writer.add_file(name, _tar_chunks(tar, member), executable=bool(member.mode & 0o100))
            else:
                raise writer.member_error(name, f"is {_kind(member)}")


def _kind(member: tarfile.TarInfo) -> str:
    if member.issparse():
        return "a sparse file"
    kinds = {tarfile.CHRTYPE: "a device", tarfile.BLKTYPE: "a device", tarfile.FIFOTYPE: "a named pipe"}
    return kinds.get(member.type, f"of the unknown kind {member.type!r}")


def _encoded_name(name: str) -> bytes:
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate in an extended header
        return name.encode("utf-8", "backslashreplace")


def _tar_chunks(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    content = tar.extractfile(member)
    left = member.size
    while content is not None and left:
        chunk = content.read(min(_CHUNK_BYTES, left))
        if not chunk:
            raise EOFError(f"it ends inside {printable_name(_encoded_name(member.name))}")
        left -= len(chunk)
        yield chunk


def _read_zip(file: IO[bytes], writer: TreeWriter, bound: int, limits: ArchiveLimits) -> None:
    with zipfile.ZipFile(file) as packed:
        members = packed.infolist()
        if len(members) > limits.tree.members:
            raise writer.member_error(
                _encoded_name(members[-1].filename), f"is one of {len(members):,} members, too many"
            )
        total = 0
        for member in members:
            name = _encoded_name(member.filename)
            total += member.file_size
            if total > bound:
                raise writer.member_error(
                    name, f"makes it unpack to more than {bound:,} bytes, too many for its size"
                )
            _read_zip_member(packed, member, name, writer)


def _read_zip_member(
    packed: zipfile.ZipFile, member: zipfile.ZipInfo, name: bytes, writer: TreeWriter
) -> None:
    mode = member.external_attr >> 16
    if member.flag_bits & _ENCRYPTED:
        raise writer.member_error(name, "is encrypted")
    if name.endswith(b"/"):
        writer.add_folder(name)
    elif stat.S_ISLNK(mode):
        with packed.open(member) as content:
            writer.add_link(name, content.read(_CHUNK_BYTES))
    elif stat.S_IFMT(mode) in {0, stat.S_IFREG}:
        with packed.open(member) as content:
            chunks = iter(lambda: content.read(_CHUNK_BYTES), b"")
            writer.add_file(name, chunks, executable=bool(mode & 0o100))
    else:
        raise writer.member_error(name, "is a device or a named pipe")
