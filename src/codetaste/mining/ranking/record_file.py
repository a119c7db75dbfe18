"""Files of records, one JSON object a line: what sources write and the query of stage 1 reads."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from codetaste.core.files import storage_error
from codetaste.errors import SourceError
from codetaste.mining.commit import CommitRecord, PullRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

COLUMNS = {
    "repository": "VARCHAR",
    "golden": "VARCHAR",
    "base": "VARCHAR",
    "message": "VARCHAR",
    "number": "BIGINT",
    "title": "VARCHAR",
    "body": "VARCHAR",
    "stars": "BIGINT",
    "files": "BIGINT",
    "additions": "BIGINT",
    "deletions": "BIGINT",
    "date": "TIMESTAMPTZ",
    "licence": "VARCHAR",
    "source": "VARCHAR",
}
"""The columns of the relation of commits, with DuckDB's types; no ``number``: no pull request."""


def record_to_json(record: CommitRecord) -> str:
    """Return a record as a line of a record file, without its line break."""
    pull_request = record.pull_request
    values = {
        "repository": record.repository,
        "golden": record.golden,
        "base": record.base,
        "message": record.message,
        "number": pull_request.number if pull_request else None,
        "title": pull_request.title if pull_request else None,
        "body": pull_request.body if pull_request else None,
        "stars": record.stars,
        "files": record.files,
        "additions": record.additions,
        "deletions": record.deletions,
        "date": record.date.isoformat() if record.date else None,
        "licence": record.licence,
        "source": record.source,
    }
    return json.dumps({name: value for name, value in values.items() if value is not None})


def record_from_row(row: Mapping[str, Any]) -> CommitRecord:
    """Return the record of a row of the relation, with ``date`` as a datetime, a text or None."""
    number, date = row.get("number"), row.get("date")
    return CommitRecord(
        repository=row["repository"],
        golden=row.get("golden") or "",
        base=row.get("base"),
        message=row.get("message") or "",
        pull_request=None
        if number is None
        else PullRequest(number, row.get("title") or "", row.get("body") or ""),
        stars=row.get("stars"),
        files=row.get("files"),
        additions=row.get("additions"),
        deletions=row.get("deletions"),
        date=datetime.fromisoformat(date) if isinstance(date, str) else date,
        licence=row.get("licence"),
        source=row.get("source") or "",
    )


@contextmanager
def record_writer(path: Path) -> Iterator[Callable[[CommitRecord], None]]:
    """Open a record file to be written; it appears at ``path`` when the block ends without an error.

    Raises:
        StorageFull: no space left.
        SourceError: it cannot be written for another reason.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("x", encoding="utf-8") as file:
                yield lambda record: print(record_to_json(record), file=file)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, f"{path}: cannot be written", SourceError) from error


def write_records(path: Path, records: Iterable[CommitRecord]) -> int:
    """Write a record file at once; return how many records it has. Does blocking I/O.

    Raises:
        StorageFull: no space left.
        SourceError: it cannot be written for another reason.
    """
    count = 0
    with record_writer(path) as write:
        for record in records:
            write(record)
            count += 1
    return count


def read_records(path: Path) -> Iterator[CommitRecord]:
    """Yield the records of a file; does blocking I/O.

    Raises:
        SourceError: the file cannot be read, or a line of it is damaged.
    """
    number = 0
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):  # noqa: B007 - named in the error
                yield record_from_row(json.loads(line))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise SourceError(f"{path}, line {number}: no record of a commit: {error}") from error
