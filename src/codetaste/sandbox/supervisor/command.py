"""One command in a sandbox, followed from start to end over the supervisor protocol."""

from __future__ import annotations

import json
import signal
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from codetaste.core.concurrency import background_tasks
from codetaste.errors import SandboxError
from codetaste.sandbox.base import CommandResult, MemoryEnd
from codetaste.sandbox.output import BoundedOutput
from codetaste.sandbox.supervisor.pipes import PipeReader
from codetaste.sandbox.supervisor.protocol import (
    CHUNK_BYTES,
    CREDIT,
    EXIT,
    KILL,
    REFUSAL,
    RUN,
    STDIN,
    WINDOW_BYTES,
    Frame,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from codetaste.sandbox.base import CommandLimits
    from codetaste.sandbox.supervisor.pipes import PipePool

GRACE_S = 2.0
"""Seconds between TERM and KILL."""
_END_WITHIN_S = 30.0
_FLOOD_BYTES = 64 * 1024**2
_MAX_PENDING_BYTES = 64 * 1024
_FRAME_BYTES = 64
"""Memory of a frame without payload."""
_KILLED = 128 + signal.SIGKILL


@dataclass(slots=True)
class RemoteCommand:
    """A command and the frames about it that were received and not yet handled.

    ``exited`` is set once its exit frame is among them.
    """

    number: int
    limits: CommandLimits
    stdin: bytes
    sink: Callable[[bytes], Awaitable[None]] | None
    frames: deque[Frame] = field(default_factory=deque)
    pending_bytes: int = 0
    problem: str = ""
    exited: bool = False
    changed: anyio.Event = field(default_factory=anyio.Event)

    def deliver(self, frame: Frame | None, problem: str = "") -> None:
        """Receive a frame about the command, or the reason why no more will come.

        Raises:
            SandboxError: the supervisor sent more than it may.
        """
        if frame is not None:
            self.frames.append(frame)
            self.exited = self.exited or frame.kind == EXIT
            self.pending_bytes += _FRAME_BYTES + len(frame.payload)
            if self.pending_bytes > _MAX_PENDING_BYTES:
                raise SandboxError("the sandbox supervisor sent more frames than requested")
        self.problem = self.problem or problem
        self.changed.set()

    async def next_frame(self) -> Frame:
        """Return the next frame about the command.

        Raises:
            SandboxError: no more will come.
        """
        while not self.frames:
            if self.problem:
                raise SandboxError(self.problem)
            self.changed = anyio.Event()
            await self.changed.wait()
        frame = self.frames.popleft()
        self.pending_bytes -= _FRAME_BYTES + len(frame.payload)
        return frame


@dataclass(slots=True)
class _CommandRun:
    """The state of a running command."""

    command: RemoteCommand
    send: Callable[[Frame], Awaitable[None]]
    out: BoundedOutput
    err: BoundedOutput
    started: bool = False
    fed: int = 0
    reason: str = ""
    memory: MemoryEnd | None = None
    fault: Exception | None = None
    timed_out: bool = False
    end_requested: bool = False
    deadline: float = 0.0
    receiving: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def send_frame(self, kind: bytes, payload: bytes = b"") -> None:
        await self.send(Frame(kind, self.command.number, payload))

    async def feed(self, room: int) -> None:
        """Send as much of standard input as fits in ``room`` bytes; an empty frame is its end."""
        stdin, until = self.command.stdin, min(self.fed + room, len(self.command.stdin))
        while self.fed < until:
            piece = stdin[self.fed : min(self.fed + CHUNK_BYTES, until)]
            self.fed += len(piece)
            await self.send_frame(STDIN, piece)
            if self.fed == len(stdin):
                await self.send_frame(STDIN)

    async def kill(self) -> None:
        """Send TERM, then KILL, to all processes of the command."""
        if not self.end_requested:
            self.end_requested = True
            self.deadline = anyio.current_time() + GRACE_S + _END_WITHIN_S
            await self.send_frame(KILL, int(GRACE_S * 1000).to_bytes(4, "big"))

    async def take_stdout(self, piece: bytes) -> None:
        """Store standard output, or pass it to the sink."""
        if self.command.sink is not None:
            await self.command.sink(piece)
        else:
            self._store(self.out, piece)

    async def take_stderr(self, piece: bytes) -> None:
        self._store(self.err, piece)

    def _store(self, output: BoundedOutput, piece: bytes) -> None:
        output.add(piece)
        if output.total > _FLOOD_BYTES and not self.reason:
            self.reason = f"it wrote more than {_FLOOD_BYTES} bytes of output"
            self.receiving.cancel()

    def record_fault(self, fault: Exception) -> None:
        """Record that the output could not be stored or passed on."""
        self.fault = self.fault or fault
        self.receiving.cancel()

    async def follow(self) -> int:
        """Follow the command to its end, within bounds; return its exit code."""
        while True:
            frame = await self._next_frame()
            if frame is None:
                await self._enforce_end()
            elif frame.kind == EXIT:
                # A sandbox with an invalid exit report is given up.
                self.end_requested, self.deadline = True, 0.0
                return self._exit_code(frame.payload)
            elif frame.kind == REFUSAL:
                message = frame.payload.decode(errors="replace")
                raise SandboxError(f"the command could not be started: {' '.join(message.split())}")
            elif frame.kind == CREDIT:
                await self.feed(int.from_bytes(frame.payload[:4], "big"))

    async def _next_frame(self) -> Frame | None:
        """Return the next frame; None when the deadline has passed or the output needs the command ended."""
        frame = None
        if (self.fault or self.reason) and not self.end_requested:
            return None
        if self.command.exited or anyio.current_time() < self.deadline:
            with anyio.CancelScope(deadline=self.deadline) as self.receiving:
                frame = await self.command.next_frame()
        return frame

    async def _enforce_end(self) -> None:
        """End the command where its deadline or its output requires that."""
        if not self.end_requested:
            if self.fault is not None:
                raise self.fault
            self.timed_out = not self.reason
            await self.kill()
        elif anyio.current_time() >= self.deadline:
            raise SandboxError("a command in the sandbox could not be ended")

    def _exit_code(self, payload: bytes) -> int:
        try:
            report = json.loads(payload)
            code, swept, memory = int(report["code"]), bool(report["swept"]), report["memory"]
            self.err.add(str(report.get("message", "")).encode())
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as fault:
            raise SandboxError(
                f"unreadable exit report from the sandbox supervisor: {payload[:80]!r}"
            ) from fault
        if not swept:
            raise SandboxError("processes of a command in the sandbox could not be ended")
        self.memory = MemoryEnd[memory] if memory else None
        return code


async def run_command(
    command: RemoteCommand,
    request: Mapping[str, object],
    send: Callable[[Frame], Awaitable[None]],
    fail: Callable[[str], Awaitable[None]],
    pipes: PipePool,
) -> CommandResult:
    """Run ``command`` to its end; a sandbox in which it cannot be ended is given up by ``fail``.

    Raises:
        SandboxError: the command could not be started or ended, or the sandbox is gone.
    """
    started, output_bytes = time.monotonic(), command.limits.output_bytes
    run = _CommandRun(command, send, BoundedOutput(output_bytes), BoundedOutput(output_bytes))
    run.deadline = anyio.current_time() + command.limits.wall_s
    try:
        async with pipes.lease() as out, pipes.lease() as err, background_tasks() as tasks:
            readings = (
                PipeReader(out, run.take_stdout, run.record_fault),
                PipeReader(err, run.take_stderr, run.record_fault),
            )
            for reading in readings:
                tasks.start_soon(reading.run)
            names = [out.path.name, err.path.name]
            code = await _run_to_end(run, {**request, "outputs": names}, readings, fail)
            for reading in readings:
                reading.end()
            for reading in readings:
                await reading.wait_drained()
    except OSError as fault:
        if fault is run.fault:
            raise
        raise SandboxError(
            f"cannot open a pipe for the output of a command in the sandbox: {fault}"
        ) from fault
    if run.fault is not None:
        raise run.fault
    return _command_result(run, code, time.monotonic() - started)


async def _run_to_end(
    run: _CommandRun,
    request: Mapping[str, object],
    readings: Sequence[PipeReader],
    fail: Callable[[str], Awaitable[None]],
) -> int:
    """Start the command and follow it to its end; end it if anything fails meanwhile."""
    try:
        await run.send_frame(RUN, json.dumps({**request, "stdin": bool(run.command.stdin)}).encode())
        run.started = True
        await run.feed(WINDOW_BYTES)
        return await run.follow()
    except BaseException as fault:
        lost = isinstance(fault, SandboxError) and not run.end_requested
        if run.started and (not lost or fault is run.fault):
            for reading in readings:
                reading.discard()
            with anyio.CancelScope(shield=True):
                try:
                    await run.kill()
                    await run.follow()
                except SandboxError as lost_fault:
                    await fail(str(lost_fault))
        raise


def _command_result(run: _CommandRun, code: int, wall_s: float) -> CommandResult:
    out, err = run.out, run.err
    exit_code = _KILLED if run.reason else None if run.timed_out and not run.memory else code
    reason = run.reason or run.memory or ""
    return CommandResult(
        exit_code=exit_code,
        stdout=out.content(),
        stderr=err.content() + (f"\n[killed: {reason}]\n".encode() if reason else b""),
        truncated=out.truncated or err.truncated,
        timed_out=exit_code is None,
        wall_s=wall_s,
        memory=run.memory,
    )
