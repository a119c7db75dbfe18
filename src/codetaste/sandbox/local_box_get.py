"""What is in a local box as a tar archive, read from outside: never through a link, whatever is done inside.

Everything is reached by descriptors from the place down. A file that shrinks while it is read is filled up
with zeros; sockets are left out, and so is what lies in more than ``_DEEPEST`` folders.
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

from codetaste.errors import SandboxError
from codetaste.sandbox.beside import beside
from codetaste.sandbox.box import GID, UID
from codetaste.sandbox.crossing import in_thread, on_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from typing import IO

    from anyio import CapacityLimiter
    from anyio.streams.memory import MemoryObjectSendStream

_BLOCK = 256 * 1024
_DEEPEST = 128
_ENTERED = 0o500
"""The mode of a folder whose owner may list it and reach what is in it."""
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@asynccontextmanager
async def packed(
    path: str, places: Mapping[str, Path], at_once: CapacityLimiter
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Read ``path`` as ``Box.get`` promises; ``places`` are the folders out here of paths inside.

    Its thread counts for ``at_once`` alone: whoever reads may need threads as well.

    Raises:
        SandboxError: it is not there, or cannot be read.
    """
    try:
        top = await to_thread.run_sync(_found, path, places)
    except OSError as fault:
        raise SandboxError(f"{path} cannot be read from the box: {fault.strerror}") from fault
    sending, receiving = anyio.create_memory_object_stream[bytes](2)
    reading = _Reading(sending, at_once)
    try:
        async with beside() as tasks, receiving:
            tasks.start_soon(reading.run, top)
            yield reading.chunks(receiving)
    finally:
        os.close(top.folder)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something by its name in an open folder, and its name in the archive."""

    folder: int
    name: str
    shown: str


class _Reading:
    """A thread that writes the archive, as fast as it is read."""

    def __init__(self, sending: MemoryObjectSendStream[bytes], at_once: CapacityLimiter) -> None:
        self._sending, self._at_once = sending, at_once
        self._problem = ""

    async def run(self, top: _Entry) -> None:
        with self._sending:
            try:
                await in_thread(partial(_pack, top, self), self._at_once)
            except OSError as fault:
                self._problem = f"the box cannot be read: {fault}"
            except anyio.BrokenResourceError:
                pass  # nobody wants the rest

    def write(self, chunk: bytes) -> int:
        """Hand on what the thread has made."""
        on_loop(partial(self._sending.send, bytes(chunk)))
        return len(chunk)

    async def chunks(self, receiving: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in receiving:
            yield chunk
        if self._problem:
            raise SandboxError(self._problem)


def _found(path: str, places: Mapping[str, Path]) -> _Entry:
    """Return where ``path`` is, its folder open."""
    wanted = PurePosixPath(path)
    place = next((one for one in places if wanted.is_relative_to(one)), "")
    if not place or ".." in wanted.parts:
        raise SandboxError(f"{path} lies in none of the box's writable places: {', '.join(places)}")
    parts = wanted.relative_to(place).parts
    if not parts:
        return _Entry(_folder(str(places[place].parent), None), places[place].name, wanted.name)
    here = _folder(str(places[place]), None)
    try:
        for name in parts[:-1]:
            below = _folder(name, here)
            os.close(here)
            here = below
        os.stat(parts[-1], dir_fd=here, follow_symlinks=False)
    except OSError:
        os.close(here)
        raise
    return _Entry(here, parts[-1], parts[-1])


def _pack(top: _Entry, out: _Reading) -> None:
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
                    _add(archive, _Entry(last.opened, name, f"{last.shown}/{name}"), folders)
        finally:
            for folder in folders:
                folder.close()


@dataclass(frozen=True, slots=True)
class _Folder:
    """An open folder whose content is being added; ``locked`` is its mode where that lets nobody in."""

    opened: int
    names: Iterator[str]
    shown: str
    locked: int | None

    def close(self) -> None:
        """Leave it as it was."""
        if self.locked is not None:
            os.fchmod(self.opened, self.locked)
        os.close(self.opened)


def _add(archive: tarfile.TarFile, entry: _Entry, folders: list[_Folder]) -> None:
    """Add ``entry``; a folder's content is left for later. What has gone meanwhile is left out."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        seen = os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
        if stat.S_ISDIR(seen.st_mode):
            archive.addfile(_header(entry, seen, tarfile.DIRTYPE))
            if len(folders) < _DEEPEST:
                folders.append(_entered(entry))
        elif stat.S_ISREG(seen.st_mode):
            _add_file(archive, entry)
        elif stat.S_ISLNK(seen.st_mode):
            header = _header(entry, seen, tarfile.SYMTYPE)
            header.linkname = os.readlink(entry.name, dir_fd=entry.folder)
            archive.addfile(header)
        elif stat.S_ISFIFO(seen.st_mode):
            archive.addfile(_header(entry, seen, tarfile.FIFOTYPE))


def _entered(entry: _Entry) -> _Folder:
    opened = _folder(entry.name, entry.folder)
    mode = stat.S_IMODE(os.fstat(opened).st_mode)
    locked = os.geteuid() != 0 and mode & _ENTERED != _ENTERED
    if locked:
        # What is in it can be reached only as long as we are let in.
        os.fchmod(opened, mode | 0o700)
    names = iter(sorted(os.listdir(opened)))  # noqa: PTH208 (of a descriptor)
    return _Folder(opened, names, entry.shown, mode if locked else None)


def _add_file(archive: tarfile.TarFile, entry: _Entry) -> None:
    with os.fdopen(_opened(entry.name, entry.folder, _PLAIN), "rb", buffering=0) as file:
        seen = os.fstat(file.fileno())
        if stat.S_ISREG(seen.st_mode):
            header = _header(entry, seen, tarfile.REGTYPE)
            header.size = seen.st_size
            archive.addfile(header, cast("IO[bytes]", _Filled(file)))


class _Filled:
    """A file that never ends too soon."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        return piece + bytes(size - len(piece))


def _header(entry: _Entry, seen: os.stat_result, kind: bytes) -> tarfile.TarInfo:
    header = tarfile.TarInfo(entry.shown)
    header.type, header.mode, header.mtime = kind, stat.S_IMODE(seen.st_mode), int(seen.st_mtime)
    header.uid, header.gid = UID, GID
    return header


def _folder(name: str, within: int | None) -> int:
    return _opened(name, within, _PLAIN | os.O_DIRECTORY)


def _opened(name: str, within: int | None, flags: int) -> int:
    """Open what may be locked: it is unlocked for a moment, for its owner is us where it is not root."""
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
