"""A box that is a folder of this machine, or an archive: what the harvest reads, without containment."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from codetaste.errors import SandboxError
from codetaste.harness.testbed.testbed import Testbed, prepare_testbed
from codetaste.sandbox.base import Sandbox
from codetaste.source.tree.store import Tree, tree_digest

PIECE = 10_007
"""No multiple of a tar block: members begin anywhere in a piece."""


class MadeBox:
    """Only ``get`` of /testbed and of what is below."""

    def __init__(self, archive: bytes) -> None:
        self.archive = archive
        self.readings = 0

    @asynccontextmanager
    async def get(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        self.readings += 1
        try:
            archive = self.archive if path == "/testbed" else part_of(self.archive, path[1:])
        except tarfile.TarError as error:
            raise SandboxError(str(error)) from error
        yield self._pieces(archive)

    async def _pieces(self, archive: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(archive), PIECE):
            yield archive[start : start + PIECE]


def part_of(archive: bytes, path: str) -> bytes:
    """The archive of ``path`` alone, named as its last part."""
    packed = io.BytesIO()
    above = len(path) - len(path.rpartition("/")[2])
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as whole,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as part,
    ):
        found = [member for member in whole if member.name == path or member.name.startswith(path + "/")]
        if not found:
            raise SandboxError(f"{path} is not there")
        for member in found:
            content = whole.extractfile(member) if member.isreg() else None
            member.name = member.name[above:]
            part.addfile(member, content)
    return packed.getvalue()


def box_of(archive: bytes) -> Sandbox:
    return cast("Sandbox", MadeBox(archive))


def box_with(folder: Path, format_: int = tarfile.PAX_FORMAT) -> Sandbox:
    """A box whose /testbed is ``folder``, archived as a container engine does."""
    packed = io.BytesIO()
    with tarfile.open(
        fileobj=packed, mode="w", format=format_, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        archive.add(folder, "testbed")
    return box_of(packed.getvalue())


async def testbed_of(base: Path, cache: Path) -> Testbed:
    return await prepare_testbed(Tree(base, tree_digest(base)), cache)


def write(root: Path, files: dict[str, bytes | str]) -> Path:
    """Make files (bytes) and links (text) below ``root``."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.symlink_to(content)
    return root


def archive_of(*members: tuple[str, Any], end: bool = True) -> bytes:
    """A tar archive of (name, content) or (name, fields of a TarInfo)."""
    packed = io.BytesIO()
    with tarfile.open(
        fileobj=packed, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for name, what in members:
            info = tarfile.TarInfo(name)
            info.mode = 0o644
            if isinstance(what, bytes):
                info.size = len(what)
                archive.addfile(info, io.BytesIO(what))
            else:
                for field, value in what.items():
                    setattr(info, field, value)
                archive.addfile(info)
        length = archive.offset
    return packed.getvalue() if end else packed.getvalue()[:length]
