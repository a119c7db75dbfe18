"""Standard streams, error messages and exit codes of every command.

Standard output is for the result only. Output of a user's tools and scripts during a command goes to standard
error, so that ``--json`` prints exactly one JSON document, the result or the error::

    {"error": {"cause": "config", "messages": ["x.toml: no such file"]}, "exit_code": 2}

Error messages for humans go to standard error in either case.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TextIO

import anyio

from codetaste.core.early_interrupt import exit_on_sigint, restore_sigint
from codetaste.errors import Cause, CodetasteError, ConfigError, SandboxMissing, ToolMissing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from cyclopts import App

_Parameters = ParamSpec("_Parameters")

_DESCRIPTORS = 3
_BAD_INPUT, _STOPPED, _NO_READER = 2, 130, 141
_BAD_PATH = {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP}


@dataclass(slots=True)
class _Result:
    """Stream of the result, and whether any of it has been printed."""

    stream: TextIO
    printed: bool = False


_result: ContextVar[_Result | None] = ContextVar("result", default=None)


def launch(app: App) -> NoReturn:
    """Run the command line of a program and exit with its exit code."""
    from cyclopts import CycloptsError  # noqa: PLC0415 - the program has imported it

    try:
        app(exit_on_error=False)
    except CycloptsError as error:
        # cyclopts has already printed the error for humans.
        if "--json" in sys.argv:
            with contextlib.suppress(OSError, CodetasteError):
                print_result(error_to_json(Cause.CONFIG, [str(error)], _BAD_INPUT))
        sys.exit(_BAD_INPUT)
    sys.exit(0)


def command(function: Callable[_Parameters, int | Awaitable[int]]) -> Callable[_Parameters, int]:
    """Make a subcommand of a function, plain or async, that prints its result and returns the exit code.

    Errors become messages and an exit code; they are JSON, too, if the function's argument ``json_`` is true.
    """

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> int:
        call: Callable[[], Any] = partial(function, *args, **kwargs)
        run_async = partial(anyio.run, call)
        return run_command(
            run_async if iscoroutinefunction(function) else call, as_json=bool(kwargs.get("json_", False))
        )

    return run


def run_command(command: Callable[[], int], *, as_json: bool = False) -> int:
    """Run a command and return its exit code; error messages go to standard error, one line each.

    The code is 2 for bad input or a missing tool, 1 for other errors, 130 for Ctrl-C, 141 for a closed pipe.
    ``as_json``: errors are also printed as the JSON result, unless a result was printed before.
    """
    _open_streams()
    result = _Result(sys.stdout)
    before = _result.set(result)
    restored = restore_sigint()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return command()
    except BaseException as error:
        failure = _failure_of(error)
        if failure is None:
            raise
        if as_json and not result.printed and failure.exit_code != _NO_READER:
            with contextlib.suppress(OSError, CodetasteError):
                print_result(error_to_json(failure.cause, failure.messages, failure.exit_code))
        if not failure.handled:
            raise
        for message in failure.messages if failure.exit_code != _STOPPED else ():
            notify(f"codetaste: {message}")
        return failure.exit_code
    finally:
        _result.reset(before)
        if restored:
            exit_on_sigint()


def error_to_json(cause: Cause, messages: Sequence[str], exit_code: int) -> str:
    """Return the JSON document of an error."""
    data = {"error": {"cause": cause.value, "messages": list(messages)}, "exit_code": exit_code}
    return json.dumps(data, indent=2)


def result_stream() -> TextIO:
    """Return the stream that results go to."""
    result = _result.get()
    return sys.stdout if result is None else result.stream


def print_result(text: str) -> None:
    """Write a part of the result to standard output.

    Raises:
        BrokenPipeError: the reader has closed the pipe.
        CodetasteError: standard output cannot be written.
    """
    result = _result.get()
    if result is not None:
        result.printed = True
    try:
        print(text, file=result_stream(), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard(result_stream())
        raise CodetasteError(f"standard output cannot be written: {error.strerror}") from error


def notify(text: str) -> None:
    """Write a line for the user to standard error; write errors are ignored."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _open_streams() -> None:
    """Make sure that the three standard streams are open and accept any text."""
    for descriptor in range(_DESCRIPTORS):
        try:
            os.fstat(descriptor)
        except OSError:
            # Otherwise the journal might get this descriptor, and receive what other code writes to stderr.
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard(stream: TextIO) -> None:
    """Discard buffered output: otherwise the interpreter fails to flush it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@dataclass(frozen=True, slots=True)
class _CommandFailure:
    """Exit code and messages of a failed command; one that is not ``handled`` is a fault of the program."""

    exit_code: int
    cause: Cause
    messages: tuple[str, ...]
    handled: bool = True


def _failure_of(error: BaseException) -> _CommandFailure | None:
    """Return the failure that ``error`` means; None for a deliberate exit."""
    errors = list(_leaves(error))
    if any(isinstance(each, KeyboardInterrupt) for each in errors):
        return _CommandFailure(_STOPPED, Cause.CANCELLED, ("stopped",))
    if any(isinstance(each, BrokenPipeError) for each in errors):
        # The reader has closed the pipe, as in "codetaste status RUN | head"; nothing more can be printed.
        _discard(result_stream())
        return _CommandFailure(_NO_READER, Cause.CANCELLED, ())
    if any(isinstance(each, SystemExit | GeneratorExit) for each in errors):
        return None
    if all(isinstance(each, OSError) and each.errno in _BAD_PATH and each.filename for each in errors):
        # Even ``exists`` raises if a path of the user leads through a folder without access permission.
        lines = [f"{each.filename}: {each.strerror}" for each in errors if isinstance(each, OSError)]
        return _CommandFailure(_BAD_INPUT, Cause.CONFIG, tuple(lines))
    known = [each for each in errors if isinstance(each, CodetasteError)]
    if len(known) < len(errors):
        lines = [f"{type(each).__name__}: {each}" for each in errors if not isinstance(each, CodetasteError)]
        return _CommandFailure(1, Cause.FAULT, tuple(lines), handled=False)
    bad_input = any(isinstance(each, ConfigError | ToolMissing | SandboxMissing) for each in known)
    messages = tuple(line for each in known for line in str(each).splitlines())
    return _CommandFailure(_BAD_INPUT if bad_input else 1, known[0].cause, messages)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
