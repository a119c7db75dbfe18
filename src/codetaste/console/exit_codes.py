"""The exit code and the messages that an error means.

With ``--json`` an error is one JSON document::

    {"json_format": 1, "error": {"cause": "config", "messages": ["x.toml: no such file"]}, "exit_code": 2}
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.console.json import json_document
from codetaste.console.streams import discard_output, result_stream
from codetaste.errors import Cause, CodetasteError, ConfigError, SandboxMissing, ToolMissing, leaf_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

BAD_INPUT, STOPPED, NO_READER = 2, 130, 141
"""Exit codes: bad input or a missing tool, Ctrl-C, a closed pipe. Any other error gives 1."""
_BAD_PATH = {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP}


def error_to_json(cause: Cause, messages: Sequence[str], exit_code: int) -> str:
    """Return the JSON document of an error."""
    data = {"error": {"cause": cause.value, "messages": list(messages)}, "exit_code": exit_code}
    return json_document(data)


@dataclass(frozen=True, slots=True)
class CommandFailure:
    """Exit code and messages of a failed command; one that is not ``handled`` is a fault of the program."""

    exit_code: int
    cause: Cause
    messages: tuple[str, ...]
    handled: bool = True


def failure_of(error: BaseException) -> CommandFailure | None:
    """Return the failure that ``error`` means; None for a deliberate exit."""
    errors = list(leaf_errors(error))
    if any(isinstance(each, KeyboardInterrupt) for each in errors):
        return CommandFailure(STOPPED, Cause.CANCELLED, ("stopped",))
    if any(isinstance(each, BrokenPipeError) for each in errors):
        # The reader has closed the pipe, as in "codetaste status RUN | head"; nothing more can be printed.
        discard_output(result_stream())
        return CommandFailure(NO_READER, Cause.CANCELLED, ())
    if any(isinstance(each, SystemExit | GeneratorExit) for each in errors):
        return None
    if all(isinstance(each, OSError) and each.errno in _BAD_PATH and each.filename for each in errors):
        # Even ``exists`` raises if a path of the user leads through a folder without access permission.
        lines = [f"{each.filename}: {each.strerror}" for each in errors if isinstance(each, OSError)]
        return CommandFailure(BAD_INPUT, Cause.CONFIG, tuple(lines))
    known = [each for each in errors if isinstance(each, CodetasteError)]
    if len(known) < len(errors):
        lines = [f"{type(each).__name__}: {each}" for each in errors if not isinstance(each, CodetasteError)]
        return CommandFailure(1, Cause.FAULT, tuple(lines), handled=False)
    bad_input = any(isinstance(each, ConfigError | ToolMissing | SandboxMissing) for each in known)
    messages = tuple(line for each in known for line in str(each).splitlines())
    return CommandFailure(BAD_INPUT if bad_input else 1, known[0].cause, messages)
