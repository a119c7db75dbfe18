"""Tasks that run beside a block: what the block raises comes out as it is, without a group around it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import TaskGroup


@asynccontextmanager
async def beside() -> AsyncIterator[TaskGroup]:
    """Give a task group that is cancelled at the end of the block."""
    fault: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except BaseException as raised:  # noqa: BLE001 (raised again below)
            fault = raised
        tasks.cancel_scope.cancel()
    if fault is not None:
        raise fault
