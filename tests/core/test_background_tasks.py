"""Tasks beside a block live as long as the block, and what the block raises is not wrapped."""

from __future__ import annotations

import anyio
import pytest

from codetaste.core.concurrency import background_tasks

pytestmark = pytest.mark.anyio


async def test_they_serve_a_cancelled_block_until_it_has_cleaned_up() -> None:
    asking, asked = anyio.create_memory_object_stream[anyio.Event](1)
    cleaned = False

    async def serve() -> None:
        async for answer in asked:
            answer.set()

    with asking, asked, anyio.move_on_after(0.01):
        async with background_tasks() as tasks:
            tasks.start_soon(serve)
            try:
                await anyio.sleep(60)
            finally:
                with anyio.CancelScope(shield=True), anyio.fail_after(200):
                    await anyio.sleep(0.05)
                    answer = anyio.Event()
                    await asking.send(answer)
                    await answer.wait()
                    cleaned = True
    assert cleaned


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    async def block() -> None:
        async with background_tasks() as tasks:
            tasks.start_soon(anyio.sleep, 600)
            raise ValueError("of the block")

    with pytest.raises(ValueError, match="of the block"):
        await block()


async def test_a_fault_in_a_task_ends_the_block_and_the_other_tasks() -> None:
    async def fail() -> None:
        raise ValueError("of the task")

    async def block() -> None:
        async with background_tasks() as tasks:
            tasks.start_soon(anyio.sleep, 600)
            tasks.start_soon(fail)
            await anyio.sleep(60)

    with anyio.fail_after(200), pytest.raises(ExceptionGroup) as caught:
        await block()
    assert caught.group_contains(ValueError, match="of the task")


async def test_background_tasks_finished_block_does_not_wait() -> None:
    with anyio.fail_after(200):
        async with background_tasks() as tasks:
            tasks.start_soon(anyio.sleep, 600)
