"""One running JVM: it is started, answers one request after the other, and is killed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from codetaste.core.processes import kill_process_group
from codetaste.core.text import one_line, shorten
from codetaste.errors import JavaError, JavaOutcome
from codetaste.java.worker.program import OUT_OF_MEMORY_EXIT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from anyio.abc import ByteSendStream, Process

    from codetaste.java.worker.program import JavaProgram

START_TIMEOUT_S = 600.0
"""A start needs some seconds of processor time, of which a busy machine has few."""
MAX_ANSWER_BYTES = 512 * 1024**2
_KILL_S = 10.0
_EXIT_S = 30.0
_STDERR_BYTES = 4 * 1024**2
_STDERR_TAIL_BYTES = 4096
_MESSAGE_CHARS = 300
_GONE = (
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    OSError,
)


@dataclass(slots=True, eq=False)
class Jvm:
    """A running JVM; ``served`` counts its answers."""

    program: JavaProgram
    process: Process
    stderr: IO[bytes]
    _input: ByteSendStream
    _output: BufferedByteReceiveStream
    served: int = 0

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.returncode is None

    async def ask(self, request: Mapping[str, Any], timeout_s: float) -> Any:  # noqa: ANN401 - JSON
        """Send one request and return the answer.

        After a JavaError with another outcome than "failed", and when it was cancelled, the JVM is of no
        use: kill it.

        Raises:
            JavaError: there is no answer; ``outcome`` says why.
        """
        number = self.served + 1
        line = json.dumps({"id": number, **request}, ensure_ascii=True).encode() + b"\n"
        try:
            with anyio.fail_after(timeout_s):
                answer = await self._exchange(line)
        except TimeoutError:
            message = f"{self.program.name}: no answer within {timeout_s:g} s"
            raise JavaError(message, JavaOutcome.TIMEOUT) from None
        if answer.get("id") != number:
            raise JavaError(f"{self.program.name}: answered another request", JavaOutcome.CRASH)
        if not answer.keys() & {"answer", "error"}:
            raise JavaError(f"{self.program.name}: a reply without an answer", JavaOutcome.CRASH)
        self.served = number
        self._cut_stderr()
        if "error" in answer:
            text = one_line(answer["error"], _MESSAGE_CHARS)
            raise JavaError(f"{self.program.name}: {text}", JavaOutcome.FAILED)
        return answer["answer"]

    async def wait_ready(self) -> None:
        """Wait until the program has started.

        Raises:
            JavaError: it has not.
        """
        try:
            with anyio.fail_after(START_TIMEOUT_S):
                answer = await self._exchange(b"")
        except TimeoutError:
            message = f"{self.program.name}: did not start within {START_TIMEOUT_S:g} s"
            raise JavaError(message, JavaOutcome.CRASH) from None
        if not answer.get("ready"):
            raise JavaError(f"{self.program.name}: did not say that it is ready", JavaOutcome.CRASH)

    async def _exchange(self, line: bytes) -> dict[str, Any]:
        """Write ``line`` and return the object in the next line of standard output."""
        try:
            if line:
                await self._input.send(line)
            answer = json.loads(await self._output.receive_until(b"\n", MAX_ANSWER_BYTES))
        except _GONE as error:
            raise await self._death() from error
        except (ValueError, RecursionError) as error:
            raise JavaError(f"{self.program.name}: unreadable answer: {error}", JavaOutcome.CRASH) from error
        except anyio.DelimiterNotFound as error:
            message = f"{self.program.name}: an answer of more than {MAX_ANSWER_BYTES:,} bytes"
            raise JavaError(message, JavaOutcome.CRASH) from error
        if not isinstance(answer, dict):
            raise JavaError(f"{self.program.name}: an answer that is no object", JavaOutcome.CRASH)
        return answer

    async def _death(self) -> JavaError:
        """Return the error for a JVM that closed its output."""
        with anyio.move_on_after(_EXIT_S):
            await self.process.wait()
        tail = self.stderr_tail()
        code = self.process.returncode
        if code == OUT_OF_MEMORY_EXIT or "OutOfMemoryError" in tail:
            size = f"{self.program.heap_bytes // 1024**2} MB"
            message = f"{self.program.name}: the JVM ran out of its memory of {size}"
            return JavaError(message, JavaOutcome.MEMORY)
        lines = [line for line in tail.splitlines() if line.strip() and not line.startswith("\t")]
        last = lines[-1:] or ["no message"]  # not the places of a stack trace
        message = f"{self.program.name}: the JVM ended with {code}: {shorten(last[0], _MESSAGE_CHARS)}"
        return JavaError(message, JavaOutcome.CRASH)

    def stderr_tail(self) -> str:
        """Return the end of what it wrote to standard error."""
        size = os.fstat(self.stderr.fileno()).st_size
        start = max(0, size - _STDERR_TAIL_BYTES)
        return os.pread(self.stderr.fileno(), _STDERR_TAIL_BYTES, start).decode(errors="replace")

    def _cut_stderr(self) -> None:
        """Empty the file of standard error when it is large: it is opened for appending."""
        if os.fstat(self.stderr.fileno()).st_size > _STDERR_BYTES:
            os.ftruncate(self.stderr.fileno(), 0)

    async def kill(self) -> None:
        """End it, whatever it does."""
        await kill_process_group(self.process, _KILL_S)
        self.stderr.close()


async def start_jvm(program: JavaProgram, scratch: Path) -> Jvm:
    """Start a JVM with ``program`` and wait until it is ready; its temporary files are in ``scratch``.

    Raises:
        JavaError: it does not start.
    """
    stderr = tempfile.TemporaryFile("a+b", dir=scratch)  # noqa: SIM115 - Jvm.kill closes it
    try:
        process = await anyio.open_process(
            program.command(scratch),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=scratch,
            env=program.environment(scratch),
            start_new_session=True,
        )
    except BaseException as error:
        stderr.close()
        if not isinstance(error, OSError):
            raise
        message = f"{program.name}: {program.jdk.java} cannot be run: {error.strerror or error}"
        raise JavaError(message, JavaOutcome.NO_START) from error
    sending, receiving = process.stdin, process.stdout
    assert sending is not None and receiving is not None  # noqa: S101, PT018 - both are pipes
    jvm = Jvm(program, process, stderr, sending, BufferedByteReceiveStream(receiving))
    try:
        await jvm.wait_ready()
    except BaseException as error:
        await jvm.kill()
        if isinstance(error, JavaError) and error.outcome is JavaOutcome.CRASH:
            raise JavaError(str(error), JavaOutcome.NO_START) from error
        raise
    return jvm
