"""Concurrent tasks and threads: background tasks, ``gather``, how long a coroutine blocks the event loop."""

from __future__ import annotations

import threading
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple, cast

import anyio

from codetaste.errors import CodetasteError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence

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
    """Open a block whose background tasks run to its very end, also while a cancelled block cleans up.

    An exception of the block is raised as it is, not wrapped in an exception group.
    """
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


_Result = TypeVar("_Result")


@dataclass(slots=True)
class StepTimer(Generic[_Result]):
    """Awaits ``awaitable`` and measures its steps: what runs between two awaits blocks the event loop."""

    awaitable: Awaitable[_Result]
    longest_s: float = 0.0
    """The longest step so far, in seconds."""

    def __await__(self) -> Generator[Any, Any, _Result]:
        steps = self.awaitable.__await__()
        answer: Any = None
        fault: BaseException | None = None
        while True:
            began_s = time.monotonic()
            try:
                wanted = steps.send(answer) if fault is None else steps.throw(fault)
            except StopIteration as end:
                return cast("_Result", end.value)
            finally:
                self.longest_s = max(self.longest_s, time.monotonic() - began_s)
            answer = fault = None
            try:
                answer = yield wanted
            except BaseException as raised:  # noqa: BLE001 - it belongs to the awaitable
                fault = raised


async def gather(calls: Sequence[Callable[[], Awaitable[_Result]]]) -> list[_Result]:
    """Return the results of ``calls`` in order; the first CodetasteError cancels the others and is raised."""
    results: dict[int, _Result] = {}
    errors: list[CodetasteError] = []

    async def one(number: int) -> None:
        try:
            results[number] = await calls[number]()
        except CodetasteError as error:
            errors.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for number in range(len(calls)):
            group.start_soon(one, number)
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(calls))]


def per_thread(make: Callable[[], _Result]) -> Callable[[], _Result]:
    """Return a function that calls ``make`` once in each thread, for what threads must not share."""
    made = threading.local()

    def get() -> _Result:
        if not hasattr(made, "value"):
            made.value = make()
        value: _Result = made.value
        return value

    return get
