"""Lines of a record: bounded in memory, damaged ones as problems."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from codetaste.core.files import open_regular_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_LINE_BYTES = 64 * 1024**2
"""A longer line is not read."""


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One line: its number, from 1, its offset in bytes, and its bytes; or what is wrong with it."""

    number: int
    offset: int
    data: bytes
    problem: str = ""


def record_lines(path: Path) -> Iterator[RecordLine]:
    """Yield the lines of a file without their ends. Blocking.

    A line that is too long has a problem, and so has a file that cannot be read, in its last line.
    """
    number = offset = 0
    try:
        with open_regular_file(path) as file:
            while data := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                size, ended = len(data), data.endswith(b"\n")
                while not ended and len(data) > MAX_LINE_BYTES:
                    more = file.readline(MAX_LINE_BYTES)
                    size += len(more)
                    ended = not more or more.endswith(b"\n")
                if len(data) > MAX_LINE_BYTES:
                    yield RecordLine(number, offset, b"", f"{size:,} bytes are too long to be shown")
                else:
                    yield RecordLine(number, offset, data.rstrip(b"\r\n"))
                offset += size
    except OSError as error:
        reason = error.strerror or str(error)
        yield RecordLine(number + 1, offset, b"", f"the file cannot be read: {reason}")


def parse_object(line: RecordLine) -> tuple[dict[str, Any] | None, str]:
    """Return the JSON object of a line, or what is wrong with it; an empty line has neither."""
    if line.problem or not line.data.strip():
        return None, line.problem
    try:
        value = _parse(line.data)
    except (ValueError, RecursionError):
        return None, "this is no JSON; it may have been cut off"
    return (value, "") if isinstance(value, dict) else (None, "this is no JSON object")


def _parse(data: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return from_json(data)
    except ValueError:  # damaged, or with halves of characters, which it rejects
        return json.loads(data)
