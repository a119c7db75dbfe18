"""Reading files that nobody vouches for: bounded, regular, below one folder, never by a link out of it."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import stat
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

from codetaste.evaluation.records import ProblemKind

if TYPE_CHECKING:
    from pathlib import Path

JSON_BYTES = 16 * 1024**2
_SHOWN = 120
_TAIL = 256
_MOST = 1e15
"""No count, cost or duration is larger."""


class Faulty(Exception):
    """A file that is there cannot be used; ``kind`` and the text say why."""

    def __init__(self, kind: ProblemKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def printable(text: str, limit: int = _SHOWN) -> str:
    r"""Return a stranger's text for one line: what is not printable is spelt out (``\x1b``); cut off."""
    flat = "".join(char if char.isprintable() else _escaped(char) for char in text[: limit + 1])
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def read_file(path: Path, root: str, limit: int) -> bytes:
    """Return the bytes of ``path``; ``root`` is the real path of the folder that it may be in.

    Raises:
        FileNotFoundError: there is none.
        Faulty: it leads out, is no file, cannot be read, or has more than ``limit`` bytes.
    """
    with _opened(path, root, limit) as file:
        try:
            return file.read(limit)
        except OSError as error:
            raise Faulty(ProblemKind.UNREADABLE, f"cannot be read: {_reason(error)}") from None


def copy_file(path: Path, to: Path, root: str, limit: int) -> int:
    """Copy ``path`` to the new file ``to``, making folders as needed; returns its size in bytes.

    Raises:
        FileNotFoundError: there is none.
        Faulty: as ``read_file``.
        OSError: ``to`` cannot be written.
    """
    with _opened(path, root, limit) as file:
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("xb") as target:
            shutil.copyfileobj(file, target, 1 << 20)
            return target.tell()


def _opened(path: Path, root: str, limit: int) -> BinaryIO:
    try:
        descriptor = _open(path, root)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise Faulty(ProblemKind.UNREADABLE, f"cannot be read: {_reason(error)}") from None
    info = os.fstat(descriptor)
    if stat.S_ISREG(info.st_mode) and info.st_size <= limit:
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if not stat.S_ISREG(info.st_mode):
        raise Faulty(ProblemKind.UNREADABLE, "is no regular file")
    raise Faulty(ProblemKind.SIZE, f"has {info.st_size:,} bytes; more than {limit:,} are not read")


def ends_whole(path: Path, root: str) -> bool:
    """Whether a file ends as JSON objects do.

    Raises:
        FileNotFoundError: there is none.
        Faulty: as ``read_file``, whatever its size.
    """
    with _opened(path, root, sys.maxsize) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        return file.read(_TAIL).rstrip().endswith(b"}")


def is_folder(path: Path) -> bool:
    """Whether ``path`` is a folder or leads to one; False where that cannot be told."""
    return os.path.isdir(path)  # noqa: PTH112 - a Path raises where a folder above may not be entered


def is_link(path: Path) -> bool:
    """Whether ``path`` is a link; False where that cannot be told."""
    return os.path.islink(path)  # noqa: PTH114 - as above


def file_size(path: Path) -> int | None:
    """Return the size of the file that ``path`` is or leads to, None where there is none."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return None


def read_object(path: Path, root: str, limit: int = JSON_BYTES) -> dict[str, Any]:
    """Return the JSON object in ``path``.

    Raises:
        FileNotFoundError: there is none.
        Faulty: as ``read_file``; or it is truncated, or no JSON object.
    """
    content = read_file(path, root, limit)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise no_json(content, error) from None
    if not isinstance(value, dict):
        raise Faulty(ProblemKind.LAYOUT, "is no JSON object")
    return value


def no_json(content: bytes, error: Exception) -> Faulty:
    """Say what is wrong with ``content``, which made a JSON reader raise ``error``: cut off, or never any."""
    ended = isinstance(error, json.JSONDecodeError) and (
        error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
    )
    cut = ended or not content.rstrip().endswith(b"}")
    kind = ProblemKind.TRUNCATED if cut else ProblemKind.UNREADABLE
    return Faulty(kind, f"is {'truncated' if cut else 'no JSON'} ({printable(str(error), 80)})")


def number(value: object, name: str) -> float | None:
    """Return a quantity from JSON; None for null.

    Raises:
        Faulty: it is no finite number of zero or more.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Faulty(ProblemKind.NUMBER, f"{name} is {_shown(value)}, no number")
    if isinstance(value, float) and not math.isfinite(value):
        raise Faulty(ProblemKind.NUMBER, f"{name} is {value}")
    if not 0 <= value <= _MOST:
        raise Faulty(
            ProblemKind.NUMBER, f"{name} is {_shown(value)}, {'negative' if value < 0 else 'too large'}"
        )
    return float(value)


def count(value: object, name: str) -> int | None:
    """Return a whole number from JSON; None for null.

    Raises:
        Faulty: it is none of zero or more.
    """
    found = number(value, name)
    if found is not None and found != int(found):
        raise Faulty(ProblemKind.NUMBER, f"{name} is {_shown(value)}, no whole number")
    return None if found is None else int(found)


def fraction(value: object, name: str) -> float | None:
    """Return a share of 0..1 from JSON; None for null.

    Raises:
        Faulty: it is none.
    """
    found = number(value, name)
    if found is not None and found > 1:
        raise Faulty(ProblemKind.NUMBER, f"{name} is {_shown(value)}, more than 1")
    return found


def text(value: object, limit: int = _SHOWN) -> str:
    """Return a text from JSON for one line, "" for anything else."""
    return printable(value, limit) if isinstance(value, str) else ""


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    try:
        return printable(repr(value), 40)
    except ValueError:  # an integer of thousands of digits
        return "a very long number"


def _open(path: Path, root: str) -> int:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    real = os.path.realpath(path)
    if os.path.commonpath((real, root)) != root:
        raise Faulty(ProblemKind.LINK, "is a link that leads out; it is not followed")
    return os.open(real, flags)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
