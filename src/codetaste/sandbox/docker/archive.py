"""Tar archives on their way into containers and out of them."""

from __future__ import annotations

import base64
import json
import tarfile
import tempfile
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.tar import DamagedTar, TarMember, TarReader
from codetaste.core.text import printable
from codetaste.errors import SandboxError
from codetaste.sandbox.base import CommandLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
    from contextlib import ExitStack

    from codetaste.sandbox.base import Sandbox

CHUNK_BYTES = 256 * 1024
_IN_MEMORY = 8 * 1024**2
_UNPACK_S = 600.0
_REASON = 500
_STAT_HEADER = "X-Docker-Container-Path-Stat"
_LINK = 1 << 27
"""The symlink bit of a file mode in Go."""


class MemberNames:
    """Reads the names of the members of an archive that is fed piece by piece."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._reader = TarReader(self)

    @property
    def complete(self) -> bool:
        """Whether the end of the archive was read."""
        return self._reader.ended

    def feed(self, piece: bytes) -> list[str]:
        """Return the names of the members whose headers are complete with this piece.

        Raises:
            SandboxError: it is not a tar archive.
        """
        self._names = []
        try:
            if piece:
                self._reader.feed(piece)
        except DamagedTar as error:
            raise SandboxError(f"an archive cannot be read: {error}") from error
        return self._names

    def finish(self) -> None:
        """Check that the archive is complete.

        Raises:
            SandboxError: its end is missing.
        """
        if not self.complete:
            raise SandboxError("an archive is incomplete")

    def member(self, member: TarMember) -> bool:
        """Store the name of ``member``; its content is skipped."""
        self._names.append(member.name.decode("utf-8", "surrogateescape"))
        return False

    def content(self, chunk: bytes) -> None:
        """Receive no content."""

    def end(self) -> None:
        """Receive no end of content."""


class ArchiveUpload:
    """An archive being uploaded, with the exception of its source, which the HTTP client would hide.

    ``folders`` are the folders in which its members must lie; empty allows any.
    """

    def __init__(self, archive: AsyncIterable[bytes] | bytes, folders: Sequence[str] = ()) -> None:
        self._archive = archive
        self._folders = folders
        self.fault: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        names = MemberNames()
        try:
            async for piece in self._pieces():
                for name in names.feed(piece) if self._folders else ():
                    writable_folder_of(name, self._folders)
                yield piece
            if self._folders:
                names.finish()
        except Exception as fault:
            self.fault = fault
            raise

    async def _pieces(self) -> AsyncIterator[bytes]:
        if isinstance(self._archive, bytes):
            for start in range(0, len(self._archive), CHUNK_BYTES):
                yield self._archive[start : start + CHUNK_BYTES]
        else:
            async for piece in self._archive:
                yield piece


async def spool_archive(archive: AsyncIterable[bytes]) -> IO[bytes]:
    """Store an archive, in memory while it is small; the caller closes it."""
    spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the caller closes it
    async for chunk in archive:
        await to_thread.run_sync(spool.write, chunk)
    spool.seek(0)
    return spool


async def read_chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield all of an open file."""
    while chunk := await to_thread.run_sync(file.read, CHUNK_BYTES):
        yield chunk
        await anyio.lowlevel.checkpoint()


async def put_as_root(sandbox: Sandbox, archive: bytes, folder: str) -> None:
    """Unpack a trusted tar archive in any folder of a sandbox, with the owners and modes of its members.

    ``Sandbox.put`` writes only in the writable folders.

    Raises:
        SandboxError: the sandbox has no privileges, or tar failed; the message has tar's.
    """
    command = ["tar", "--extract", "--file=-", "--numeric-owner", f"--directory={folder}"]
    limits = CommandLimits(wall_s=_UNPACK_S)
    result = await sandbox.run(command, root=True, stdin=archive, workdir="/", limits=limits)
    if result.exit_code != 0:
        reason = printable(" ".join(result.stderr.decode(errors="replace").split()), _REASON)
        raise SandboxError(f"cannot unpack an archive in {folder} of a sandbox: {reason}")


def split_by_mount(archive: IO[bytes], folders: Sequence[str], stack: ExitStack) -> dict[str, IO[bytes]]:
    """Split an archive by the folder its members lie in, with member names relative to that folder.

    ``stack`` closes the returned archives.

    Raises:
        SandboxError: a member lies in none of the folders, or the archive is damaged.
    """
    files: dict[str, IO[bytes]] = {}
    parts: dict[str, tarfile.TarFile] = {}
    try:
        with tarfile.open(fileobj=archive, mode="r|") as whole:
            for member in whole:
                folder = writable_folder_of(member.name, folders)
                if folder not in files:
                    part = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the stack closes it
                    files[folder] = stack.enter_context(part)
                    parts[folder] = tarfile.open(fileobj=files[folder], mode="w|")  # noqa: SIM115
                content = whole.extractfile(member) if member.isreg() else None
                member.name = _relative_name(member.name, folder)
                if member.islnk():
                    member.linkname = _relative_name(member.linkname, folder)
                parts[folder].addfile(member, content)
        for written in parts.values():
            written.close()
    except tarfile.TarError as fault:
        raise SandboxError(f"an archive for a sandbox cannot be read: {fault}") from fault
    for file in files.values():
        file.seek(0)
    return files


def writable_folder_of(name: str, folders: Sequence[str]) -> str:
    """Return which of ``folders`` a member lies in.

    Raises:
        SandboxError: in none of them.
    """
    parts = name.strip("/").split("/")
    for folder in folders:
        wanted = folder.strip("/").split("/")
        if parts[: len(wanted)] == wanted and ".." not in parts:
            return folder
    raise SandboxError(f"{name!r} lies in none of the writable folders: {', '.join(folders)}")


def link_archive(path: str, headers: Mapping[str, str]) -> bytes | None:
    """Return an archive of the link at ``path``, which Podman has followed; None if it is not a link.

    Args:
        path: as requested.
        headers: of the response, which describe ``path``.

    Raises:
        SandboxError: the headers are not understood.
    """
    try:
        status = json.loads(base64.b64decode(headers[_STAT_HEADER]))
        is_link, target = bool(int(status["mode"]) & _LINK), str(status["linkTarget"])
    except (ValueError, LookupError, TypeError) as fault:
        raise SandboxError(f"the engine sent no valid file status of {path} in a sandbox") from fault
    if not is_link:
        return None
    link = tarfile.TarInfo(PurePosixPath(path).name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    return link.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape") + bytes(2 * tarfile.BLOCKSIZE)


def _relative_name(name: str, folder: str) -> str:
    return ("/" + name.strip("/")).removeprefix(folder).lstrip("/") or "."
