"""Running an installed agent in a box, and saying how it ended.

Whatever the program does is an ending and no error here: it floods, hangs, is killed, or says what is not so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.harness.ending import AgentEnd, errors_of, own_ending
from codetaste.harness.events import EventReader
from codetaste.harness.stream import StreamFile
from codetaste.orchestration.storage import storage_error
from codetaste.sandbox.beside import beside

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.harness.ending import FinishReason
    from codetaste.harness.install import Installed
    from codetaste.harness.manifest import Scalar
    from codetaste.sandbox.box import Box
    from codetaste.sandbox.sandbox import Completed, Limits

GRACE_S = 20.0
"""How long a program may go on after the budget refused it, to end by itself."""
STREAM_BYTES = 2 * 1024**3
"""A program that writes more than this is ended."""
EVENTS = 500_000
"""A program with more events than this is ended: a real one has some thousands."""


@dataclass(frozen=True, slots=True)
class Task:
    """What an agent is to do, and with which model.

    Attributes:
        prompt: what it is told, on its standard input.
        model: what it shall call its model.
        base_url: where its model is, as the box sees it, without the protocol's path; "" for protocol "none".
        token: what lets it in there.
        options: settings of the program that differ from its adapter's defaults.
    """

    prompt: str
    model: str = ""
    base_url: str = ""
    token: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Course:
    """A run under way: what it wrote and told, and why we ended it, if we did."""

    stream: StreamFile
    reader: EventReader
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    refused: bool = False
    flooded: bool = False
    fault: str = ""

    async def take(self, chunk: bytes) -> None:
        """Keep and read a piece of standard output; what floods, or cannot be kept, is ended."""
        await to_thread.run_sync(self._take, chunk)
        self.flooded = self.stream.total > STREAM_BYTES or self.reader.events > EVENTS
        if self.flooded or self.stream.fault:
            self.scope.cancel()

    def _take(self, chunk: bytes) -> None:
        self.stream.write(chunk)
        self.reader.feed(chunk)


async def run_agent(
    installed: Installed,
    box: Box,
    task: Task,
    limits: Limits,
    events: Path,
    stopped: anyio.Event | None = None,
    *,
    grace_s: float = GRACE_S,
) -> AgentEnd:
    """Run an agent to its end. Whatever it does is an ending; nothing that it started is left.

    Args:
        installed: the agent; ``installed.mounts`` are mounted in ``box``.
        box: where it works.
        task: what it is to do.
        limits: of the program; its output is not bounded by ``output_bytes`` but by this module.
        events: the file for its raw output.
        stopped: set when the budget has refused a request of it.
        grace_s: how long it may go on then, in seconds.

    Raises:
        ConfigError: options are wrong.
        JournalError: ``events`` cannot be written.
    """
    env = variables(installed, task)
    stream = await to_thread.run_sync(_opened, events)
    course = _Course(stream, EventReader(installed.adapter.manifest))
    began = anyio.current_time()
    completed: Completed | None = None
    try:
        async with beside() as tasks:
            if stopped is not None:
                tasks.start_soon(_end_soon_after, stopped, course, grace_s)
            with course.scope:
                completed = await _run(installed, box, task, limits, env, course)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(stream.close)
    if stream.fault is not None:
        raise storage_error(stream.fault, events) from stream.fault
    course.refused = course.refused or (stopped is not None and stopped.is_set())
    told = await to_thread.run_sync(course.reader.told)
    ended = _ended_by_us(course, completed, box)
    if ended is None and completed is not None:
        ended = own_ending(completed, told, installed.adapter.manifest)
    reason, problem = ended or ("execution_error", box.ended or course.fault or "it was ended")
    return AgentEnd(
        finish_reason=reason,
        problem=problem,
        exit_code=completed.exit_code if completed else None,
        turns=told.turns,
        tool_calls=told.tool_calls,
        usage=told.usage,
        cost_usd=told.cost_usd,
        message=told.message,
        stderr=errors_of(completed),
        wall_s=anyio.current_time() - began,
        stream_bytes=stream.total,
    )


def variables(installed: Installed, task: Task) -> dict[str, str]:
    """Return the variables that the run script starts with.

    Raises:
        ConfigError: options are wrong.
    """
    options = installed.adapter.options(task.options)
    return {
        **installed.adapter.manifest.env,
        "CODETASTE_AGENT": installed.inside,
        "CODETASTE_VERSION": installed.version,
        "CODETASTE_PROTOCOL": installed.adapter.protocol,
        "CODETASTE_PROMPT": "/task_description/description.md",
        "CODETASTE_MODEL": task.model,
        "CODETASTE_BASE_URL": task.base_url,
        "CODETASTE_TOKEN": task.token or "none",
        "CODETASTE_OPTIONS": json.dumps(options),
        **{f"CODETASTE_OPTION_{name.upper()}": _plain(value) for name, value in options.items()},
    }


def _plain(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _opened(events: Path) -> StreamFile:
    try:
        return StreamFile(events)
    except OSError as error:
        raise storage_error(error, events) from error


async def _run(
    installed: Installed, box: Box, task: Task, limits: Limits, env: Mapping[str, str], course: _Course
) -> Completed | None:
    try:
        return await box.run(
            installed.command,
            limits=limits,
            stdin=task.prompt.encode("utf-8", "surrogateescape"),
            env=env,
            sink=course.take,
        )
    except SandboxError as error:
        course.fault = str(error)
        return None


async def _end_soon_after(stopped: anyio.Event, course: _Course, grace_s: float) -> None:
    await stopped.wait()
    course.refused = True
    await anyio.sleep(grace_s)
    course.scope.cancel()


def _ended_by_us(course: _Course, completed: Completed | None, box: Box) -> tuple[FinishReason, str] | None:
    """Say what was done to it, if anything was."""
    if course.refused:
        return "budget_exceeded", "the budget refused a request of it"
    if course.flooded:
        return "execution_error", f"it wrote more than {STREAM_BYTES} bytes of output, or {EVENTS} events"
    if box.ended:
        return "execution_error", box.ended
    if completed is not None and completed.timed_out:
        return "timeout", f"it was not done after {completed.wall_s:.0f} s"
    return None
