"""The output of a git command as a stream: bounded memory, a limit of silence, and a check for cancellation.

Blocking: its users run in a thread.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, cast

from codetaste.errors import SourceError, ToolMissing
from codetaste.source.git import NO_GIT, git_command, git_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_CHUNK_BYTES = 1 << 18
_MAX_TOKEN_BYTES = 1 << 20
_ERROR_BYTES = 16 * 1024
_POLL_S = 0.5
_BIG_FILE_BYTES = 64 * 1024**2
SILENCE_S = 60.0
"""Git is killed if it writes nothing for so long, seconds."""


class GitTooSlow(SourceError):
    """Git wrote nothing for too long."""


class GitStream:
    """Standard output of a git process that is running.

    Args:
        process: git, with its standard output as a pipe.
        errors: the file that gets its standard error.
        check: called at least every half second; what it raises ends the stream.
        silence_s: limit of the time without output, seconds.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], errors: IO[bytes], check: Callable[[], None], silence_s: float
    ) -> None:
        self._process, self._errors, self._check, self._silence_s = process, errors, check, silence_s
        self._after_tokens = b""
        self._fd = cast("IO[bytes]", process.stdout).fileno()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def read(self) -> bytes:
        """Return the next piece of output, b"" at its end.

        Raises:
            GitTooSlow: nothing came within the limit.
        """
        self._check()
        limit = time.monotonic() + self._silence_s
        while not self._poll.poll(_POLL_S * 1000):
            self._check()
            if time.monotonic() > limit:
                raise GitTooSlow(f"git wrote nothing for {self._silence_s:g} s")
        return os.read(self._fd, _CHUNK_BYTES)

    def tokens(self) -> Iterator[bytes]:
        r"""Yield the texts that ``\0`` ends, up to an empty one; an unfinished one at the end is dropped.

        Raises:
            SourceError: one has more than a million bytes.
        """
        rest = b""
        while chunk := self.read():
            *tokens, rest = (rest + chunk).split(b"\0")
            for at, token in enumerate(tokens):
                if not token:
                    self._after_tokens = b"\0".join([*tokens[at + 1 :], rest])
                    return
                yield token
            if len(rest) > _MAX_TOKEN_BYTES:
                raise SourceError("git wrote a file name of more than a million bytes")

    def remaining(self) -> Iterator[bytes]:
        """Yield what follows the texts of ``tokens`` and the empty one behind them, in pieces."""
        if self._after_tokens:
            yield self._after_tokens
        while chunk := self.read():
            yield chunk

    def failure(self) -> str:
        """Wait for the end of git, and return the line of its complaint; "" if it succeeded."""
        exit_code = self._process.wait()
        if exit_code == 0:
            return ""
        self._errors.seek(0)
        lines = self._errors.read(_ERROR_BYTES).decode("utf-8", "replace").splitlines()
        fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
        return (fatal or lines or [f"git ended with {exit_code}"])[-1].strip()


@contextmanager
def open_git_stream(
    git_dir: Path,
    args: Sequence[str],
    *,
    stdin: IO[bytes] | None = None,
    check: Callable[[], None] = lambda: None,
    silence_s: float = SILENCE_S,
    env: Mapping[str, str] | None = None,
) -> Iterator[GitStream]:
    """Run git for the duration of the context; it is killed at its end.

    Args:
        git_dir: the repository.
        args: the git command and its arguments.
        stdin: a file that git reads from its current position.
        check: see ``GitStream``.
        silence_s: see ``GitStream``.
        env: variables in addition to ``git_environment``.

    Raises:
        ToolMissing: git is not installed.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                git_command(["-c", f"core.bigFileThreshold={_BIG_FILE_BYTES}", *args], git_dir),
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**git_environment(), **(env or {})},
                cwd="/",
                start_new_session=True,
            )
        except FileNotFoundError:
            raise ToolMissing(NO_GIT) from None
        with process:
            try:
                yield GitStream(process, errors, check, silence_s)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
