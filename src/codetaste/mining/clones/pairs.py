"""Pairs of commits from a CSV file, such as the published ones: repository, base and golden commit.

The columns have the names of the published files or others that are common, in any order and case; more
columns may be there. The separator is a comma, a semicolon or a tab. A bad row is one line of ``problems``.
"""

from __future__ import annotations

import csv
import io
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from codetaste.core.text import shorten
from codetaste.errors import ConfigError
from codetaste.mining.clones.clone import repository_name
from codetaste.mining.commit import CommitRecord, PullRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_COLUMNS = {
    "owner": ("owner", "org", "organization"),
    "repo": ("repo", "repo_name"),
    "repository": ("repository", "full_name", "project", "url"),
    "golden": ("golden_commit_hash", "golden", "golden_commit", "golden_hash", "merge_commit_sha"),
    "base": ("commit_hash", "base", "base_commit", "base_commit_hash", "base_hash", "parent"),
    "message": ("message", "commit_message"),
    "number": ("pull_request", "pr", "pr_number", "number"),
    "title": ("title", "pr_title"),
    "body": ("body", "pr_body"),
    "stars": ("stars", "stargazers", "stargazers_count"),
    "files": ("files", "changed_files"),
    "additions": ("additions", "added"),
    "deletions": ("deletions", "removed"),
    "date": ("date", "merged_at", "committed_at"),
    "licence": ("licence", "license"),
}
"""The names of each field; the first one that is there counts."""
_LONE_COMMIT = ("commit", "commit_hash", "sha", "hash")
"""The golden commit, if no other column is for it; its base is then its first parent."""
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SEPARATORS = ",;\t"
_SHOWN_CHARS = 60
_MAX_FIELD_CHARS = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of a file, and a line for each row that is none."""

    records: tuple[CommitRecord, ...]
    problems: tuple[str, ...]


def read_pairs(content: bytes, name: str) -> Pairs:
    """Read the pairs of a CSV file. A pair that is there again is a problem of the later row.

    Args:
        content: the file's bytes.
        name: the file's name in messages.

    Raises:
        ConfigError: no column has the repository or the golden commit.
    """
    text = content.decode("utf-8-sig", "surrogateescape")
    problems: list[str] = []
    rows = _rows(text, name, problems)
    _, header = next(rows, (1, []))
    columns = _columns(header, name)
    records: list[CommitRecord] = []
    first_line: dict[tuple[str, str], int] = {}
    for line, fields in rows:
        place = f"{name}:{line}"
        if len(fields) != len(header):
            problems.append(f"{place}: {len(fields)} fields, but the first line names {len(header)} columns")
            continue
        try:
            record = _record({key: fields[at].strip() for key, at in columns.items()}, place)
        except ValueError as error:
            problems.append(f"{place}: {error}")
            continue
        key = (record.repository.lower(), record.golden)
        if key in first_line:
            problems.append(f"{place}: {record.name} is already in line {first_line[key]}")
            continue
        first_line[key] = line
        records.append(record)
    return Pairs(tuple(records), tuple(problems))


def _rows(text: str, name: str, problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number, from 1, and the fields of each row that is not blank."""
    first = text.partition("\n")[0]
    separator = max(_SEPARATORS, key=first.count)
    csv.field_size_limit(_MAX_FIELD_CHARS)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    line = 1
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            problems.append(f"{name}:{line}: {error}")
            fields = []
        if fields is None:
            return
        if any(field.strip() for field in fields):
            yield line, fields
        line = reader.line_num + 1


def _columns(header: Sequence[str], name: str) -> Mapping[str, int]:
    """Return the index of each field that the file has."""
    there: dict[str, int] = {}
    for at, column in enumerate(header):
        there.setdefault(column.strip().lower().replace(" ", "_").replace("-", "_"), at)
    found = {
        key: next(there[each] for each in columns if each in there)
        for key, columns in _COLUMNS.items()
        if there.keys() & set(columns)
    }
    if "golden" not in found:
        lone = [there[column] for column in _LONE_COMMIT if column in there]
        found |= {"golden": lone[0]} if lone else {}
        if found.get("base") in lone:
            del found["base"]
    problems = []
    if not found.keys() & {"repository", "repo"}:
        problems.append(f"{name}:1: no columns 'owner' and 'repo', and none 'repository'")
    if "golden" not in found:
        problems.append(f"{name}:1: no column 'golden_commit_hash' (or 'golden', 'commit', 'sha')")
    if problems:
        raise ConfigError(*problems)
    return found


def _record(row: Mapping[str, str], place: str) -> CommitRecord:
    """Return the record of a row.

    Raises:
        ValueError: something is wrong with a field.
    """
    for key, value in row.items():
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(f"{key} is not UTF-8") from None
    golden, base = row["golden"].lower(), row.get("base", "").lower()
    for side, value in (("golden commit", golden), ("base commit", base)):
        if (value or side == "golden commit") and _HASH.fullmatch(value) is None:
            raise ValueError(f"{side} {_show(value)} is not a full hash (40 or 64 hex digits)")
    if golden == base:
        raise ValueError("base and golden commit are the same")
    return CommitRecord(
        _repository(row),
        golden,
        base or None,
        row.get("message", ""),
        pull_request=_pull_request(row),
        stars=_number(row, "stars"),
        files=_number(row, "files"),
        additions=_number(row, "additions"),
        deletions=_number(row, "deletions"),
        date=_date(row.get("date", "")),
        licence=row.get("licence") or None,
        source=place,
    )


def _repository(row: Mapping[str, str]) -> str:
    owner, repo = row.get("owner", ""), row.get("repo", "")
    full = row.get("repository") or (repo if "/" in repo else f"{owner}/{repo}")
    name = repository_name(full)
    if name is None or ("://" not in full and "@" not in full and full.removesuffix(".git") != name):
        raise ValueError(f"repository {_show(full)} is not OWNER/REPO or a URL")
    return name


def _pull_request(row: Mapping[str, str]) -> PullRequest | None:
    number = _number(row, "number")
    if number is None and not row.get("title"):
        return None
    return PullRequest(number or 0, row.get("title", ""), row.get("body", ""))


def _number(row: Mapping[str, str], key: str) -> int | None:
    value = row.get(key, "").replace(",", "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit()):
        raise ValueError(f"{key} {_show(value)} is not a number")
    return int(value[:18])


def _date(value: str) -> datetime | None:
    """Return a date; without a time zone it is UTC."""
    if not value:
        return None
    with suppress(ValueError, OverflowError, OSError):
        if value.isascii() and value.isdigit():
            return datetime.fromtimestamp(int(value), UTC)
        date = datetime.fromisoformat(value)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        date.astimezone(UTC)  # fails at the ends of the calendar, where no time in UTC stands for it
        return date
    raise ValueError(f"date {_show(value)} is not a date (such as 2024-06-30T12:00:00Z)")


def _show(text: str) -> str:
    return repr(shorten(text, _SHOWN_CHARS))
