"""Run an installed agent in a sandbox and return its result.

Every behaviour of the agent gives a result and no exception: too much output, a hang, a crash, or a false
report.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.benchmark.layout import DESCRIPTION_FILES, FinishReason, Track
from codetaste.core.concurrency import background_tasks
from codetaste.core.files import storage_error
from codetaste.core.text import REDACTED
from codetaste.errors import JournalError, SandboxError
from codetaste.harness.output import OutputParser
from codetaste.harness.result import AgentResult, result_of_exit, stderr_tail
from codetaste.sandbox.base import TASK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.harness.install.store import InstalledAgent
    from codetaste.sandbox.base import CommandLimits, CommandResult, Sandbox


REFUSAL_GRACE_S = 20.0
"""Time for an agent to end by itself after the budget refused one of its requests."""

MAX_STREAM_BYTES = 2 * 1024**3
"""An agent that writes more than this is stopped."""

MAX_EVENTS = 500_000
"""An agent with more events than this is stopped; a real one has a few thousand."""

HEAD_BYTES, TAIL_BYTES = 64 * 1024**2, 4 * 1024**2
"""What is stored of a longer stream."""


@dataclass(frozen=True, slots=True)
class AgentTask:
    """An agent's prompt and model.

    Attributes:
        prompt: the text on its standard input.
        model: the model's name in its requests.
        base_url: the gateway's URL in the sandbox, without the protocol's path; "" for protocol "none".
        token: the session's token at the gateway.
        options: settings that differ from its adapter's defaults.
        env: further environment variables.
    """

    prompt: str
    model: str = ""
    base_url: str = ""
    token: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


class HeadTailFile:
    """One stream in one file; to be called from a worker thread, one call at a time.

    Writing does not raise; ``fault`` is the first error.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, path: Path, *, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb")
        self._head_left, self._tail_bytes = head, tail
        self._tail, self._dropped = bytearray(), 0
        self.total = 0
        self.fault: OSError | None = None

    def write(self, chunk: bytes) -> None:
        """Write the next piece."""
        self.total += len(chunk)
        first, rest = chunk[: self._head_left], chunk[self._head_left :]
        if first:
            self._head_left -= len(first)
            self._append(first)
        self._tail += rest
        if len(self._tail) > 2 * self._tail_bytes:
            self._dropped += len(self._tail) - self._tail_bytes
            del self._tail[: -self._tail_bytes]

    def close(self) -> None:
        """Write the end of the stream, after a line with the number of bytes left out."""
        last = bytes(self._tail[-self._tail_bytes :])
        left_out = len(self._tail) - len(last) + self._dropped
        if left_out:
            self._append(b'\n{"type": "codetaste", "bytes_left_out": %d}\n' % left_out)
        self._append(last)
        with contextlib.suppress(OSError):  # ``fault`` has it already
            self._file.close()

    def _append(self, piece: bytes) -> None:
        try:
            self._file.write(piece)
            self._file.flush()
        except OSError as error:
            self.fault = self.fault or error


@dataclass(slots=True)
class _AgentRun:
    """State of a run: its output without the session's token, and why it was stopped."""

    stream: HeadTailFile
    reader: OutputParser
    token: bytes
    rest: bytes = b""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    refused: bool = False
    flooded: bool = False

    async def take(self, chunk: bytes) -> None:
        """Store and parse a piece of standard output; stop the agent on too much output or a write error."""
        await to_thread.run_sync(self._take, chunk)
        self.flooded = self.stream.total > MAX_STREAM_BYTES or self.reader.event_count > MAX_EVENTS
        if self.flooded or self.stream.fault:
            self.scope.cancel()

    def _take(self, chunk: bytes) -> None:
        text = without_token(self.rest + chunk, self.token)
        # A token may begin at the end of this piece.
        begun = (length for length in range(len(self.token) - 1, 0, -1) if text.endswith(self.token[:length]))
        end = len(text) - next(begun, 0)
        self._write(text[:end])
        self.rest = text[end:]

    def _write(self, text: bytes) -> None:
        self.stream.write(text)
        self.reader.feed(text)

    def close(self) -> None:
        """Write the end of the output."""
        self._write(self.rest)
        self.stream.close()


def without_token(text: bytes, token: bytes) -> bytes:
    """Return ``text`` without the token of a session at the gateway, b"" for none."""
    return text.replace(token, REDACTED.encode()) if token else text


async def run_agent(
    agent: InstalledAgent,
    sandbox: Sandbox,
    task: AgentTask,
    limits: CommandLimits,
    events: Path,
    stopped: anyio.Event | None = None,
    *,
    grace_s: float = REFUSAL_GRACE_S,
) -> AgentResult:
    """Run an agent to its end, and return its result; all processes that it started are ended.

    Args:
        agent: the agent; ``agent.mounts`` are mounted in ``sandbox``.
        sandbox: the sandbox in which it runs.
        task: its prompt and model.
        limits: its limits; this module limits its output instead of ``output_bytes``.
        events: the file for its raw output.
        stopped: set when the gateway answers no further request of it.
        grace_s: how long it may run after that, in seconds.

    Raises:
        ConfigError: ``task.options`` has an error.
        JournalError: ``events`` cannot be written.
    """
    env = run_environment(agent, task)
    try:
        stream = await to_thread.run_sync(HeadTailFile, events)
    except OSError as error:
        raise storage_error(error, events, JournalError) from error
    run = _AgentRun(stream, OutputParser(agent.adapter.manifest), task.token.encode())
    began = anyio.current_time()
    completed: CommandResult | None = None
    fault = "it was stopped"
    try:
        async with background_tasks() as tasks:
            if stopped is not None:
                tasks.start_soon(_stop_after_refusal, stopped, run, grace_s)
            with run.scope:
                try:
                    stdin = task.prompt.encode("utf-8", "surrogateescape")
                    completed = await sandbox.run(
                        agent.command, limits=limits, stdin=stdin, env=env, sink=run.take
                    )
                    completed = replace(completed, stderr=without_token(completed.stderr, run.token))
                except SandboxError as error:
                    fault = str(error)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(run.close)
    if stream.fault is not None:
        raise storage_error(stream.fault, events, JournalError) from stream.fault
    run.refused = run.refused or (stopped is not None and stopped.is_set())
    reported = await to_thread.run_sync(run.reader.result)
    ending = _stop_reason(run, completed, sandbox)
    if ending is None and completed is not None:
        ending = result_of_exit(completed, reported, agent.adapter.manifest)
    reason, problem = ending or (FinishReason.EXECUTION_ERROR, fault)
    return AgentResult(
        finish_reason=reason,
        problem=problem,
        exit_code=completed.exit_code if completed else None,
        turns=reported.turns,
        tool_calls=reported.tool_calls,
        usage=reported.usage,
        cost_usd=reported.cost_usd,
        message=reported.message,
        stderr=stderr_tail(completed),
        wall_s=anyio.current_time() - began,
        stream_bytes=stream.total,
    )


def run_environment(agent: InstalledAgent, task: AgentTask) -> dict[str, str]:
    """Return the environment variables of the run script.

    Raises:
        ConfigError: ``task.options`` has an error.
    """
    options = agent.adapter.resolve_options(task.options)
    return {
        **agent.adapter.manifest.env,
        **task.env,
        "CODETASTE_AGENT": agent.mount_path,
        "CODETASTE_VERSION": agent.version,
        "CODETASTE_PROTOCOL": agent.adapter.protocol,
        "CODETASTE_PROMPT": f"{TASK}/{DESCRIPTION_FILES[Track.INSTRUCTED]}",
        "CODETASTE_MODEL": task.model,
        "CODETASTE_BASE_URL": task.base_url,
        "CODETASTE_TOKEN": task.token or "none",
        "CODETASTE_OPTIONS": json.dumps(options),
        **{
            f"CODETASTE_OPTION_{name.upper()}": str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in options.items()
        },
    }


async def _stop_after_refusal(stopped: anyio.Event, run: _AgentRun, grace_s: float) -> None:
    await stopped.wait()
    run.refused = True
    await anyio.sleep(grace_s)
    run.scope.cancel()


def _stop_reason(
    run: _AgentRun, completed: CommandResult | None, sandbox: Sandbox
) -> tuple[FinishReason, str] | None:
    """Return why the agent was stopped from outside, None if it was not."""
    if run.refused:
        return FinishReason.BUDGET_EXCEEDED, "its requests were refused"
    if run.flooded:
        return (
            FinishReason.EXECUTION_ERROR,
            f"it wrote more than {MAX_STREAM_BYTES} bytes of output, or {MAX_EVENTS} events",
        )
    if sandbox.end is not None:
        return FinishReason.EXECUTION_ERROR, str(sandbox.end)
    if completed is not None and completed.timed_out:
        return FinishReason.TIMEOUT, f"it was not finished after {completed.wall_s:.0f} s"
    return None
