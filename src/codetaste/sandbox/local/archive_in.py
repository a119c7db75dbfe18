"""Unpacking archives into a local sandbox from the host, without following links made in the sandbox."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import tarfile
from contextlib import closing
from typing import TYPE_CHECKING, cast

from codetaste.errors import SandboxError
from codetaste.sandbox.local.threads import call_on_loop, run_in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping
    from pathlib import Path
    from typing import IO

    from anyio import CapacityLimiter

    from codetaste.sandbox.local.folders import FileOwner

_BLOCK = 256 * 1024
_READ_BYTES = 16 * 1024
"""Bytes read at once: at every header tarfile moves all that it has read and not used."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


async def write_archive(
    archive: AsyncIterable[bytes] | bytes,
    roots: Mapping[str, Path],
    owner: FileOwner,
    at_once: CapacityLimiter,
) -> None:
    """Unpack a trusted tar archive; ``roots`` maps writable folders to those of the host.

    Its thread counts only for ``at_once``: the source of the archive may need threads as well.

    Raises:
        SandboxError: it is damaged, a member lies elsewhere, or cannot be written.
    """
    source = io.BytesIO(archive) if isinstance(archive, bytes) else _ChunkReader(aiter(archive))

    def unpack() -> None:
        file = cast("IO[bytes]", source)
        with (
            tarfile.open(fileobj=file, mode="r|", bufsize=_READ_BYTES) as members,
            closing(_FolderWriter(roots, owner)) as tree,
        ):
            for member in members:
                tree.add(members, member)

    try:
        await run_in_thread(unpack, at_once)
    except (tarfile.TarError, EOFError) as fault:
        raise SandboxError(f"an archive for the sandbox is damaged: {fault}") from fault
    except OSError as fault:
        if isinstance(source, _ChunkReader) and source.fault is fault:
            raise
        raise SandboxError(f"an archive for the sandbox cannot be unpacked: {fault}") from fault


class _ChunkReader:
    """Reads in a thread the chunks that arrive on the event loop."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self.fault: BaseException | None = None

    def read(self, size: int) -> bytes:
        while not self._rest:
            chunk = call_on_loop(self._next)
            if chunk is None:
                return b""
            self._rest = memoryview(chunk)
        piece, self._rest = self._rest[:size], self._rest[size:]
        return bytes(piece)

    async def _next(self) -> bytes | None:
        try:
            return await anext(self._chunks, None)
        except BaseException as fault:
            self.fault = fault
            raise


class _FolderWriter:
    """Writes to the folders by descriptors; the folder of the last member stays open for the next."""

    def __init__(self, roots: Mapping[str, Path], owner: FileOwner) -> None:
        self._roots, self._owner = roots, owner
        self._path: tuple[str, ...] | None = None
        self._open = -1

    def close(self) -> None:
        if self._open >= 0:
            os.close(self._open)
        self._open, self._path = -1, None

    def add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        root, parts = self._locate(member.name)
        if not parts:
            if root and member.isdir():
                self._enter(root, ())
                os.fchmod(self._open, member.mode & 0o777)
            return
        self._enter(root, parts[:-1])
        self._make(archive, member, parts[-1])

    def _locate(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return the folder of ``name`` and the rest of its path; "" for a path above all folders."""
        parts = tuple(part for part in name.split("/") if part not in {"", "."})
        path = "/" + "/".join(parts)
        for root in self._roots:
            if path == root or path.startswith(root + "/"):
                rest = parts[root.count("/") :]
                if ".." not in rest:
                    return root, rest
            if root.startswith(path.rstrip("/") + "/"):
                return "", ()
        raise SandboxError(
            f"an archive for the sandbox has {name!r}, which lies in none of the writable folders: "
            f"{', '.join(self._roots)}"
        )

    def _enter(self, root: str, folders: tuple[str, ...]) -> None:
        path = (root, *folders)
        if path == self._path:
            return
        self.close()
        here = os.open(self._roots[root], _FOLDER)
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
        self._owner.chown(below)
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
        with contextlib.suppress(FileNotFoundError):
            try:
                os.unlink(name, dir_fd=here)
            except OSError as fault:
                if fault.errno not in {errno.EISDIR, errno.EPERM}:
                    raise
                os.rmdir(name, dir_fd=here)
        if member.isreg():
            self._write(archive, member, name)
        elif member.issym():
            os.symlink(member.linkname, name, dir_fd=here)
            self._owner.chown_link(name, here)
        elif member.islnk():
            self._link(member, name)
        else:
            raise SandboxError(
                f"an archive for the sandbox has {member.name!r}, which is not a file, folder or link"
            )

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        content = archive.extractfile(member)
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=self._open), "wb", buffering=0) as file:
            if content is not None:
                shutil.copyfileobj(content, file, _BLOCK)
            self._owner.chown(file.fileno())
            os.fchmod(file.fileno(), member.mode & 0o777)
            os.utime(file.fileno(), (member.mtime, member.mtime))

    def _link(self, member: tarfile.TarInfo, name: str) -> None:
        here, path = os.dup(self._open), self._path
        try:
            root, parts = self._locate(member.linkname)
            self._enter(root, parts[:-1])
            os.link(parts[-1], name, src_dir_fd=self._open, dst_dir_fd=here, follow_symlinks=False)
        finally:
            self.close()
            self._open, self._path = here, path
