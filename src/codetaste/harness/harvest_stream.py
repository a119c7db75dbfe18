"""Reading a box's /testbed to the end, or as far as bounds and damage let it be read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.harness.harvest_tar import DamagedTar, Kind, Member, TarReader, TarTooLarge
from codetaste.sandbox.box import TESTBED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codetaste.harness.harvest_tar import Taker
    from codetaste.harness.harvest_tree import Snapshot
    from codetaste.sandbox.box import Box

_BATCH_BYTES = 128 * 1024
_APART = 100
"""Folders of R that are read one by one, at the most."""


async def read_tree(box: Box, snapshot: Snapshot, limit_bytes: int, limit_s: float) -> str:
    """Read /testbed into ``snapshot``; return why it was not read whole, "" if it was.

    Where it is too large, the files and folders that R has at the top are read one by one as well: an endless
    file hides only what lies in the same one.

    Args:
        box: where it is.
        snapshot: takes note of what is there.
        limit_bytes: of an archive.
        limit_s: in seconds, of all together.
    """
    fault = ""
    try:
        with anyio.fail_after(limit_s):
            try:
                await _read(box, TESTBED, snapshot, snapshot, limit_bytes)
            except TarTooLarge:
                await _read_apart(box, snapshot, limit_bytes)
                raise
    except TimeoutError:
        fault = f"{TESTBED} could not be read within {limit_s:g} s"
    except (SandboxError, DamagedTar) as error:
        fault = f"{TESTBED} could not be read whole: {error}"
    if not fault and snapshot.replaced:
        return f"{TESTBED} was replaced by {snapshot.replaced}"
    if not fault and not snapshot.rooted:
        return f"{TESTBED} is gone"
    return fault


async def _read_apart(box: Box, snapshot: Snapshot, limit_bytes: int) -> None:
    for top in sorted({name.partition(b"/")[0] for name in snapshot.base.entries})[:_APART]:
        try:
            path = f"{TESTBED}/{top.decode()}"
            await _read(box, path, _Below(snapshot), snapshot, limit_bytes)
        except (SandboxError, DamagedTar, UnicodeDecodeError):
            continue  # the fault is told already


async def _read(box: Box, path: str, taker: Taker, snapshot: Snapshot, limit_bytes: int) -> None:
    try:
        async with box.get(path) as stream:
            await _feed(stream, TarReader(taker, limit_bytes))
    finally:
        snapshot.drop_open()


async def _feed(stream: AsyncIterator[bytes], reader: TarReader) -> None:
    waiting: list[bytes] = []
    waits = 0
    async for chunk in stream:
        waiting.append(chunk)
        waits += len(chunk)
        if waits >= _BATCH_BYTES:
            await to_thread.run_sync(reader.feed, b"".join(waiting))
            waiting, waits = [], 0
        if reader.ended:
            return
    if waits:
        await to_thread.run_sync(reader.feed, b"".join(waiting))
    await to_thread.run_sync(reader.feed, b"")


@dataclass(frozen=True, slots=True)
class _Below:
    """Takes the archive of something in /testbed as a part of /testbed's own."""

    snapshot: Snapshot

    def member(self, member: Member) -> bool:
        root = self.snapshot.root
        inside = replace(member, name=b"%s/%s" % (root, member.name), link=self._link(member, root))
        return self.snapshot.member(inside)

    def content(self, chunk: bytes) -> None:
        self.snapshot.content(chunk)

    def end(self) -> None:
        self.snapshot.end()

    def _link(self, member: Member, root: bytes) -> bytes:
        return b"%s/%s" % (root, member.link) if member.kind is Kind.HARD_LINK else member.link
