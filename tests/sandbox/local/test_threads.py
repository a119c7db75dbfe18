"""Threads that call the event loop."""

from __future__ import annotations

import threading
from functools import partial

import anyio
import pytest
from anyio import to_thread

from codetaste.sandbox.local.threads import call_on_loop, run_in_thread

pytestmark = pytest.mark.anyio


async def test_thread_gets_the_result_of_a_call_on_the_loop() -> None:
    async def increment(number: int) -> int:
        return await to_thread.run_sync(int, number + 1)

    def work() -> int:
        return call_on_loop(partial(increment, 41))

    assert await run_in_thread(work, anyio.CapacityLimiter(1)) == 42


async def test_thread_that_calls_after_cancellation_ends() -> None:
    started, cancelled = anyio.Event(), threading.Event()
    ended: list[str] = []

    async def set_started() -> None:
        started.set()

    def work() -> None:
        call_on_loop(set_started)
        cancelled.wait(20)
        try:
            call_on_loop(partial(to_thread.run_sync, int))
        finally:
            ended.append("thread")

    async def wait_for_thread() -> None:
        try:
            await run_in_thread(work, anyio.CapacityLimiter(1))
        except anyio.get_cancelled_exc_class():
            ended.append("task")
            raise

    with anyio.fail_after(200):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_for_thread)
            await started.wait()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)  # the cancellation is delivered now
                cancelled.set()
    assert ended == ["thread", "task"]
