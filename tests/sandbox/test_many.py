"""More concurrent archive streams than worker threads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from anyio import to_thread

from codetaste.sandbox.base import Sandbox
from support.sandbox.providers import get_members, make_archive

pytestmark = pytest.mark.anyio
CHUNK = 64 * 1024


async def test_concurrent_archives_whose_streams_need_threads_do_not_deadlock(sandbox: Sandbox) -> None:
    count = int(to_thread.current_default_thread_limiter().total_tokens) + 10
    content = b"x" * 40 * CHUNK

    async def archive_chunks(number: int) -> AsyncIterator[bytes]:
        content_archive = make_archive((f"output/{number}", content[: number + 1]))
        for start in range(0, len(content_archive), CHUNK):
            yield await to_thread.run_sync(lambda: content_archive[start : start + CHUNK])  # noqa: B023 - used at once

    async def read() -> None:
        async with sandbox.get("/testbed") as chunks:
            async for chunk in chunks:
                await to_thread.run_sync(len, chunk)

    await sandbox.put(make_archive(("testbed/large", content)))
    with anyio.fail_after(200):
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(sandbox.put, archive_chunks(number))
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(read)
    found = await get_members(sandbox, "/output")
    sizes = {name: member.size for name, (member, _) in found.items() if member.isreg()}
    assert sizes == {f"output/{number}": number + 1 for number in range(count)}
