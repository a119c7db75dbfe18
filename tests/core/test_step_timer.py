"""The timer of a coroutine's steps passes on all that goes in and out, and measures what blocks."""

from __future__ import annotations

import time

import anyio
import anyio.lowlevel
import pytest

from codetaste.core.concurrency import StepTimer

pytestmark = pytest.mark.anyio


async def test_longest_step_is_measured_and_waiting_is_not() -> None:
    async def work() -> str:
        await anyio.sleep(0.3)
        time.sleep(0.1)  # noqa: ASYNC251
        await anyio.sleep(0.3)
        return "done"

    timer = StepTimer(work())
    assert await timer == "done"
    assert timer.longest_s >= 0.1
    waiting = StepTimer(anyio.sleep(0.5))
    await waiting
    assert waiting.longest_s < 0.5


async def test_exceptions_and_cancellation_reach_the_coroutine() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            seen.append("cancelled")
            raise

    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("mine")

    with anyio.move_on_after(0.05) as scope:
        await StepTimer(work())
    assert scope.cancelled_caught
    assert seen == ["cancelled"]
    with pytest.raises(ValueError, match="mine"):
        await StepTimer(fail())


async def test_thread_and_timeout_work_inside() -> None:
    async def work() -> int:
        with anyio.fail_after(5):
            return await anyio.to_thread.run_sync(lambda: 7)

    assert await StepTimer(work()) == 7
