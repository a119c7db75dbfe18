"""Archives unpacked into a local box, from outside: never through a link that something inside has made."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tarfile
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, cast

from codetaste.errors import SandboxError
from codetaste.sandbox.crossing import in_thread, on_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping
    from pathlib import Path
    from typing import IO

    from anyio import CapacityLimiter

    from codetaste.sandbox.local_box_places import Owner

_BLOCK = 256 * 1024
_READ = 16 * 1024
"""At once of an archive: tarfile moves all that it has read and not used at every header."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


async def unpack(
    archive: AsyncIterable[bytes] | bytes,
    places: Mapping[str, Path],
    owner: Owner,
    at_once: CapacityLimiter,
) -> None:
    """Unpack a tar archive of ours; ``places`` are the folders out here of paths inside.

    Its thread counts for ``at_once`` alone: where the archive comes from, threads may be needed as well.

    Raises:
        SandboxError: it is damaged, a member lies elsewhere, or cannot be written.
    """
    chunks = _whole(archive) if isinstance(archive, bytes) else aiter(archive)
    source = _Pulled(chunks)
    try:
        await in_thread(partial(_unpack, source, places, owner), at_once)
    except (tarfile.TarError, EOFError) as fault:
        raise SandboxError(f"an archive for the box is damaged: {fault}") from fault
    except OSError as fault:
        if source.fault is fault:
            raise
        raise SandboxError(f"an archive for the box cannot be unpacked: {fault}") from fault


async def _whole(archive: bytes) -> AsyncIterator[bytes]:
    yield archive


class _Pulled:
    """What a thread reads of chunks that come on the event loop."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._held = memoryview(b"")
        self.fault: BaseException | None = None

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        while not self._held:
            chunk = on_loop(self._next)
            if chunk is None:
                return b""
            self._held = memoryview(chunk)
        piece, self._held = self._held[:size], self._held[size:]
        return bytes(piece)

    async def _next(self) -> bytes | None:
        try:
            return await anext(self._chunks, None)
        except BaseException as fault:
            self.fault = fault
            raise


def _unpack(source: _Pulled, places: Mapping[str, Path], owner: Owner) -> None:
    file = cast("IO[bytes]", source)
    with (
        tarfile.open(fileobj=file, mode="r|", bufsize=_READ) as archive,
        closing(_Tree(places, owner)) as tree,
    ):
        for member in archive:
            tree.add(archive, member)


class _Tree:
    """The places, written to by descriptors; the folder of the last member stays open for the next."""

    def __init__(self, places: Mapping[str, Path], owner: Owner) -> None:
        self._places, self._owner = places, owner
        self._path: tuple[str, ...] | None = None
        self._open = -1

    def close(self) -> None:
        if self._open >= 0:
            os.close(self._open)
        self._open, self._path = -1, None

    def add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        place, parts = self._located(member.name)
        if not parts:
            if place and member.isdir():
                self._settled(place, member)
            return
        self._enter(place, parts[:-1])
        self._make(archive, member, parts[-1])

    def _located(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return the place in which ``name`` lies and the rest of it; no place for what is above them all."""
        parts = tuple(part for part in name.split("/") if part not in {"", "."})
        path = "/" + "/".join(parts)
        for place in self._places:
            if path == place or path.startswith(place + "/"):
                rest = parts[place.count("/") :]
                if ".." not in rest:
                    return place, rest
            if place.startswith(path.rstrip("/") + "/"):
                return "", ()
        raise SandboxError(
            f"an archive for the box has {name!r}, which lies in none of {', '.join(self._places)}"
        )

    def _settled(self, place: str, member: tarfile.TarInfo) -> None:
        self._enter(place, ())
        os.fchmod(self._open, member.mode & 0o777)

    def _enter(self, place: str, folders: tuple[str, ...]) -> None:
        path = (place, *folders)
        if path == self._path:
            return
        self.close()
        here = os.open(self._places[place], _FOLDER)
        try:
            for name in folders:
                below = self._below(here, name)
                os.close(here)
                here = below
        except BaseException:
            os.close(here)
            raise
        self._open, self._path = here, path

    def _below(self, here: int, name: str) -> int:
        try:
            os.mkdir(name, 0o755, dir_fd=here)
        except FileExistsError:
            return os.open(name, _FOLDER, dir_fd=here)
        below = os.open(name, _FOLDER, dir_fd=here)
        self._owner.take(below)
        return below

    def _make(self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        here, mode = self._open, member.mode & 0o777
        if member.isdir():
            below = self._below(here, name)
            try:
                os.fchmod(below, mode)
            finally:
                os.close(below)
            return
        self._clear(name)
        if member.isreg():
            self._write(archive, member, name)
        elif member.issym():
            os.symlink(member.linkname, name, dir_fd=here)
            self._owner.take_link(name, here)
        elif member.islnk():
            self._link(member, name)
        else:
            raise SandboxError(
                f"an archive for the box has {member.name!r}, which is no file, folder or link"
            )

    def _clear(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            try:
                os.unlink(name, dir_fd=self._open)
            except OSError as fault:
                if fault.errno not in {errno.EISDIR, errno.EPERM}:
                    raise
                os.rmdir(name, dir_fd=self._open)

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        content = archive.extractfile(member)
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=self._open), "wb", buffering=0) as file:
            if content is not None:
                shutil.copyfileobj(content, file, _BLOCK)
            self._owner.take(file.fileno())
            os.fchmod(file.fileno(), member.mode & 0o777)
            os.utime(file.fileno(), (member.mtime, member.mtime))

    def _link(self, member: tarfile.TarInfo, name: str) -> None:
        here, path = os.dup(self._open), self._path
        try:
            place, parts = self._located(member.linkname)
            self._enter(place, parts[:-1])
            os.link(parts[-1], name, src_dir_fd=self._open, dst_dir_fd=here, follow_symlinks=False)
        finally:
            self.close()
            self._open, self._path = here, path
