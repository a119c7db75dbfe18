"""Background tasks live as long as their block, and the block's exceptions are not wrapped."""

from __future__ import annotations

import anyio
import pytest

from codetaste.core.concurrency import background_tasks

pytestmark = pytest.mark.anyio


async def test_background_tasks_serve_a_cancelled_block_until_it_has_cleaned_up() -> None:
    sender, requests = anyio.create_memory_object_stream[anyio.Event](1)
    cleaned = False

    async def serve() -> None:
        async for answered in requests:
            answered.set()

    with sender, requests, anyio.move_on_after(0.01):
        async with background_tasks() as tasks:
            tasks.start_soon(serve)
            try:
                await anyio.sleep(60)
            finally:
                with anyio.CancelScope(shield=True), anyio.fail_after(200):
                    await anyio.sleep(0.05)
                    answered = anyio.Event()
                    await sender.send(answered)
                    await answered.wait()
                    cleaned = True
    assert cleaned


async def test_exception_of_the_block_is_not_wrapped() -> None:
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
            await anyio.sleep(600)

    with anyio.fail_after(200), pytest.raises(ExceptionGroup) as caught:
        await block()
    assert caught.group_contains(ValueError, match="of the task")


async def test_finished_block_does_not_wait_for_its_tasks() -> None:
    with anyio.fail_after(200):
        async with background_tasks() as tasks:
            tasks.start_soon(anyio.sleep, 600)
