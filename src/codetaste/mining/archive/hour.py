"""Hours of GH Archive: how their files are named, and where a user's files are."""

from __future__ import annotations

import glob
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})-(\d{1,2})\.json(?:\.gz)?")
_PATTERNS = ("*.json.gz", "*.json")


def hour_of(name: str) -> datetime | None:
    """Return the hour of a file named like ``2023-04-05-6.json.gz``; None if it is named otherwise."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return datetime.fromisoformat(match[1]).replace(hour=int(match[2]), tzinfo=UTC)
    except ValueError:
        return None


def hour_name(hour: datetime) -> str:
    """Return the name of an hour's file without suffixes; the number of the hour has no leading zero."""
    return f"{hour:%Y-%m-%d}-{hour.hour}"


def hours_between(first: datetime, last: datetime) -> Iterator[datetime]:
    """Yield each hour from ``first`` to ``last``, both included."""
    while first <= last:
        yield first
        first += timedelta(hours=1)


def find_hour_files(names: Iterable[str | Path]) -> tuple[Path, ...]:
    """Return the files that ``names`` (files, folders and glob patterns) name, by hour; does blocking I/O.

    Raises:
        ConfigError: a name matches no file, or a file has a name that is not UTF-8.
    """
    found: dict[Path, None] = {}
    problems = []
    for name in names:
        path = Path(name).expanduser()
        if path.is_file():
            files = [path]
        elif path.is_dir():
            files = sorted(file for pattern in _PATTERNS for file in path.glob(pattern))
        else:
            files = sorted(Path(file) for file in glob.glob(str(path), recursive=True))  # noqa: PTH207 - absolute patterns
            files = [file for file in files if file.is_file()]
        if not files:
            problems.append(
                f"{name}: no hour files there; name .json.gz files, a folder or a pattern of them"
            )
        problems += [f"{file!r}: its name is not UTF-8; rename it" for file in files if not _is_utf8(file)]
        found |= dict.fromkeys(files)
    if problems:
        raise ConfigError(*problems)
    return tuple(sorted(found, key=lambda file: (str(hour_of(file.name) or ""), file)))


def _is_utf8(file: Path) -> bool:
    try:
        str(file).encode()
    except UnicodeEncodeError:
        return False
    return True
