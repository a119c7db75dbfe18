"""Named pipes for the output of commands, in a folder that the sandbox has mounted.

The host reads them directly, so that output costs no more than a pipe, and a command that writes faster than
the host reads has to wait. A pipe can be written to although its folder is mounted read-only.
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
"""Capacity of a pipe, where the kernel allows it."""
_MODE = 0o666
"""Commands may run as another user; the folder is as private as the sandbox."""


@dataclass(frozen=True, slots=True)
class Pipe:
    """A named pipe, open for reading and writing, so that there is always a reader and never an end."""

    path: Path
    descriptor: int

    def read(self) -> bytes:
        """Return the available bytes, at most ``PIPE_BYTES``, b"" for none."""
        try:
            return os.read(self.descriptor, PIPE_BYTES)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close the pipe and remove its name."""
        os.close(self.descriptor)
        with contextlib.suppress(OSError):
            self.path.unlink()


def _make_pipe(path: Path) -> Pipe:
    os.mkfifo(path)
    path.chmod(_MODE)
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # the kernel limits the total per user
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return Pipe(path, descriptor)


@dataclass(slots=True)
class PipePool:
    """The pipes of one sandbox. A pipe that is clean after its command is used for the next one."""

    folder: Path
    _free: list[Pipe] = field(default_factory=list)
    _made: int = 0

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Pipe]:
        """Lease an exclusive pipe to a command all of whose processes have ended by the end of the block.

        Raises:
            OSError: it cannot be created.
        """
        if self._free:
            pipe = self._free.pop()
        else:
            self._made += 1
            pipe = await to_thread.run_sync(_make_pipe, self.folder / f"pipe-{self._made}")
        try:
            yield pipe
        except BaseException:
            pipe.close()
            raise
        clean = None
        with contextlib.suppress(OSError):
            clean = _reopen_clean(pipe)
        if clean is not None:
            self._free.append(clean)
        else:
            with contextlib.suppress(OSError):
                pipe.path.unlink()

    def close(self) -> None:
        """Close the pipes that are not leased."""
        while self._free:
            self._free.pop().close()


def _reopen_clean(pipe: Pipe) -> Pipe | None:
    """Close ``pipe``; return it reopened if it is empty and no other process can write to it."""
    try:
        reading = _reopen(pipe.descriptor, os.O_RDONLY)
    finally:
        os.close(pipe.descriptor)
    try:
        if os.read(reading, 1):
            return None
        return Pipe(pipe.path, _reopen(reading, os.O_RDWR))
    except BlockingIOError:
        return None
    finally:
        os.close(reading)


def _reopen(descriptor: int, direction: int) -> int:
    # By the descriptor, because resolving the path may access a disk.
    return os.open(f"/proc/self/fd/{descriptor}", direction | os.O_NONBLOCK | os.O_CLOEXEC)


@dataclass(slots=True)
class PipeReader:
    """Passes the bytes of ``pipe`` to ``sink`` until that raises, which is reported to ``on_fault``."""

    pipe: Pipe
    sink: Callable[[bytes], Awaitable[None]]
    on_fault: Callable[[Exception], None]
    _ending: bool = False
    _discarding: bool = False
    _waiting: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _done: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Read until ``end`` was called, and then all that was written before."""
        while not self._ending:
            data = self.pipe.read()
            if data:
                await self._pass_on(data)
                continue
            with anyio.CancelScope() as self._waiting:
                await anyio.wait_readable(self.pipe.descriptor)
        # If another process holds it open, at most one capacity of it is output of the command.
        left = fcntl.fcntl(self.pipe.descriptor, fcntl.F_GETPIPE_SZ)
        while left > 0 and (data := self.pipe.read()):
            left -= len(data)
            await self._pass_on(data)
        self._done.set()

    async def _pass_on(self, data: bytes) -> None:
        if not self._discarding:
            try:
                await self.sink(data)
            except Exception as fault:  # noqa: BLE001 (any exception of the sink is reported)
                self.discard()
                self.on_fault(fault)
        await lowlevel.checkpoint()

    def discard(self) -> None:
        """Go on reading, so that no writer has to wait, but pass nothing on."""
        self._discarding = True

    def end(self) -> None:
        """Record that no process writes any more."""
        self._ending = True
        self._waiting.cancel()

    async def wait_drained(self) -> None:
        """Wait until all that was written is passed on."""
        await self._done.wait()
