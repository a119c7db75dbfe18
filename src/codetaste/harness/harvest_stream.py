"""Reading a box's /testbed to the end, or as far as bounds and damage let it be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.harness.harvest_tar import DamagedTar, TarReader
from codetaste.sandbox.box import TESTBED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codetaste.harness.harvest_tree import Snapshot
    from codetaste.sandbox.box import Box

_BATCH_BYTES = 512 * 1024


async def read_tree(box: Box, snapshot: Snapshot, limit_bytes: int, limit_s: float) -> str:
    """Read /testbed into ``snapshot``; return why it was not read whole, "" if it was.

    Args:
        box: where it is.
        snapshot: takes note of what is there.
        limit_bytes: of the archive.
        limit_s: in seconds.
    """
    fault = ""
    try:
        with anyio.fail_after(limit_s):
            async with box.get(TESTBED) as stream:
                await _read(stream, TarReader(snapshot), limit_bytes)
    except TimeoutError:
        fault = f"{TESTBED} could not be read within {limit_s:g} s"
    except (SandboxError, DamagedTar) as error:
        fault = f"{TESTBED} could not be read whole: {error}"
    await to_thread.run_sync(snapshot.drop_open)
    if not fault and snapshot.replaced:
        return f"{TESTBED} was replaced by {snapshot.replaced}"
    if not fault and not snapshot.rooted:
        return f"{TESTBED} is gone"
    return fault


async def _read(stream: AsyncIterator[bytes], reader: TarReader, limit_bytes: int) -> None:
    total = 0
    waiting: list[bytes] = []
    waits = 0
    async for chunk in stream:
        waiting.append(chunk)
        waits += len(chunk)
        if waits < _BATCH_BYTES:
            continue
        total += waits
        if total > limit_bytes:
            raise DamagedTar(f"it holds more than {limit_bytes:,} bytes")
        await to_thread.run_sync(reader.feed, b"".join(waiting))
        waiting, waits = [], 0
        if reader.ended:
            return
    if waits:
        await to_thread.run_sync(reader.feed, b"".join(waiting))
    await to_thread.run_sync(reader.feed, b"")
