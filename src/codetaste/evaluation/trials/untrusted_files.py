"""Safe reading of untrusted files: size limits, regular files only, no symlink out of the root."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import stat
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

from codetaste.core.text import printable
from codetaste.evaluation.trials.records import ProblemKind

if TYPE_CHECKING:
    from pathlib import Path

MAX_JSON_BYTES = 16 * 1024**2
_MAX_TEXT_CHARS = 120
_TAIL_BYTES = 256
_MAX_NUMBER = 1e15
_MAX_DIGITS = 15
"""No valid count, cost or duration is larger."""


class FileProblem(Exception):
    """A file is missing or cannot be used; ``kind`` and the text give the reason."""

    def __init__(self, kind: ProblemKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def read_file(path: Path, root: str, limit: int) -> bytes:
    """Return the bytes of ``path``; ``root`` is the real path of the folder that must contain it.

    Raises:
        FileProblem: it is missing, a link out of ``root`` or not a file, cannot be read, or exceeds ``limit``
            bytes.
    """
    with _open_file(path, root, limit) as file:
        try:
            return file.read(limit)
        except OSError as error:
            raise FileProblem(ProblemKind.UNREADABLE, f"cannot be read: {_error_text(error)}") from None


def copy_file(path: Path, to: Path, root: str, limit: int) -> int:
    """Copy ``path`` to the new file ``to``, creating folders as needed; return its size in bytes.

    Raises:
        FileProblem: as ``read_file``.
        OSError: ``to`` cannot be written.
    """
    with _open_file(path, root, limit) as file:
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("xb") as target:
            shutil.copyfileobj(file, target, 1 << 20)
            return target.tell()


def _open_file(path: Path, root: str, limit: int) -> BinaryIO:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            descriptor = os.open(path, flags)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            real = os.path.realpath(path)
            if os.path.commonpath((real, root)) != root:
                text = "is a link out of the folder that is read; it is not followed"
                raise FileProblem(ProblemKind.LINK, text) from None
            descriptor = os.open(real, flags)
    except FileNotFoundError:
        raise FileProblem(ProblemKind.MISSING, "is missing") from None
    except (OSError, ValueError) as error:
        raise FileProblem(ProblemKind.UNREADABLE, f"cannot be read: {_error_text(error)}") from None
    info = os.fstat(descriptor)
    if stat.S_ISREG(info.st_mode) and info.st_size <= limit:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if not stat.S_ISREG(info.st_mode):
        raise FileProblem(ProblemKind.UNREADABLE, "is not a regular file")
    raise FileProblem(ProblemKind.SIZE, f"has {info.st_size:,} bytes; more than {limit:,} are not read")


def ends_like_json(path: Path, root: str) -> bool:
    """Whether a file ends like a JSON object.

    Raises:
        FileProblem: as ``read_file``, without a size limit.
    """
    with _open_file(path, root, sys.maxsize) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return file.read(_TAIL_BYTES).rstrip().endswith(b"}")


def is_folder(path: Path) -> bool:
    """Whether ``path`` is a folder or a link to one; False if that cannot be determined."""
    return os.path.isdir(path)  # noqa: PTH112 - a Path raises if a parent folder is not accessible


def is_link(path: Path) -> bool:
    """Whether ``path`` is a link; False if that cannot be determined."""
    return os.path.islink(path)  # noqa: PTH114 - as above


def file_size(path: Path) -> int | None:
    """Return the size of the file ``path``, links followed; None if it does not exist."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return None


def read_json_object(path: Path, root: str, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """Return the JSON object in ``path``.

    Raises:
        FileProblem: as ``read_file``; or it is truncated, or not a JSON object.
    """
    content = read_file(path, root, limit)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise json_problem(content, error) from None
    if not isinstance(value, dict):
        raise FileProblem(ProblemKind.LAYOUT, "is not a JSON object")
    return value


def json_problem(content: bytes, error: Exception) -> FileProblem:
    """Return the problem with ``content`` if a JSON parser raised ``error``: truncated, or not JSON."""
    ended = isinstance(error, json.JSONDecodeError) and (
        error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
    )
    truncated = ended or not content.rstrip().endswith(b"}")
    kind = ProblemKind.TRUNCATED if truncated else ProblemKind.UNREADABLE
    return FileProblem(kind, f"is {'truncated' if truncated else 'not JSON'} ({printable(str(error), 80)})")


def parse_number(value: object, name: str) -> float | None:
    """Return a quantity from JSON; None for null.

    Raises:
        FileProblem: it is not a finite number of zero or more.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FileProblem(ProblemKind.NUMBER, f"{name} is {_describe_value(value)}, not a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise FileProblem(ProblemKind.NUMBER, f"{name} is {value}")
    if not 0 <= value <= _MAX_NUMBER:
        fault = "negative" if value < 0 else "too large"
        raise FileProblem(ProblemKind.NUMBER, f"{name} is {_describe_value(value)}, {fault}")
    return float(value)


def parse_count(value: object, name: str) -> int | None:
    """Return a whole number from JSON, which may be written as a string of digits; None for null.

    Raises:
        FileProblem: it is not a whole number of zero or more.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS:
        value = int(value)
    found = parse_number(value, name)
    if found is not None and found != int(found):
        raise FileProblem(ProblemKind.NUMBER, f"{name} is {_describe_value(value)}, not a whole number")
    return None if found is None else int(found)


def parse_fraction(value: object, name: str) -> float | None:
    """Return a fraction of 0..1 from JSON; None for null.

    Raises:
        FileProblem: it is not a number of 0..1.
    """
    found = parse_number(value, name)
    if found is not None and found > 1:
        raise FileProblem(ProblemKind.NUMBER, f"{name} is {_describe_value(value)}, more than 1")
    return found


def parse_text(value: object, limit: int = _MAX_TEXT_CHARS) -> str:
    """Return a JSON string as one printable line, "" for any other value."""
    return printable(value, limit) if isinstance(value, str) else ""


def _describe_value(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    try:
        return printable(repr(value), 40)
    except ValueError:  # an integer of thousands of digits
        return "a very long number"


def _error_text(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
