"""Archives on their way into containers and out of them."""

from __future__ import annotations

import tarfile
import tempfile
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence

CHUNK = 256 * 1024
_IN_MEMORY = 8 * 1024**2


class Sent:
    """An archive that is being sent, and what went wrong where it comes from: the sender would hide that."""

    def __init__(self, archive: AsyncIterable[bytes] | bytes) -> None:
        self._archive = archive
        self.fault: Exception | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            if isinstance(self._archive, bytes):
                for start in range(0, len(self._archive), CHUNK):
                    yield self._archive[start : start + CHUNK]
            else:
                async for chunk in self._archive:
                    yield chunk
        except Exception as fault:
            self.fault = fault
            raise


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
                    place = _place(member.name, places)
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


def _place(name: str, places: Sequence[str]) -> str:
    path = "/" + name.strip("/")
    for place in places:
        if path == place or path.startswith(place + "/"):
            return place
    raise SandboxError(f"{path} lies in none of {', '.join(places)}, the only places that can be written to")


def _move(whole: tarfile.TarFile, member: tarfile.TarInfo, place: str, part: tarfile.TarFile) -> None:
    content = whole.extractfile(member) if member.isreg() else None
    member.name = _below(member.name, place)
    if member.islnk():
        member.linkname = _below(member.linkname, place)
    part.addfile(member, content)


def _below(name: str, place: str) -> str:
    return ("/" + name.strip("/")).removeprefix(place).lstrip("/") or "."
