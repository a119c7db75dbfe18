"""Blocking work in a thread that calls back into the event loop, and ends with the task that waits for it."""

from __future__ import annotations

import math
from concurrent import futures
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import from_thread, lowlevel, to_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio import CapacityLimiter

_Result = TypeVar("_Result")


async def run_in_thread(work: Callable[[], _Result], limiter: CapacityLimiter) -> _Result:
    """Return the result of ``work``, run in a thread, where it may call ``call_on_loop``."""
    try:
        return await to_thread.run_sync(work, limiter=limiter)
    except futures.CancelledError:
        await lowlevel.checkpoint_if_cancelled()
        raise


def call_on_loop(function: Callable[[], Awaitable[_Result]]) -> _Result:
    """Return the result of ``function``, run on the event loop; call this in a thread of ``run_in_thread``.

    Raises:
        concurrent.futures.CancelledError: the task that waits for the thread is cancelled.
    """
    return from_thread.run(_call, function)


async def _call(function: Callable[[], Awaitable[_Result]]) -> _Result:
    if anyio.current_effective_deadline() == -math.inf:
        raise anyio.get_cancelled_exc_class()
    return await function()
