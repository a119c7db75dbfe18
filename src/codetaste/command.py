"""What every command has in common: its streams, how its errors are said, and its exit code.

Standard output belongs to the result. Whatever a user's tools and scripts print while a command works goes to
standard error, so that ``--json`` is JSON and nothing else: one document, the result or the error::

    {"error": {"cause": "config", "messages": ["x.toml: no such file"]}, "exit_code": 2}

People read what is wrong on standard error in either case.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TextIO

from codetaste.early import in_good_order, leave_quietly
from codetaste.errors import Cause, CodetasteError, ConfigError, SandboxMissing, ToolMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cyclopts import App

_DESCRIPTORS = 3
_BAD_INPUT, _STOPPED, _NO_READER = 2, 130, 141


@dataclass(slots=True)
class _Result:
    """Where the result goes, and whether any of it has been said."""

    stream: TextIO
    said: bool = False


_result: ContextVar[_Result | None] = ContextVar("result", default=None)


def launch(app: App) -> NoReturn:
    """Run the command line of a program and leave with its exit code."""
    from cyclopts import CycloptsError  # noqa: PLC0415 - the program has imported it

    try:
        app(exit_on_error=False)
    except CycloptsError as error:
        # It has told people already.
        if "--json" in sys.argv:
            with contextlib.suppress(OSError, CodetasteError):
                say(error_json(Cause.CONFIG, [str(error)], _BAD_INPUT))
        sys.exit(_BAD_INPUT)
    sys.exit(0)


def guarded(command: Callable[[], int], *, as_json: bool = False) -> int:
    """Run a command and return its exit code; what is wrong is said in one line each, on standard error.

    The code is 2 for bad input or a missing tool, 1 for other errors, 130 for Ctrl-C, 141 for a reader gone.
    ``as_json``: what is wrong is the result, too, unless there is one already.
    """
    _open_streams()
    result = _Result(sys.stdout)
    before = _result.set(result)
    alone = in_good_order()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return command()
    except BaseException as error:
        fault = _fault_of(error)
        if fault is None:
            raise
        if as_json and not result.said and fault.exit_code != _NO_READER:
            with contextlib.suppress(OSError, CodetasteError):
                say(error_json(fault.cause, fault.messages, fault.exit_code))
        if not fault.handled:
            raise
        for message in fault.messages if fault.exit_code != _STOPPED else ():
            tell(f"codetaste: {message}")
        return fault.exit_code
    finally:
        _result.reset(before)
        if alone:
            leave_quietly()


def error_json(cause: Cause, messages: Sequence[str], exit_code: int) -> str:
    """Say what is wrong as JSON."""
    said = {"error": {"cause": cause.value, "messages": list(messages)}, "exit_code": exit_code}
    return json.dumps(said, indent=2)


def result_stream() -> TextIO:
    """Return where results go."""
    result = _result.get()
    return sys.stdout if result is None else result.stream


def say(text: str) -> None:
    """Write a piece of the result to standard output.

    Raises:
        BrokenPipeError: nobody reads it any more.
        CodetasteError: it cannot be written.
    """
    result = _result.get()
    if result is not None:
        result.said = True
    try:
        print(text, file=result_stream(), flush=True)
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
    _discard(result_stream())


def _discard(stream: TextIO) -> None:
    """Send what is still to be written nowhere: the interpreter would stumble over it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@dataclass(frozen=True, slots=True)
class _Fault:
    """What a command that failed comes to; one that is not ``handled`` is a fault of the program."""

    exit_code: int
    cause: Cause
    messages: tuple[str, ...]
    handled: bool = True


def _fault_of(error: BaseException) -> _Fault | None:
    """Return what went wrong; None where somebody leaves on purpose."""
    errors = list(_leaves(error))
    if any(isinstance(each, KeyboardInterrupt) for each in errors):
        return _Fault(_STOPPED, Cause.CANCELLED, ("stopped",))
    if any(isinstance(each, BrokenPipeError) for each in errors):
        # Whoever read our output has gone, as in "codetaste status RUN | head"; nothing more can be said.
        _discard_output()
        return _Fault(_NO_READER, Cause.CANCELLED, ())
    if any(isinstance(each, SystemExit | GeneratorExit) for each in errors):
        return None
    if all(isinstance(each, PermissionError) and each.filename for each in errors):
        # A path that somebody named leads through a folder that may not be entered: asking for it raises.
        said = [f"{each.filename}: {each.strerror}" for each in errors if isinstance(each, OSError)]
        return _Fault(_BAD_INPUT, Cause.CONFIG, tuple(said))
    known = [each for each in errors if isinstance(each, CodetasteError)]
    if len(known) < len(errors):
        said = [f"{type(each).__name__}: {each}" for each in errors if not isinstance(each, CodetasteError)]
        return _Fault(1, Cause.FAULT, tuple(said), handled=False)
    bad_input = any(isinstance(each, ConfigError | ToolMissing | SandboxMissing) for each in known)
    messages = tuple(line for each in known for line in str(each).splitlines())
    return _Fault(_BAD_INPUT if bad_input else 1, known[0].cause, messages)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
