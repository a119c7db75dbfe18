"""Standard output, which is for the result only, and standard error, which is for everything else.

Output of a user's tools and scripts during a command goes to standard error.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from codetaste.core.text import wrap
from codetaste.errors import CodetasteError

if TYPE_CHECKING:
    from collections.abc import Iterator

_DESCRIPTORS = 3
_USUAL_COLUMNS, _LEAST_COLUMNS = 80, 20


@dataclass(slots=True)
class ResultStream:
    """Stream of the result, and whether any of it has been printed."""

    stream: TextIO
    printed: bool = False


_result: ContextVar[ResultStream | None] = ContextVar("result", default=None)


@contextlib.contextmanager
def open_result() -> Iterator[ResultStream]:
    """Make sure that the standard streams can be used, and let ``print_result`` write to standard output.

    It does so even where ``sys.stdout`` is redirected inside.
    """
    _open_streams()
    result = ResultStream(sys.stdout)
    before = _result.set(result)
    try:
        yield result
    finally:
        _result.reset(before)


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
        discard_output(result_stream())
        raise CodetasteError(f"standard output cannot be written: {error.strerror}") from error


def notify(text: str) -> None:
    """Write a line for the user to standard error, wrapped on a terminal; write errors are ignored."""
    try:
        print(wrap(text, width_of(sys.stderr), "  "), file=sys.stderr, flush=True)
    except OSError:
        discard_output(sys.stderr)


def width_of(stream: TextIO) -> int | None:
    """Return the columns of the terminal that ``stream`` goes to; None where it goes elsewhere."""
    if not stream.isatty():
        return None
    # A terminal may say that it has no columns, and text cannot be wrapped to a few.
    columns = shutil.get_terminal_size(os.get_terminal_size(stream.fileno())).columns
    return max(columns or _USUAL_COLUMNS, _LEAST_COLUMNS)


_COLOURS = {"red": 31, "green": 32, "yellow": 33}


def colour(text: str, name: str) -> str:
    """Return ``text`` in a colour of the terminal: red, green or yellow."""
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m"


def result_is_coloured() -> bool:
    """Whether the result goes to a terminal that shows colours, and the user has not set ``NO_COLOR``."""
    return is_coloured(result_stream())


def is_coloured(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal that shows colours, and the user has not set ``NO_COLOR``."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return stream.isatty() and not plain


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


def discard_output(stream: TextIO) -> None:
    """Discard buffered output: otherwise the interpreter fails to flush it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
