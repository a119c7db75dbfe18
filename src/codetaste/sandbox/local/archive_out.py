"""A folder of a local sandbox as a tar archive, read from the host without following links.

Every path is opened by descriptors from its writable folder down. A file that shrinks while it is read is
padded with zeros; sockets are left out, and so is everything deeper than ``_DEEPEST`` folders.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tarfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

import anyio
from anyio import to_thread

from codetaste.core.concurrency import background_tasks
from codetaste.errors import SandboxError
from codetaste.sandbox.base import GID, UID
from codetaste.sandbox.local.threads import call_on_loop, run_in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from typing import IO

    from anyio import CapacityLimiter
    from anyio.streams.memory import MemoryObjectSendStream

_BLOCK = 256 * 1024
_DEEPEST = 128
_ACCESSIBLE = 0o500
"""The mode of a folder whose owner may list it and reach what is in it."""
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@asynccontextmanager
async def read_archive(
    path: str, roots: Mapping[str, Path], at_once: CapacityLimiter
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Read ``path`` as ``Sandbox.get`` describes; ``roots`` maps writable folders to those of the host.

    Its thread counts only for ``at_once``: the reader may need threads as well.

    Raises:
        SandboxError: ``path`` does not exist, or cannot be read.
    """
    try:
        top = await to_thread.run_sync(_locate, path, roots)
    except OSError as fault:
        raise SandboxError(f"{path} cannot be read from the sandbox: {fault.strerror}") from fault
    sending, receiving = anyio.create_memory_object_stream[bytes](2)
    writer = _ArchiveWriter(sending, at_once)
    try:
        async with background_tasks() as tasks, receiving:
            tasks.start_soon(writer.run, top)
            yield writer.chunks(receiving)
    finally:
        os.close(top.folder)


@dataclass(frozen=True, slots=True)
class _ArchiveEntry:
    """A name in an open folder, and its name in the archive."""

    folder: int
    name: str
    shown: str


class _ArchiveWriter:
    """A thread that writes the archive, as fast as it is read."""

    def __init__(self, sending: MemoryObjectSendStream[bytes], at_once: CapacityLimiter) -> None:
        self._sending, self._at_once = sending, at_once
        self._problem = ""

    async def run(self, top: _ArchiveEntry) -> None:
        with self._sending:
            try:
                await run_in_thread(partial(_pack, top, self), self._at_once)
            except OSError as fault:
                self._problem = f"the sandbox cannot be read: {fault}"
            except anyio.BrokenResourceError:
                pass  # the reader has stopped

    def write(self, chunk: bytes) -> int:
        call_on_loop(partial(self._sending.send, bytes(chunk)))
        return len(chunk)

    async def chunks(self, receiving: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in receiving:
            yield chunk
        if self._problem:
            raise SandboxError(self._problem)


def _locate(path: str, roots: Mapping[str, Path]) -> _ArchiveEntry:
    """Return where ``path`` is, with its folder open."""
    wanted = PurePosixPath(path)
    root = next((one for one in roots if wanted.is_relative_to(one)), "")
    if not root or ".." in wanted.parts:
        raise SandboxError(f"{path} lies in none of the sandbox's writable folders: {', '.join(roots)}")
    parts = wanted.relative_to(root).parts
    if not parts:
        return _ArchiveEntry(_open_folder(str(roots[root].parent), None), roots[root].name, wanted.name)
    here = _open_folder(str(roots[root]), None)
    try:
        for name in parts[:-1]:
            below = _open_folder(name, here)
            os.close(here)
            here = below
        os.stat(parts[-1], dir_fd=here, follow_symlinks=False)
    except OSError:
        os.close(here)
        raise
    return _ArchiveEntry(here, parts[-1], parts[-1])


def _pack(top: _ArchiveEntry, out: _ArchiveWriter) -> None:
    sink = cast("IO[bytes]", out)
    with tarfile.open(
        fileobj=sink,
        mode="w|",
        bufsize=_BLOCK,
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
    ) as archive:
        folders: list[_Folder] = []
        try:
            _add(archive, top, folders)
            while folders:
                name = next(folders[-1].names, None)
                if name is None:
                    folders.pop().close()
                else:
                    last = folders[-1]
                    _add(archive, _ArchiveEntry(last.opened, name, f"{last.shown}/{name}"), folders)
        finally:
            for folder in folders:
                folder.close()


@dataclass(frozen=True, slots=True)
class _Folder:
    """An open folder being added; ``locked`` is its mode if that denies access to its owner."""

    opened: int
    names: Iterator[str]
    shown: str
    locked: int | None

    def close(self) -> None:
        if self.locked is not None:
            os.fchmod(self.opened, self.locked)
        os.close(self.opened)


def _add(archive: tarfile.TarFile, entry: _ArchiveEntry, folders: list[_Folder]) -> None:
    """Add ``entry``, but not what is in a folder. An entry that was removed meanwhile is left out."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        seen = os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
        if stat.S_ISDIR(seen.st_mode):
            archive.addfile(_header(entry, seen, tarfile.DIRTYPE))
            if len(folders) < _DEEPEST:
                folders.append(_enter_folder(entry))
        elif stat.S_ISREG(seen.st_mode):
            _add_file(archive, entry)
        elif stat.S_ISLNK(seen.st_mode):
            header = _header(entry, seen, tarfile.SYMTYPE)
            header.linkname = os.readlink(entry.name, dir_fd=entry.folder)
            archive.addfile(header)
        elif stat.S_ISFIFO(seen.st_mode):
            archive.addfile(_header(entry, seen, tarfile.FIFOTYPE))


def _enter_folder(entry: _ArchiveEntry) -> _Folder:
    opened = _open_folder(entry.name, entry.folder)
    mode = stat.S_IMODE(os.fstat(opened).st_mode)
    locked = os.geteuid() != 0 and mode & _ACCESSIBLE != _ACCESSIBLE
    if locked:
        # Its content is accessible only while its owner may enter it.
        os.fchmod(opened, mode | 0o700)
    names = iter(sorted(os.listdir(opened)))  # noqa: PTH208 (of a descriptor)
    return _Folder(opened, names, entry.shown, mode if locked else None)


def _add_file(archive: tarfile.TarFile, entry: _ArchiveEntry) -> None:
    with os.fdopen(_open(entry.name, entry.folder, _OPEN_FLAGS), "rb", buffering=0) as file:
        seen = os.fstat(file.fileno())
        if stat.S_ISREG(seen.st_mode):
            header = _header(entry, seen, tarfile.REGTYPE)
            header.size = seen.st_size
            archive.addfile(header, cast("IO[bytes]", _PaddedFile(file)))


class _PaddedFile:
    """A file padded with zeros to the requested size."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        return piece + bytes(size - len(piece))


def _header(entry: _ArchiveEntry, seen: os.stat_result, kind: bytes) -> tarfile.TarInfo:
    header = tarfile.TarInfo(entry.shown)
    header.type, header.mode, header.mtime = kind, stat.S_IMODE(seen.st_mode), int(seen.st_mtime)
    header.uid, header.gid = UID, GID
    return header


def _open_folder(name: str, within: int | None) -> int:
    return _open(name, within, _OPEN_FLAGS | os.O_DIRECTORY)


def _open(name: str, within: int | None, flags: int) -> int:
    """Open a file or folder; a mode that denies access to its owner, this user, is changed for a moment."""
    try:
        return os.open(name, flags, dir_fd=within)
    except PermissionError:
        anchor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
        try:
            itself, mode = Path(f"/proc/self/fd/{anchor}"), stat.S_IMODE(os.fstat(anchor).st_mode)
            itself.chmod(mode | 0o700)
            try:
                return os.open(itself, flags & ~os.O_NOFOLLOW)
            finally:
                itself.chmod(mode)
        finally:
            os.close(anchor)
