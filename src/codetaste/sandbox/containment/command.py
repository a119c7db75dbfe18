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

from codetaste.core.files import remove_tree
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

    from anyio.abc import ByteReceiveStream, ByteSendStream, Process

    from codetaste.sandbox.base import CommandLimits
    from codetaste.sandbox.containment.host_view import HostView
    from codetaste.sandbox.containment.lifetime import ParentDeathGuard

SCRATCH_BYTES = 64 * 1024**2
"""Limit of the temporary folder of a command, and of any one file that it writes."""
OPEN_FILES = 1024
_FLOOD_BYTES = 64 * 1024**2
_WATCH_EVERY_S, _DRAIN_WITHIN_S = 0.1, 2.0
END_WITHIN_S = 10.0
"""Until a killed program must be gone."""
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
    """A program that runs a command contained, and reports on ``status_fd``.

    ``status_fd`` is the reading end of a pipe with lines of JSON: ``{"child-pid": N}`` once there is a first
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
class ContainedProgram:
    """A started launch plan; once ``ended`` is true none of its processes is left."""

    process: Process
    plan: LaunchPlan
    status: StatusPipe
    group: Path | None
    ended: bool = False

    async def end(self) -> None:
        """Kill what is left and wait until it is gone; if that takes too long, ``ended`` stays false."""
        if self.ended:
            return
        process = self.process
        with anyio.move_on_after(END_WITHIN_S, shield=True):
            if process.returncode is None:
                with anyio.move_on_after(END_WITHIN_S / 2), contextlib.suppress(ProcessLookupError):
                    if self.plan.has_pid_namespace:
                        await kill_namespace(process, self.status)
                    else:
                        process.terminate()  # the launcher ends all its descendants, then itself
                        await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            first_pid = self.status.first_pid()
            if first_pid is not None:
                await wait_gone(first_pid)
            self.ended = True

    async def close(self) -> None:
        """Release what the program had on the host."""
        with anyio.CancelScope(shield=True):
            await self.process.aclose()
            if self.plan.guard is not None:
                await self.plan.guard.release_and_wait()
            await _clean_up(self.plan, self.group)
        self.status.close()


async def start_contained(
    plan: LaunchPlan, processes: int, *, stdin: int = DEVNULL, stdout: int = DEVNULL
) -> ContainedProgram:
    """Start a program of at most ``processes``; shielded: a cancelled start would leave an unknown process.

    Raises:
        SandboxError: it could not be started.
    """
    with anyio.CancelScope(shield=True):
        group = await to_thread.run_sync(make_cgroup, processes)
        try:
            process = await anyio.open_process(
                argv_in_cgroup(group, plan.argv),
                stdin=stdin,
                stdout=stdout,
                stderr=PIPE,
                cwd="/",
                env={},
                pass_fds=plan.inherited_fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as fault:
            os.close(plan.status_fd)
            if plan.guard is not None:
                plan.guard.release()
            await _clean_up(plan, group)
            raise SandboxError(f"cannot start {plan.argv[0]}: {fault}") from fault
        finally:
            for descriptor in plan.inherited_fds:
                os.close(descriptor)
    return ContainedProgram(process, plan, StatusPipe(plan.status_fd), group)


async def _clean_up(plan: LaunchPlan, group: Path | None) -> None:
    """Remove leftovers on the host: the launcher may have been killed before it could."""
    await to_thread.run_sync(remove_cgroup, group)
    if plan.scratch is not None:
        await to_thread.run_sync(remove_tree, plan.scratch)


@dataclass(slots=True)
class _CommandRun:
    """A running command; ``reason`` is the first reason for ending it early."""

    program: ContainedProgram
    limits: CommandLimits
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    reason: str = ""

    def stop(self, reason: str) -> None:
        """Kill the command because of ``reason``."""
        self.reason = self.reason or reason
        self.scope.cancel()


async def run_contained(plan: LaunchPlan, limits: CommandLimits, stdin: bytes) -> CommandResult:
    """Run a contained command; when this returns or is cancelled all its processes are gone.

    Raises:
        SandboxError: it could not be started, contained, or ended.
    """
    started = time.monotonic()
    out, err = BoundedOutput(limits.output_bytes), BoundedOutput(limits.output_bytes)
    program = await start_contained(
        plan,
        limits.processes + plan.own_processes + 1,
        stdin=PIPE if stdin else DEVNULL,
        stdout=PIPE,
    )
    run = _CommandRun(program, limits)
    try:
        async with anyio.create_task_group() as tasks:
            drained = [anyio.Event(), anyio.Event()]
            tasks.start_soon(_drain, run, program.process.stdout, out, drained[0])
            tasks.start_soon(_drain, run, program.process.stderr, err, drained[1])
            tasks.start_soon(_feed, program.process.stdin, stdin)
            tasks.start_soon(_watch, run)
            run.scope.deadline = anyio.current_time() + limits.wall_s - (time.monotonic() - started)
            with run.scope:
                await program.process.wait()
            await program.end()
            with anyio.move_on_after(_DRAIN_WITHIN_S):
                for stream in drained:
                    await stream.wait()
            tasks.cancel_scope.cancel()
    finally:
        await program.end()
        await program.close()
    return _result(run, out, err, time.monotonic() - started)


async def _drain(
    run: _CommandRun, stream: ByteReceiveStream | None, output: BoundedOutput, drained: anyio.Event
) -> None:
    with contextlib.suppress(*_STREAM_ENDED):
        while stream is not None and not run.reason:
            output.add(await stream.receive())
            if output.total > _FLOOD_BYTES:
                run.stop(f"it wrote more than {_FLOOD_BYTES} bytes of output")
    drained.set()


async def _feed(stream: ByteSendStream | None, stdin: bytes) -> None:
    if stream is not None:
        with contextlib.suppress(*_STREAM_ENDED, OSError):
            await stream.send(stdin)
        with contextlib.suppress(*_STREAM_ENDED, OSError):
            await stream.aclose()


async def _watch(run: _CommandRun) -> None:
    """Enforce what kernel limits do not cover: all processes together, and those of root."""
    limits, plan, oom_score_set = run.limits, run.program.plan, False
    while True:
        await anyio.sleep(_WATCH_EVERY_S)
        used = await to_thread.run_sync(measure_process_tree, run.program.process.pid, limits.memory_bytes)
        if not oom_score_set:
            oom_score_set = True
            for pid in used.pids:
                # When the host runs out of memory, the command is killed before the run that started it;
                # children inherit the score.
                with contextlib.suppress(OSError):
                    await anyio.Path(f"/proc/{pid}/oom_score_adj").write_bytes(b"1000")
        if used.threads > limits.processes + plan.own_processes:
            run.stop(f"it had more than {limits.processes} processes and threads")
        if used.memory_bytes > limits.memory_bytes:
            run.stop(f"it used more than {limits.memory_bytes} bytes of memory")
        if (
            plan.scratch
            and await to_thread.run_sync(measure_folder, plan.scratch, SCRATCH_BYTES) > SCRATCH_BYTES
        ):
            run.stop(f"it wrote more than {SCRATCH_BYTES} bytes of temporary files")


def _result(run: _CommandRun, out: BoundedOutput, err: BoundedOutput, wall_s: float) -> CommandResult:
    if not run.program.ended:
        raise SandboxError(
            f"a contained command was not ended within {END_WITHIN_S:g} s: process {run.program.process.pid}"
        )
    status, stderr = run.program.status, err.content()
    timed_out = run.scope.cancelled_caught and not run.reason
    code = status.exit_code()
    if run.reason:
        code, stderr = _KILLED, stderr + f"\n[killed: {run.reason}]\n".encode()
    elif timed_out:
        code = None
    elif code is None:
        message = " ".join((status.error() or stderr.decode(errors="replace")).split())
        problem = message or f"its launcher ended with {run.program.process.returncode}"
        raise SandboxError(f"the command could not be contained: {problem}")
    return CommandResult(code, out.content(), stderr, out.truncated or err.truncated, timed_out, wall_s)
