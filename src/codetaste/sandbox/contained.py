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
from codetaste.sandbox.frames import (
    CHUNK_BYTES,
    CREDIT,
    EXIT,
    KILL,
    REFUSED,
    RUN,
    STDERR,
    STDIN,
    STDOUT,
    WINDOW_BYTES,
    Frame,
)
from codetaste.sandbox.output import Kept
from codetaste.sandbox.sandbox import Completed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from codetaste.sandbox.sandbox import Limits

GRACE_S = 2.0
"""How long a command has to end of itself once it was told to."""
_END_WITHIN_S = 30.0
_FLOOD_BYTES = 64 * 1024**2
_HELD_BYTES = 2 * WINDOW_BYTES
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
            self.held_bytes += len(frame.payload)
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
        self.held_bytes -= len(frame.payload)
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
    taken: int = 0
    sink_wanted: bool = True
    reason: str = ""
    timed_out: bool = False
    told_to_end: bool = False
    deadline: float = 0.0

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

    async def output(self, frame: Frame) -> None:
        """Keep, or hand on, what it wrote, and ask for more."""
        kept = self.out if frame.kind == STDOUT else self.err
        if frame.kind == STDOUT and self.command.sink is not None:
            if self.sink_wanted:
                await self.command.sink(frame.payload)
        else:
            kept.add(frame.payload)
            if kept.total > _FLOOD_BYTES and not self.reason:
                self.reason = f"it wrote more than {_FLOOD_BYTES} bytes of output"
                await self.kill()
        self.taken += len(frame.payload)
        if self.taken >= WINDOW_BYTES // 2:
            await self.tell(CREDIT, self.taken.to_bytes(4, "big"))
            self.taken = 0

    async def to_the_end(self) -> int:
        """Follow it until it has ended, within bounds; return its exit code."""
        while True:
            frame = None
            # Whoever writes without a pause is never waited for, so that no scope would end it.
            if self.command.over or anyio.current_time() < self.deadline:
                with anyio.CancelScope(deadline=self.deadline):
                    frame = await self.command.next()
            if frame is None:
                if self.told_to_end:
                    raise SandboxError("a command inside could not be ended")
                self.timed_out = True
                await self.kill()
            elif frame.kind == EXIT:
                self.told_to_end, self.deadline = True, 0.0  # a box that says nonsense of it is given up
                return self._exit_code(frame.payload)
            elif frame.kind == REFUSED:
                said = frame.payload.decode(errors="replace")
                raise SandboxError(f"the command could not be started: {' '.join(said.split())}")
            elif frame.kind == CREDIT:
                await self.feed(int.from_bytes(frame.payload[:4], "big"))
            elif frame.kind in {STDOUT, STDERR}:
                await self.output(frame)

    def _exit_code(self, payload: bytes) -> int:
        try:
            said = json.loads(payload)
            code, swept, memory = int(said["code"]), bool(said["swept"]), bool(said["memory"])
        except (ValueError, KeyError, TypeError, RecursionError) as fault:
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
) -> Completed:
    """Run ``command`` to its end; a box in which it cannot be ended is lost.

    Raises:
        SandboxError: it could not be started or ended, or the box is lost.
    """
    began, keep = time.monotonic(), command.limits.output_bytes
    course = _Course(command, send, Kept(keep), Kept(keep))
    course.deadline = anyio.current_time() + command.limits.wall_s
    try:
        await course.tell(RUN, json.dumps({**asked, "stdin": bool(command.stdin)}).encode())
        course.begun = True
        await course.feed(WINDOW_BYTES)
        code = await course.to_the_end()
    except BaseException as fault:
        over = isinstance(fault, SandboxError) and not course.told_to_end
        if course.begun and not over:
            with anyio.CancelScope(shield=True):
                await _abandon(course, lose)
        raise
    return _completed(course, code, time.monotonic() - began)


async def _abandon(course: _Course, lose: Callable[[str], Awaitable[None]]) -> None:
    """End a command that nobody waits for any more."""
    course.sink_wanted = False
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
