"""Read a sandbox's /testbed completely, or as far as limits and damage permit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.tar import DamagedTar, MemberKind, TarMember, TarReader, TarTooLarge
from codetaste.errors import SandboxError
from codetaste.sandbox.base import TESTBED

if TYPE_CHECKING:
    from codetaste.core.tar import TarHandler
    from codetaste.harness.patch.snapshot import TreeSnapshot
    from codetaste.sandbox.base import Sandbox

_BATCH_BYTES = 128 * 1024
_MAX_SEPARATE_READS = 100
"""Maximum number of top-level entries of R that are read one by one."""


async def read_tree(sandbox: Sandbox, snapshot: TreeSnapshot, limit_bytes: int, limit_s: float) -> str:
    """Read /testbed into ``snapshot``; return why it was not read completely, "" if it was.

    If it is too large, the top-level files and folders of R are also read one by one, so that an endless file
    hides only the files of its own top-level folder.

    Args:
        sandbox: the sandbox to read.
        snapshot: records the files.
        limit_bytes: limit on one archive.
        limit_s: time limit of all reads together, in seconds.
    """
    fault = ""
    try:
        with anyio.fail_after(limit_s):
            try:
                await _read(sandbox, TESTBED, snapshot, snapshot, limit_bytes)
            except TarTooLarge:
                await _read_separately(sandbox, snapshot, limit_bytes)
                raise
    except TimeoutError:
        fault = f"{TESTBED} could not be read within {limit_s:g} s"
    except (SandboxError, DamagedTar) as error:
        fault = f"{TESTBED} could not be read whole: {error}"
    if not fault and snapshot.replaced_by:
        return f"{TESTBED} was replaced by {snapshot.replaced_by}"
    if not fault and not snapshot.root_seen:
        return f"{TESTBED} is gone"
    return fault


async def _read_separately(sandbox: Sandbox, snapshot: TreeSnapshot, limit_bytes: int) -> None:
    for top in sorted({name.partition(b"/")[0] for name in snapshot.base.entries})[:_MAX_SEPARATE_READS]:
        try:
            path = f"{TESTBED}/{top.decode()}"
            await _read(sandbox, path, _SubtreeHandler(snapshot), snapshot, limit_bytes)
        except (SandboxError, DamagedTar, UnicodeDecodeError):
            continue  # the caller reports the fault


async def _read(
    sandbox: Sandbox, path: str, handler: TarHandler, snapshot: TreeSnapshot, limit_bytes: int
) -> None:
    reader, batch = TarReader(handler, limit_bytes), bytearray()
    try:
        async with sandbox.get(path) as stream:
            async for chunk in stream:
                batch += chunk
                if len(batch) >= _BATCH_BYTES:
                    await to_thread.run_sync(reader.feed, bytes(batch))
                    batch.clear()
                if reader.ended:
                    return
            if batch:
                await to_thread.run_sync(reader.feed, bytes(batch))
            await to_thread.run_sync(reader.feed, b"")
    finally:
        snapshot.discard_open_file()


@dataclass(frozen=True, slots=True)
class _SubtreeHandler:
    """Handles the archive of a file or folder in /testbed as a part of /testbed's archive."""

    snapshot: TreeSnapshot

    def member(self, member: TarMember) -> bool:
        root = self.snapshot.root
        link = b"%s/%s" % (root, member.link) if member.kind is MemberKind.HARD_LINK else member.link
        return self.snapshot.member(replace(member, name=b"%s/%s" % (root, member.name), link=link))

    def content(self, chunk: bytes) -> None:
        self.snapshot.content(chunk)

    def end(self) -> None:
        self.snapshot.end()
