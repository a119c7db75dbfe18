"""Archives on their way into containers and out of them."""

from __future__ import annotations

import base64
import json
import tarfile
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.sandbox.tar_walk import TarWalk

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence

CHUNK = 256 * 1024
_IN_MEMORY = 8 * 1024**2
_STAT = "X-Docker-Container-Path-Stat"
_LINK = 1 << 27
"""In a mode as Go has them."""


class Sent:
    """An archive that is being sent, and what went wrong where it comes from: the sender would hide that.

    ``places`` are where its members must lie; empty is anywhere.
    """

    def __init__(self, archive: AsyncIterable[bytes] | bytes, places: Sequence[str] = ()) -> None:
        self._archive = archive
        self._places = places
        self.fault: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        walk = TarWalk()
        try:
            async for piece in self._pieces():
                for name in walk.feed(piece) if self._places else ():
                    place_of(name, self._places)
                yield piece
            if self._places:
                walk.end()
        except Exception as fault:
            self.fault = fault
            raise

    async def _pieces(self) -> AsyncIterator[bytes]:
        if isinstance(self._archive, bytes):
            for start in range(0, len(self._archive), CHUNK):
                yield self._archive[start : start + CHUNK]
        else:
            async for piece in self._archive:
                yield piece


async def spooled(archive: AsyncIterable[bytes]) -> IO[bytes]:
    """Keep an archive, in memory as long as it is small; the caller closes it."""
    kept = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the caller closes it
    async for chunk in archive:
        await to_thread.run_sync(kept.write, chunk)
    kept.seek(0)
    return kept


async def pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield all of an open file."""
    while chunk := await to_thread.run_sync(file.read, CHUNK):
        yield chunk
        await anyio.lowlevel.checkpoint()


@contextmanager
def split(archive: IO[bytes], places: Sequence[str]) -> Iterator[dict[str, IO[bytes]]]:
    """Sort the members of an archive by the place that they lie in, and name them from there; blocks.

    Raises:
        SandboxError: a member lies in none of the places, or it is no archive.
    """
    with ExitStack() as held:
        files: dict[str, IO[bytes]] = {}
        parts: dict[str, tarfile.TarFile] = {}
        try:
            with tarfile.open(fileobj=archive, mode="r|") as whole:
                for member in whole:
                    place = place_of(member.name, places)
                    if place not in files:
                        files[place] = held.enter_context(tempfile.SpooledTemporaryFile(_IN_MEMORY))
                        parts[place] = tarfile.open(fileobj=files[place], mode="w|")  # noqa: SIM115
                    _move(whole, member, place, parts[place])
            for part in parts.values():
                part.close()
        except tarfile.TarError as fault:
            raise SandboxError(f"an archive for a box cannot be read: {fault}") from fault
        for file in files.values():
            file.seek(0)
        yield files


def place_of(name: str, places: Sequence[str]) -> str:
    """Return which of ``places`` a member lies in.

    Raises:
        SandboxError: in none of them.
    """
    parts = name.strip("/").split("/")
    for place in places:
        wanted = place.strip("/").split("/")
        if parts[: len(wanted)] == wanted and ".." not in parts:
            return place
    raise SandboxError(f"{name!r} lies in none of {', '.join(places)}, the only places of an archive")


def followed_link(path: str, headers: Mapping[str, str]) -> bytes | None:
    """Return an archive of the link at ``path``, which Podman has followed; None if it is none.

    Args:
        path: that was asked for.
        headers: of the answer, which say what is there.

    Raises:
        SandboxError: they say nothing that can be understood.
    """
    try:
        said = json.loads(base64.b64decode(headers[_STAT]))
        is_link, to = bool(int(said["mode"]) & _LINK), str(said["linkTarget"])
    except (ValueError, LookupError, TypeError) as fault:
        raise SandboxError(f"the engine does not say what {path} of a box is") from fault
    if not is_link:
        return None
    link = tarfile.TarInfo(PurePosixPath(path).name)
    link.type, link.linkname = tarfile.SYMTYPE, to
    return link.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape") + bytes(2 * tarfile.BLOCKSIZE)


def _move(whole: tarfile.TarFile, member: tarfile.TarInfo, place: str, part: tarfile.TarFile) -> None:
    content = whole.extractfile(member) if member.isreg() else None
    member.name = _below(member.name, place)
    if member.islnk():
        member.linkname = _below(member.linkname, place)
    part.addfile(member, content)


def _below(name: str, place: str) -> str:
    return ("/" + name.strip("/")).removeprefix(place).lstrip("/") or "."
