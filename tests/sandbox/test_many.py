"""More archives at once than there are threads for everything."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from anyio import to_thread

from codetaste.sandbox.base import Sandbox
from support.sandbox.providers import archive, fetched

pytestmark = pytest.mark.anyio
PIECE = 64 * 1024


async def test_archives_whose_ends_need_threads_do_not_wait_for_each_other(box: Sandbox) -> None:
    crowd = int(to_thread.current_default_thread_limiter().total_tokens) + 10
    content = b"x" * 40 * PIECE

    async def slowly(number: int) -> AsyncIterator[bytes]:
        whole = archive((f"output/{number}", content[: number + 1]))
        for start in range(0, len(whole), PIECE):
            yield await to_thread.run_sync(lambda: whole[start : start + PIECE])  # noqa: B023 - used at once

    async def read() -> None:
        async with box.get("/testbed") as chunks:
            async for chunk in chunks:
                await to_thread.run_sync(len, chunk)

    await box.put(archive(("testbed/large", content)))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(crowd):
                tasks.start_soon(box.put, slowly(number))
        async with anyio.create_task_group() as tasks:
            for _ in range(crowd):
                tasks.start_soon(read)
    found = await fetched(box, "/output")
    sizes = {name: one.size for name, (one, _) in found.items() if one.isreg()}
    assert sizes == {f"output/{number}": number + 1 for number in range(crowd)}
