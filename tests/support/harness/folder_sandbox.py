"""Sandboxes backed by a folder or an archive, from which patches are extracted without containment."""

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

CHUNK_BYTES = 10_007
"""No multiple of a tar block: members begin anywhere in a chunk."""


class ArchiveSandbox:
    """A sandbox that only has ``get`` of /testbed and of paths below it."""

    def __init__(self, archive: bytes) -> None:
        self.archive = archive
        self.reads = 0

    @asynccontextmanager
    async def get(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        self.reads += 1
        try:
            archive = self.archive if path == "/testbed" else subtree_archive(self.archive, path[1:])
        except tarfile.TarError as error:
            raise SandboxError(str(error)) from error
        yield self._chunks(archive)

    async def _chunks(self, archive: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(archive), CHUNK_BYTES):
            yield archive[start : start + CHUNK_BYTES]


def subtree_archive(archive: bytes, path: str) -> bytes:
    """Return the archive of ``path`` alone, under its last part as the name."""
    packed = io.BytesIO()
    prefix_length = len(path) - len(path.rpartition("/")[2])
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as whole,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as part,
    ):
        found = [member for member in whole if member.name == path or member.name.startswith(path + "/")]
        if not found:
            raise SandboxError(f"{path} is not there")
        for member in found:
            content = whole.extractfile(member) if member.isreg() else None
            member.name = member.name[prefix_length:]
            part.addfile(member, content)
    return packed.getvalue()


def archive_sandbox(archive: bytes) -> Sandbox:
    return cast("Sandbox", ArchiveSandbox(archive))


def folder_sandbox(folder: Path, format_: int = tarfile.PAX_FORMAT) -> Sandbox:
    """Return a sandbox whose /testbed is ``folder``, archived as by a container engine."""
    packed = io.BytesIO()
    with tarfile.open(
        fileobj=packed, mode="w", format=format_, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        archive.add(folder, "testbed")
    return archive_sandbox(packed.getvalue())


async def make_testbed(base: Path, cache: Path, *later: Path) -> Testbed:
    first, *others = [Tree(folder, tree_digest(folder)) for folder in (base, *later)]
    return await prepare_testbed(first, cache, *others)


def write_files(root: Path, files: dict[str, bytes | str]) -> Path:
    """Create files (bytes) and links (text) below ``root``."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.symlink_to(content)
    return root


def make_archive(*members: tuple[str, Any], end: bool = True) -> bytes:
    """Make a tar archive of (name, content) or (name, fields of a TarInfo)."""
    packed = io.BytesIO()
    with tarfile.open(
        fileobj=packed, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for name, value in members:
            info = tarfile.TarInfo(name)
            info.mode = 0o644
            if isinstance(value, bytes):
                info.size = len(value)
                archive.addfile(info, io.BytesIO(value))
            else:
                for field, field_value in value.items():
                    setattr(info, field, field_value)
                archive.addfile(info)
        length = archive.offset
    return packed.getvalue() if end else packed.getvalue()[:length]
