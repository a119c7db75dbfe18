"""What a command in a box writes: named pipes in a folder that its box has mounted, read by us directly.

No program stands between a command and us, so that output costs what a pipe costs, and whoever writes faster
than we read waits. A folder that is mounted read-only is no hindrance: a pipe is only found there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio import lowlevel, to_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

PIPE_BYTES = 256 * 1024
"""How much may be on its way; where the kernel gives less, that."""
_MODE = 0o666
"""Whoever runs inside may be another user than we are; the folder is as private as the box."""


@dataclass(frozen=True, slots=True)
class Pipe:
    """A named pipe, which we hold open for both directions, so that there is always a reader and no end."""

    path: Path
    descriptor: int

    def read(self) -> bytes:
        """Return what is there, at most ``PIPE_BYTES``, b"" for nothing."""
        try:
            return os.read(self.descriptor, PIPE_BYTES)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Give it up, and its name."""
        os.close(self.descriptor)
        with contextlib.suppress(OSError):
            self.path.unlink()


def _make(path: Path) -> Pipe:
    os.mkfifo(path)
    path.chmod(_MODE)
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # a user may have only so much of it
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return Pipe(path, descriptor)


@dataclass(slots=True)
class Pipes:
    """The pipes of one box. Those whose command has left them clean serve the next one."""

    folder: Path
    _free: list[Pipe] = field(default_factory=list)
    _made: int = 0

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[Pipe]:
        """Give one that nobody else has, for a command that has ended with all it started by the block's end.

        Raises:
            OSError: none can be made.
        """
        pipe = await self._take()
        try:
            yield pipe
        except BaseException:
            pipe.close()
            raise
        self._give_back(pipe)

    async def _take(self) -> Pipe:
        if self._free:
            return self._free.pop()
        self._made += 1
        return await to_thread.run_sync(_make, self.folder / f"pipe-{self._made}")

    def _give_back(self, pipe: Pipe) -> None:
        again = None
        with contextlib.suppress(OSError):
            again = _alone(pipe)
        if again is not None:
            self._free.append(again)
        else:
            with contextlib.suppress(OSError):
                pipe.path.unlink()

    def close(self) -> None:
        """Give up those that nobody has."""
        while self._free:
            self._free.pop().close()


def _alone(pipe: Pipe) -> Pipe | None:
    """Close ``pipe``; return it opened again if it is empty and nobody else holds it to write to."""
    try:
        reading = _again(pipe.descriptor, os.O_RDONLY)
    finally:
        os.close(pipe.descriptor)
    try:
        if os.read(reading, 1):
            return None
        return Pipe(pipe.path, _again(reading, os.O_RDWR))
    except BlockingIOError:
        return None
    finally:
        os.close(reading)


def _again(descriptor: int, direction: int) -> int:
    # By the descriptor: that is memory, and the path a disk.
    return os.open(f"/proc/self/fd/{descriptor}", direction | os.O_NONBLOCK | os.O_CLOEXEC)


@dataclass(slots=True)
class Reading:
    """Hands on what comes through ``pipe``; ``fault`` is what the taker raised, who then gets no more."""

    pipe: Pipe
    taker: Callable[[bytes], Awaitable[None]]
    failed: Callable[[Exception], None]
    _over: bool = False
    _discarding: bool = False
    _waiting: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _done: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Read until the end was said, and all that was written before."""
        while not self._over:
            data = self.pipe.read()
            if data:
                await self._hand_on(data)
                continue
            with anyio.CancelScope() as self._waiting:
                await anyio.wait_readable(self.pipe.descriptor)
        # Should somebody else hold it open, there is no more of ours in it than it can hold.
        left = fcntl.fcntl(self.pipe.descriptor, fcntl.F_GETPIPE_SZ)
        while left > 0 and (data := self.pipe.read()):
            left -= len(data)
            await self._hand_on(data)
        self._done.set()

    async def _hand_on(self, data: bytes) -> None:
        if not self._discarding:
            try:
                await self.taker(data)
            except Exception as fault:  # noqa: BLE001 (whatever it is, it is the taker's own)
                self.discard()
                self.failed(fault)
        await lowlevel.checkpoint()

    def discard(self) -> None:
        """Read on, so that nobody has to wait, but hand nothing on."""
        self._discarding = True

    def end(self) -> None:
        """Say that nobody writes any more."""
        self._over = True
        self._waiting.cancel()

    async def ended(self) -> None:
        """Wait until all that was written is handed on."""
        await self._done.wait()
