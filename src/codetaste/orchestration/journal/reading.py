"""Read a journal line by line, and refuse one that is damaged, of another format, or no longer complete."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codetaste.core.files import LineTooLong, bounded_lines, open_regular_file, storage_error
from codetaste.errors import JournalError
from codetaste.orchestration.journal.lines import line_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

FORMAT = 2
"""Version of the lines in ``journal/lines.py``."""
JOURNAL_FILE = "journal.jsonl"
LOGS_FOLDER = "logs"
"""The folder of a run with its logs. It shows no spending: logs are opened with the journal."""

_MAX_HEADER_BYTES = 256
_START_ANEW = "restore the journal, or start a new run under another name"


def read_lines(
    path: Path, start: int = 0, replay: Callable[[dict[str, Any]], None] = lambda _line: None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the end offset and the content of each whole line from offset ``start``, up to a torn last line.

    Each line is passed to ``replay`` before.

    Raises:
        JournalError: the file is missing, a line in the middle is damaged or has a value that no line has, or
            for which ``replay`` raised an error (lines are counted from ``start``), or it has another format.
    """
    end, broken = start, 0
    since = f" after byte {start}" if start else ""
    try:
        with open_regular_file(path) as file:
            file.seek(start)
            for number, raw in enumerate(bounded_lines(file), 1):
                if broken:
                    raise _damaged(path, broken, since, "not a journal line, but more lines follow")
                if not raw.endswith(b"\n"):
                    return  # a process is writing it now, or a crash has torn it
                line = _parse(raw)
                if line is None:
                    broken = number
                    continue
                if number == 1 and not start:
                    _check_format(path, line)
                if problem := line_problem(line):
                    raise _damaged(path, number, since, problem)
                try:
                    replay(line)
                except JournalError as error:
                    # It contradicts earlier lines: one of these may be lost, and removal would hide that.
                    raise JournalError(f"{path}, line {number}{since}: {error}; {_START_ANEW}") from error
                end += len(raw)
                yield end, line
    except LineTooLong as error:
        raise JournalError(f"{path}{since}: {error.strerror}; {_START_ANEW}") from error
    except OSError as error:
        raise storage_error(error, path, JournalError) from error


def check_format(path: Path) -> None:
    """Check the first line of the journal at ``path``, for a reader that does not use ``read_lines``.

    Raises:
        JournalError: it has another format or cannot be read; a damaged first line passes.
    """
    try:
        with open_regular_file(path) as file:
            line = _parse(file.readline(_MAX_HEADER_BYTES))
    except OSError as error:
        raise storage_error(error, path, JournalError) from error
    if line is not None and line["event"] == "journal":
        _check_format(path, line)


def check_complete(path: Path, end: int) -> None:
    """Check that a journal in which no job has started is that of a run that has done nothing.

    Args:
        path: of the journal.
        end: the offset of the end of its last whole line.

    Raises:
        JournalError: the run has done something, so that what it has spent is unknown.
    """
    try:
        torn = 0 if end else path.stat().st_size
        folders = [each for each in path.parent.iterdir() if each.is_dir() and each.name != LOGS_FOLDER]
        products = sorted(each.name for each in folders if any(map(_is_product, each.rglob("*"))))
    except OSError as error:
        raise storage_error(error, path, JournalError) from error
    if torn > _MAX_HEADER_BYTES or products:
        problem = "no job has started in it" if end else "the first line is missing or damaged"
        has = f"the run has {', '.join(products[:3])}" if products else f"{torn:,} bytes follow"
        raise JournalError(
            f"{path}: {problem}, but {has}, so what the run has spent is unknown; {_START_ANEW}"
        )


def _is_product(path: Path) -> bool:
    """Tell whether a file is more than a leftover of an interrupted write."""
    return path.is_file() and not path.name.startswith(".")


def _damaged(path: Path, number: int, since: str, problem: str) -> JournalError:
    # Without its first line a journal is refused, so that one cannot be removed.
    advice = "repair or remove it" if number > 1 or since else f"repair it, or {_START_ANEW}"
    return JournalError(f"{path}, line {number}{since}: {problem}; {advice}")


def _parse(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and isinstance(line.get("event"), str) else None


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name}: no journal line has a number that is not finite")


def _check_format(path: Path, line: Mapping[str, Any]) -> None:
    written = line.get("format")
    if line["event"] != "journal" or type(written) is not int:
        raise JournalError(f"{path} does not start like a codetaste journal; use another run directory")
    if written != FORMAT:
        raise JournalError(
            f"{path} has journal format {written}, this codetaste reads and writes format {FORMAT}; "
            "use the version of codetaste that made the run, or start a new run under another name"
        )
