"""What every command has in common: its streams, how its errors are said, and its exit code.

Standard output belongs to the result. Whatever a user's tools and scripts print while a command works goes to
standard error, so that ``--json`` is JSON and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

from codetaste.errors import CodetasteError, ConfigError, ToolMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_DESCRIPTORS = 3
_result: ContextVar[TextIO | None] = ContextVar("result", default=None)


def guarded(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; what is wrong is said in one line each, on standard error.

    The code is 2 for bad input or a missing tool, 1 for other errors, 130 for Ctrl-C, 141 for a reader gone.
    """
    _open_streams()
    written = _result.set(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return command()
    except (BaseExceptionGroup, CodetasteError, BrokenPipeError, KeyboardInterrupt) as error:
        code = _code_of(list(_leaves(error)))
        if code is None:
            raise
        return code
    finally:
        _result.reset(written)


def say(text: str) -> None:
    """Write a piece of the result to standard output.

    Raises:
        BrokenPipeError: nobody reads it any more.
        CodetasteError: it cannot be written.
    """
    stream = _result.get() or sys.stdout
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise CodetasteError(f"standard output cannot be written: {error.strerror}") from error


def tell(text: str) -> None:
    """Write a line for the person who watches to standard error, if that can be written."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _open_streams() -> None:
    """Make sure that the three standard streams are there and take any text."""
    for descriptor in range(_DESCRIPTORS):
        try:
            os.fstat(descriptor)
        except OSError:
            # Else the journal might be given this number, and get what others write to their errors.
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    _discard(_result.get() or sys.stdout)


def _discard(stream: TextIO) -> None:
    """Send what is still to be written nowhere: the interpreter would stumble over it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _code_of(errors: Sequence[BaseException]) -> int | None:
    """Say what went wrong and return the exit code for it; None for a fault of the program."""
    if any(isinstance(error, KeyboardInterrupt) for error in errors):
        return 130
    if any(isinstance(error, BrokenPipeError) for error in errors):
        # Whoever read our output has gone, as in "codetaste status RUN | head"; nothing more can be said.
        _discard_output()
        return 141
    if not all(isinstance(error, CodetasteError) for error in errors):
        return None
    for error in errors:
        for line in str(error).splitlines():
            tell(f"codetaste: {line}")
    return 2 if any(isinstance(error, ConfigError | ToolMissing) for error in errors) else 1


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
