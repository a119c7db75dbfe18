"""Blocking work beside the event loop, in a few threads that do not keep a stopped process alive.

A run may be large, and many readers may ask for the same at once: equal work is done once for all of them.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

_Result = TypeVar("_Result")


class BackgroundCall(Generic[_Result]):
    """A call that a thread makes.

    Attributes:
        readers: how many wait for its result; None if it is made for its effect.
    """

    def __init__(self, call: Callable[[], _Result], readers: int | None) -> None:
        self.readers = readers
        self._call, self._token, self._ended = call, current_token(), anyio.Event()
        self._results: list[_Result] = []
        self._error: BaseException | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the result is there."""
        return bool(self._results) or self._error is not None

    def run(self, ended: Callable[[], object]) -> None:
        """Make the call in this thread; ``ended`` is called before those who wait go on."""
        try:
            self._results.append(self._call())
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            self._error = error
        ended()
        with suppress(RuntimeError):  # the loop has ended
            from_thread.run_sync(self._ended.set, token=self._token)

    async def result(self) -> _Result:
        """Return what the call returns, or raise what it raises."""
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._results[0]


class Workers:
    """Threads that make calls in their order. They are daemons: only what may be broken off belongs here."""

    def __init__(self, count: int) -> None:
        """Allow ``count`` threads, each of which is started when it is needed."""
        self._count = count
        self._threads = 0
        self._waiting: SimpleQueue[tuple[Hashable, BackgroundCall[Any]]] = SimpleQueue()
        self._calls: dict[Hashable, BackgroundCall[Any]] = {}
        self._lock = threading.Lock()

    def start(self, key: Hashable, call: Callable[[], _Result]) -> BackgroundCall[_Result]:
        """Return the call with this key that waits or goes on; a new one if there is none."""
        with self._lock:
            return self._calls.get(key) or self._add(key, BackgroundCall(call, None))

    async def run(self, key: Hashable, call: Callable[[], _Result]) -> _Result:
        """Return what ``call`` returns, or an equal call that waits or goes on already.

        If all who wait for it are cancelled before it begins, it is not made.
        """
        with self._lock:
            wanted: BackgroundCall[_Result] = self._calls.get(key) or self._add(key, BackgroundCall(call, 0))
            if wanted.readers is not None:
                wanted.readers += 1
        try:
            return await wanted.result()
        finally:
            with self._lock:
                if wanted.readers is not None:
                    wanted.readers -= 1

    def _add(self, key: Hashable, new: BackgroundCall[_Result]) -> BackgroundCall[_Result]:
        self._calls[key] = new
        self._waiting.put((key, new))
        if self._threads < min(self._count, len(self._calls)):
            self._threads += 1
            threading.Thread(target=self._work, daemon=True).start()
        return new

    def _work(self) -> None:
        while True:
            key, call = self._waiting.get()
            with self._lock:
                if call.readers == 0:
                    del self._calls[key]
                    continue
            call.run(partial(self._forget, key))
            del call  # and its result, which may be large

    def _forget(self, key: Hashable) -> None:
        with self._lock:
            del self._calls[key]
