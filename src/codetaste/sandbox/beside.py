"""Background tasks of a block that run to its very end, also while a cancelled block cleans up.

An exception of the block is raised as it is, not wrapped in an exception group.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVarTuple

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from anyio.abc import TaskGroup

_Args = TypeVarTuple("_Args")


@dataclass(slots=True)
class BackgroundTasks:
    """Starts background tasks of a block. An exception in one of them ends the block."""

    _tasks: TaskGroup
    _scopes: set[anyio.CancelScope] = field(default_factory=set)
    _cancelled: bool = False

    def start_soon(self, function: Callable[[*_Args], Awaitable[object]], *args: *_Args) -> None:
        """Start a task; it is cancelled at the end of the block."""
        self._tasks.start_soon(self._shielded, lambda: function(*args))

    def cancel(self) -> None:
        """Cancel all tasks."""
        self._cancelled = True
        for scope in self._scopes:
            scope.cancel()

    async def _shielded(self, function: Callable[[], Awaitable[object]]) -> None:
        with anyio.CancelScope(shield=True) as scope:
            self._scopes.add(scope)
            try:
                if not self._cancelled:
                    await function()
            finally:
                self._scopes.discard(scope)


@asynccontextmanager
async def background_tasks() -> AsyncIterator[BackgroundTasks]:
    """Open a block with background tasks; give the object that starts them."""
    fault: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        starter = BackgroundTasks(tasks)
        try:
            yield starter
        except BaseException as raised:  # noqa: BLE001 (raised again below)
            fault = raised
        starter.cancel()
    if fault is not None:
        raise fault
