"""One command inside of a box, from its start to its end, as frames tell of it."""

from __future__ import annotations

import json
import signal
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import SandboxError
from codetaste.sandbox.beside import beside
from codetaste.sandbox.frames import (
    CHUNK_BYTES,
    CREDIT,
    EXIT,
    KILL,
    REFUSED,
    RUN,
    STDIN,
    WINDOW_BYTES,
    Frame,
)
from codetaste.sandbox.output import Kept
from codetaste.sandbox.pipes import Reading
from codetaste.sandbox.sandbox import Completed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from codetaste.sandbox.pipes import Pipes
    from codetaste.sandbox.sandbox import Limits

GRACE_S = 2.0
"""How long a command has to end of itself once it was told to."""
_END_WITHIN_S = 30.0
_FLOOD_BYTES = 64 * 1024**2
_HELD_BYTES = 64 * 1024
_FRAME_BYTES = 64
"""What one costs that says nothing."""
_KILLED = 128 + signal.SIGKILL


@dataclass(slots=True)
class Command:
    """What was asked for, and what was heard of it and not yet looked at; ``over``: its end among that."""

    number: int
    limits: Limits
    stdin: bytes
    sink: Callable[[bytes], Awaitable[None]] | None
    heard: deque[Frame] = field(default_factory=deque)
    held_bytes: int = 0
    problem: str = ""
    over: bool = False
    news: anyio.Event = field(default_factory=anyio.Event)

    def take(self, frame: Frame | None, problem: str = "") -> None:
        """Hear what came from inside, or that nothing more will.

        Raises:
            SandboxError: more came than was asked for.
        """
        if frame is not None:
            self.heard.append(frame)
            self.over = self.over or frame.kind == EXIT
            self.held_bytes += _FRAME_BYTES + len(frame.payload)
            if self.held_bytes > _HELD_BYTES:
                raise SandboxError("the program inside sent more than it was asked for")
        self.problem = self.problem or problem
        self.news.set()

    async def next(self) -> Frame:
        """Return the next frame about it.

        Raises:
            SandboxError: there will be none.
        """
        while not self.heard:
            if self.problem:
                raise SandboxError(self.problem)
            self.news = anyio.Event()
            await self.news.wait()
        frame = self.heard.popleft()
        self.held_bytes -= _FRAME_BYTES + len(frame.payload)
        return frame


@dataclass(slots=True)
class _Course:
    """How far a command has come."""

    command: Command
    send: Callable[[Frame], Awaitable[None]]
    out: Kept
    err: Kept
    begun: bool = False
    fed: int = 0
    reason: str = ""
    fault: Exception | None = None
    timed_out: bool = False
    told_to_end: bool = False
    deadline: float = 0.0
    listening: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def tell(self, kind: bytes, payload: bytes = b"") -> None:
        await self.send(Frame(kind, self.command.number, payload))

    async def feed(self, room: int) -> None:
        """Send as much of standard input as there is room for; an empty piece is its end."""
        stdin, until = self.command.stdin, min(self.fed + room, len(self.command.stdin))
        while self.fed < until:
            piece = stdin[self.fed : min(self.fed + CHUNK_BYTES, until)]
            self.fed += len(piece)
            await self.tell(STDIN, piece)
            if self.fed == len(stdin):
                await self.tell(STDIN)

    async def kill(self) -> None:
        """Have it ended: TERM, then KILL, to all that it started."""
        if not self.told_to_end:
            self.told_to_end = True
            self.deadline = anyio.current_time() + GRACE_S + _END_WITHIN_S
            await self.tell(KILL, int(GRACE_S * 1000).to_bytes(4, "big"))

    async def keep_out(self, piece: bytes) -> None:
        """Keep, or hand on, what it wrote to standard output."""
        if self.command.sink is not None:
            await self.command.sink(piece)
        else:
            self._keep(self.out, piece)

    async def keep_err(self, piece: bytes) -> None:
        """Keep what it wrote to standard error."""
        self._keep(self.err, piece)

    def _keep(self, kept: Kept, piece: bytes) -> None:
        kept.add(piece)
        if kept.total > _FLOOD_BYTES and not self.reason:
            self.reason = f"it wrote more than {_FLOOD_BYTES} bytes of output"
            self.listening.cancel()

    def failed(self, fault: Exception) -> None:
        """Take note that its output could not be handed on."""
        self.fault = self.fault or fault
        self.listening.cancel()

    async def to_the_end(self) -> int:
        """Follow it until it has ended, within bounds; return its exit code."""
        while True:
            frame = await self._next()
            if frame is None:
                await self._see_to_it()
            elif frame.kind == EXIT:
                self.told_to_end, self.deadline = True, 0.0  # a box that says nonsense of it is given up
                return self._exit_code(frame.payload)
            elif frame.kind == REFUSED:
                said = frame.payload.decode(errors="replace")
                raise SandboxError(f"the command could not be started: {' '.join(said.split())}")
            elif frame.kind == CREDIT:
                await self.feed(int.from_bytes(frame.payload[:4], "big"))

    async def _next(self) -> Frame | None:
        """Return what is heard of it next; None when its time is over, or its output wants to be seen to."""
        frame = None
        if (self.fault or self.reason) and not self.told_to_end:
            return None
        if self.command.over or anyio.current_time() < self.deadline:
            with anyio.CancelScope(deadline=self.deadline) as self.listening:
                frame = await self.command.next()
        return frame

    async def _see_to_it(self) -> None:
        """Have it ended that has to be."""
        if not self.told_to_end:
            if self.fault is not None:
                raise self.fault
            self.timed_out = not self.reason
            await self.kill()
        elif anyio.current_time() >= self.deadline:
            raise SandboxError("a command inside could not be ended")

    def _exit_code(self, payload: bytes) -> int:
        try:
            said = json.loads(payload)
            code, swept, memory = int(said["code"]), bool(said["swept"]), bool(said["memory"])
            self.err.add(str(said.get("said", "")).encode())
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as fault:
            raise SandboxError(f"the program inside says of a command's end: {payload[:80]!r}") from fault
        if not swept:
            raise SandboxError("what a command inside had started could not be ended")
        if memory and not self.reason:
            self.reason = "out of memory"
        return code


async def serve(
    command: Command,
    asked: Mapping[str, object],
    send: Callable[[Frame], Awaitable[None]],
    lose: Callable[[str], Awaitable[None]],
    pipes: Pipes,
) -> Completed:
    """Run ``command`` to its end; a box in which it cannot be ended is lost.

    Raises:
        SandboxError: it could not be started or ended, or the box is lost.
    """
    began, keep = time.monotonic(), command.limits.output_bytes
    course = _Course(command, send, Kept(keep), Kept(keep))
    course.deadline = anyio.current_time() + command.limits.wall_s
    try:
        async with pipes.taken() as out, pipes.taken() as err, beside() as tasks:
            readings = (
                Reading(out, course.keep_out, course.failed),
                Reading(err, course.keep_err, course.failed),
            )
            for reading in readings:
                tasks.start_soon(reading.run)
            names = [out.path.name, err.path.name]
            code = await _followed(course, {**asked, "outputs": names}, readings, lose)
            for reading in readings:
                reading.end()
            for reading in readings:
                await reading.ended()
    except OSError as fault:
        if fault is course.fault:
            raise
        raise SandboxError(f"there is no pipe for the output of a command inside: {fault}") from fault
    if course.fault is not None:
        raise course.fault
    return _completed(course, code, time.monotonic() - began)


async def _followed(
    course: _Course,
    asked: Mapping[str, object],
    readings: Sequence[Reading],
    lose: Callable[[str], Awaitable[None]],
) -> int:
    """Start a command and follow it to its end, whatever happens meanwhile."""
    try:
        await course.tell(RUN, json.dumps({**asked, "stdin": bool(course.command.stdin)}).encode())
        course.begun = True
        await course.feed(WINDOW_BYTES)
        return await course.to_the_end()
    except BaseException as fault:
        over = isinstance(fault, SandboxError) and not course.told_to_end
        if course.begun and (not over or fault is course.fault):
            for reading in readings:
                reading.discard()
            with anyio.CancelScope(shield=True):
                await _abandon(course, lose)
        raise


async def _abandon(course: _Course, lose: Callable[[str], Awaitable[None]]) -> None:
    """End a command that nobody waits for any more."""
    try:
        await course.kill()
        await course.to_the_end()
    except SandboxError as fault:
        await lose(str(fault))


def _completed(course: _Course, code: int, wall_s: float) -> Completed:
    out, err, reason = course.out, course.err, course.reason
    stderr = err.content() + (f"\n[killed: {reason}]\n".encode() if reason else b"")
    ended = (
        None if course.timed_out and not reason else _KILLED if reason and reason != "out of memory" else code
    )
    return Completed(ended, out.content(), stderr, out.truncated or err.truncated, ended is None, wall_s)
