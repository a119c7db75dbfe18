"""Run a command: its result goes to standard output, everything else, errors included, to standard error."""

from __future__ import annotations

import contextlib
import sys
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import anyio

from codetaste.console.exit_codes import BAD_INPUT, NO_READER, STOPPED, error_to_json, failure_of
from codetaste.console.streams import notify, open_result, print_result
from codetaste.core.early_interrupt import exit_on_sigint, restore_sigint
from codetaste.core.text import printable
from codetaste.errors import Cause, CodetasteError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cyclopts import App

_Parameters = ParamSpec("_Parameters")
_MAX_MESSAGE = 1000


def format_default(value: object) -> str | None:
    """Format the default of an option for ``--help``; an empty one is not shown."""
    return str(value) if value else None


def launch(app: App) -> NoReturn:
    """Run the command line of a program and exit with its exit code."""
    from cyclopts import CycloptsError  # noqa: PLC0415 - the program has imported it

    try:
        app(exit_on_error=False, print_error=False)
    except CycloptsError as error:
        message = printable(" ".join(str(error).split()), _MAX_MESSAGE)
        if "--json" in sys.argv:
            with contextlib.suppress(OSError, CodetasteError):
                print_result(error_to_json(Cause.CONFIG, [message], BAD_INPUT))
        notify(f"codetaste: {message}")
        sys.exit(BAD_INPUT)
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
    restored = restore_sigint()
    try:
        with open_result() as result:
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    return command()
            except BaseException as error:
                failure = failure_of(error)
                if failure is None:
                    raise
                if as_json and not result.printed and failure.exit_code != NO_READER:
                    with contextlib.suppress(OSError, CodetasteError):
                        print_result(error_to_json(failure.cause, failure.messages, failure.exit_code))
                if not failure.handled:
                    raise
                for message in failure.messages if failure.exit_code != STOPPED else ():
                    notify(f"codetaste: {message}")
                return failure.exit_code
    finally:
        if restored:
            exit_on_sigint()
