"""A thread that asks the event loop for things while it works, and ends when its task is cancelled.

A cancellation is delivered to the tasks that a scope has at that moment. A task that a thread starts in a
scope that is cancelled already hears nothing of it; and what waits for the word first, as a limiter and a
stream do, waits for ever, at full speed (anyio 4.16).
"""

from __future__ import annotations

import math
from concurrent import futures
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import from_thread, lowlevel, to_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio import CapacityLimiter

_Given = TypeVar("_Given")


async def in_thread(work: Callable[[], _Given], limiter: CapacityLimiter) -> _Given:
    """Return what ``work`` gives, done in a thread, where it may call ``on_loop``."""
    try:
        return await to_thread.run_sync(work, limiter=limiter)
    except futures.CancelledError:
        await lowlevel.checkpoint_if_cancelled()
        raise


def on_loop(ask: Callable[[], Awaitable[_Given]]) -> _Given:
    """Return what ``ask`` gives on the event loop; call it in a thread of ``in_thread``.

    Raises:
        concurrent.futures.CancelledError: the task that waits for the thread is cancelled.
    """
    return from_thread.run(_asked, ask)


async def _asked(ask: Callable[[], Awaitable[_Given]]) -> _Given:
    if anyio.current_effective_deadline() == -math.inf:
        raise anyio.get_cancelled_exc_class()
    return await ask()
