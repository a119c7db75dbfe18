"""One contained command: what is run, how an engine launches it, and its run to the end within limits.

When a run is over, however it ended, no process of the command is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.sandbox.base import CommandResult
from codetaste.sandbox.containment.lifetime import StatusPipe, kill_namespace, wait_gone
from codetaste.sandbox.containment.resources import (
    argv_in_cgroup,
    make_cgroup,
    measure_folder,
    measure_process_tree,
    remove_cgroup,
)
from codetaste.sandbox.output import BoundedOutput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from anyio.abc import ByteReceiveStream, Process

    from codetaste.sandbox.base import CommandLimits
    from codetaste.sandbox.containment.host_view import HostView
    from codetaste.sandbox.containment.lifetime import ParentDeathGuard

SCRATCH_BYTES = 64 * 1024**2
"""Limit of the temporary folder of a command, and of any one file that it writes."""
OPEN_FILES = 1024
_FLOOD_BYTES = 64 * 1024**2
_WATCH_EVERY_S, _END_WITHIN_S, _DRAIN_WITHIN_S = 0.1, 10.0, 2.0
_KILLED = 128 + signal.SIGKILL
_STREAM_ENDED = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command in one folder. Paths are real ones of the host."""

    command: tuple[str, ...]
    tree: Path
    tools: Mapping[str, Path]
    env: Mapping[str, str]
    limits: CommandLimits
    view: HostView


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """A program that runs a command contained, and reports on ``status``.

    ``status`` is the reading end of a pipe with lines of JSON: ``{"child-pid": N}`` once there is a first
    process in the namespace, ``{"exit-code": N}`` when the command ended, ``{"error": text}`` when it could
    not be contained.
    """

    argv: tuple[str, ...]
    inherited_fds: tuple[int, ...]
    """Descriptors that the program inherits; the caller closes them after the start."""
    status_fd: int
    has_pid_namespace: bool
    """Whether killing the first process ends all others."""
    own_processes: int
    """Number of processes of the engine itself."""
    guard: ParentDeathGuard | None = None
    """Kills the program when codetaste dies."""
    scratch: Path | None = None
    """A host folder that the command may write to, removed by the program at the end."""


@dataclass(slots=True)
class _RunningProcess:
    """One contained program; ``reason`` is the first reason for ending it early."""

    process: Process
    start: LaunchPlan
    report: StatusPipe
    limits: CommandLimits
    group: Path | None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    reason: str = ""
    ended: bool = False
    oom_score_set: bool = False

    def stop(self, reason: str) -> None:
        """Kill the command because of ``reason``."""
        self.reason = self.reason or reason
        self.scope.cancel()


async def run_contained(start: LaunchPlan, limits: CommandLimits, stdin: bytes) -> CommandResult:
    """Run a contained program; when this returns or is cancelled all its processes are gone.

    Raises:
        SandboxError: it could not be started, contained, or ended.
    """
    started = time.monotonic()
    out, err = BoundedOutput(limits.output_bytes), BoundedOutput(limits.output_bytes)
    running = await _start(start, limits, stdin)
    try:
        async with anyio.create_task_group() as tasks:
            drained = [anyio.Event(), anyio.Event()]
            tasks.start_soon(_drain, running, running.process.stdout, out, drained[0])
            tasks.start_soon(_drain, running, running.process.stderr, err, drained[1])
            tasks.start_soon(_feed, running, stdin)
            tasks.start_soon(_watch, running)
            running.scope.deadline = anyio.current_time() + limits.wall_s - (time.monotonic() - started)
            with running.scope:
                await running.process.wait()
            await _end(running)
            with anyio.move_on_after(_DRAIN_WITHIN_S):
                for stream in drained:
                    await stream.wait()
            tasks.cancel_scope.cancel()
    finally:
        await _end(running)
        with anyio.CancelScope(shield=True):
            await running.process.aclose()
            await _clean_up(start, running.group)
        running.report.close()
    return _result(running, out, err, time.monotonic() - started)


async def _start(start: LaunchPlan, limits: CommandLimits, stdin: bytes) -> _RunningProcess:
    """Start the program; shielded, because a cancelled start would leave an unknown process."""
    with anyio.CancelScope(shield=True):
        group = await to_thread.run_sync(make_cgroup, limits.processes + start.own_processes + 1)
        try:
            process = await anyio.open_process(
                argv_in_cgroup(group, start.argv),
                stdin=PIPE if stdin else DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                cwd="/",
                env={},
                pass_fds=start.inherited_fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as fault:
            os.close(start.status_fd)
            if start.guard is not None:
                start.guard.release()
            await _clean_up(start, group)
            raise SandboxError(f"cannot start {start.argv[0]}: {fault}") from fault
        finally:
            for descriptor in start.inherited_fds:
                os.close(descriptor)
    return _RunningProcess(process, start, StatusPipe(start.status_fd), limits, group)


async def _clean_up(start: LaunchPlan, group: Path | None) -> None:
    """Remove leftovers on the host: the launcher may have been killed before it could."""
    await to_thread.run_sync(remove_cgroup, group)
    if start.scratch is not None and await anyio.Path(start.scratch).exists():
        # Not shutil.rmtree: it gives up on trees that are nested too deeply.
        await anyio.run_process(["/bin/rm", "-rf", "--", str(start.scratch)], check=False)


async def _drain(
    running: _RunningProcess, stream: ByteReceiveStream | None, output: BoundedOutput, drained: anyio.Event
) -> None:
    with contextlib.suppress(*_STREAM_ENDED):
        while stream is not None and not running.reason:
            output.add(await stream.receive())
            if output.total > _FLOOD_BYTES:
                running.stop(f"it wrote more than {_FLOOD_BYTES} bytes of output")
    drained.set()


async def _feed(running: _RunningProcess, stdin: bytes) -> None:
    stream = running.process.stdin
    if stream is None:
        return
    with contextlib.suppress(*_STREAM_ENDED, OSError):
        await stream.send(stdin)
    with contextlib.suppress(*_STREAM_ENDED, OSError):
        await stream.aclose()


async def _watch(running: _RunningProcess) -> None:
    """Enforce what kernel limits do not cover: all processes together, and those of root."""
    limits, scratch = running.limits, running.start.scratch
    while True:
        await anyio.sleep(_WATCH_EVERY_S)
        used = await to_thread.run_sync(measure_process_tree, running.process.pid, limits.memory_bytes)
        if not running.oom_score_set:
            running.oom_score_set = True
            for pid in used.pids:
                # When the host runs out of memory, the command is killed before the run that started it;
                # children inherit the score.
                with contextlib.suppress(OSError):
                    await anyio.Path(f"/proc/{pid}/oom_score_adj").write_bytes(b"1000")
        if used.threads > limits.processes + running.start.own_processes:
            running.stop(f"it had more than {limits.processes} processes and threads")
        if used.memory_bytes > limits.memory_bytes:
            running.stop(f"it used more than {limits.memory_bytes} bytes of memory")
        if scratch and await to_thread.run_sync(measure_folder, scratch, SCRATCH_BYTES) > SCRATCH_BYTES:
            running.stop(f"it wrote more than {SCRATCH_BYTES} bytes of temporary files")


async def _end(running: _RunningProcess) -> None:
    """Kill what is left and wait until it is gone, in bounded time."""
    if running.ended:
        return
    process = running.process
    with anyio.move_on_after(_END_WITHIN_S, shield=True):
        if process.returncode is None:
            await _kill_all(running)
        if process.returncode is None:
            process.kill()
            await process.wait()
        first_pid = running.report.first_pid()
        if first_pid is not None:
            await wait_gone(first_pid)
        if running.start.guard is not None:
            await running.start.guard.release_and_wait()
        running.ended = True


async def _kill_all(running: _RunningProcess) -> None:
    """Kill so that no process is left: the first one of a namespace ends all others."""
    process = running.process
    with anyio.move_on_after(_END_WITHIN_S / 2), contextlib.suppress(ProcessLookupError):
        if running.start.has_pid_namespace:
            await kill_namespace(process, running.report)
        else:
            process.terminate()  # the launcher ends all its descendants, then itself
            await process.wait()


def _result(running: _RunningProcess, out: BoundedOutput, err: BoundedOutput, wall_s: float) -> CommandResult:
    if not running.ended:
        raise SandboxError(
            f"a contained command was not ended within {_END_WITHIN_S:g} s: process {running.process.pid}"
        )
    timed_out = running.scope.cancelled_caught and not running.reason
    code = running.report.exit_code()
    stderr = err.content()
    if running.reason:
        code, stderr = _KILLED, stderr + f"\n[killed: {running.reason}]\n".encode()
    elif timed_out:
        code = None
    elif code is None:
        message = " ".join((running.report.error() or stderr.decode(errors="replace")).split())
        problem = message or f"its launcher ended with {running.process.returncode}"
        raise SandboxError(f"the command could not be contained: {problem}")
    return CommandResult(code, out.content(), stderr, out.truncated or err.truncated, timed_out, wall_s)
