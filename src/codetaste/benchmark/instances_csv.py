"""``instances.csv``: strict reader and formatter of a benchmark's table of instances."""

from __future__ import annotations

import csv
import difflib
import io
import math
import re
from typing import TYPE_CHECKING

from codetaste.benchmark.instance import Instance
from codetaste.core.text import shorten
from codetaste.errors import ConfigError, SourceError
from codetaste.source.origin import parse_origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

COLUMNS = (
    "owner",
    "repo",
    "commit_hash",
    "golden_commit_hash",
    "combined_score",
    "category",
    "language",
)
LANGUAGES = frozenset(
    {
        *("apex", "bash", "c", "c#", "c++", "cairo", "clojure", "cpp", "csharp", "dart", "dockerfile"),
        *("elixir", "go", "hack", "html", "java", "javascript", "json", "jsonnet", "julia", "kotlin"),
        *("lisp", "lua", "ocaml", "php", "promql", "protobuf", "python", "ql", "r", "ruby", "rust"),
        *("scala", "scheme", "solidity", "swift", "terraform", "typescript", "vb", "vue", "xml", "yaml"),
    }
)
"""Languages of instances: those that OpenGrep supports, by its names and the paper's."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MAX_SHOWN_CHARS = 60


def read_table(content: bytes, name: str) -> tuple[Instance, ...]:
    """Read ``instances.csv``.

    Args:
        content: the file's bytes.
        name: the file's name in messages.

    Raises:
        ConfigError: one line for each problem, with file and line.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{name}:{line}: byte {content[error.start]:#04x} is not UTF-8; save the file as UTF-8"
        ) from None
    problems: list[str] = []
    rows = _rows(text, name, problems)
    header = next(rows, None)
    if header is None:
        raise ConfigError(
            *problems or [f"{name}: the file is empty; its first line names the columns {','.join(COLUMNS)}"]
        )
    columns = _columns(header[1], f"{name}:{header[0]}", problems)
    instances: list[Instance] = []
    first_line: dict[str, int] = {}
    for line, fields in rows:
        place = f"{name}:{line}"
        if len(fields) != len(header[1]):
            problems.append(
                f"{place}: {len(fields)} fields, but the first line names {len(header[1])} columns"
            )
            continue
        if columns is None:
            continue
        instance = _instance(dict(zip(columns, fields, strict=True)), place, problems)
        if instance is None:
            continue
        if instance.id in first_line:
            problems.append(f"{place}: {instance.id} is already in line {first_line[instance.id]}")
        first_line.setdefault(instance.id, line)
        instances.append(instance)
    if not instances and not problems:
        problems.append(f"{name}: it has a header, but no instance")
    if problems:
        raise ConfigError(*problems)
    return tuple(instances)


def format_table(instances: Sequence[Instance]) -> str:
    """Return the text of ``instances.csv`` for ``instances``; extra columns follow the published ones."""
    extra = list(dict.fromkeys(name for instance in instances for name in instance.extra))
    lines = [_format_row([*COLUMNS, *extra])]
    for instance in instances:
        score = "" if instance.combined_score is None else repr(instance.combined_score)
        published = (instance.owner, instance.repo, instance.commit_hash, instance.golden_commit_hash, score)
        further = [instance.extra.get(name, "") for name in extra]
        lines.append(_format_row([*published, instance.category, instance.language, *further]))
    return "".join(lines)


def _format_row(fields: Sequence[str]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(fields)  # with "\n" a lone "\r" would not be quoted
    return text.getvalue().removesuffix("\r\n") + "\n"


def nearest_names_hint(word: str, known: Iterable[str], count: int = 3) -> str:
    """Return ``; did you mean …?`` with the names nearest to ``word``, "" if none is near."""
    near = difflib.get_close_matches(word, filter(str.isprintable, known), n=count, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _rows(text: str, name: str, problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number (from 1) and the fields of each row; blank lines are skipped."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        problems.append(f"{name}:{line}: {error}")


def _columns(header: list[str], place: str, problems: list[str]) -> list[str] | None:
    columns = [column.strip() for column in header]
    faults = [
        f"{place}: the column {_show(column)} is there twice"
        for column in dict.fromkeys(columns)
        if columns.count(column) > 1
    ]
    for column in COLUMNS:
        if column not in columns:
            others = [other for other in columns if other not in COLUMNS]
            faults.append(f"{place}: the column {column!r} is missing{nearest_names_hint(column, others, 1)}")
    problems += faults
    return None if faults else columns


def _instance(row: Mapping[str, str], place: str, problems: list[str]) -> Instance | None:
    """Parse one row; if it has errors, add them to ``problems`` and return None."""
    faults = [
        f"{column} {_show(row[column])} is not a valid name (letters, digits, '-', '_' and '.')"
        for column in ("owner", "repo")
        if not is_path_name(row[column])
    ]
    faults += [
        f"{column} {_show(row[column])} is not a full hash (40 or 64 lower-case hex digits)"
        for column in ("commit_hash", "golden_commit_hash")
        if _HASH.fullmatch(row[column]) is None
    ]
    if not faults and row["commit_hash"] == row["golden_commit_hash"]:
        faults.append("commit_hash and golden_commit_hash are the same")
    language = row["language"]
    if language not in LANGUAGES:
        faults.append(
            f"language {_show(language)} is unknown{nearest_names_hint(language.lower(), LANGUAGES, 1)}"
        )
    score = _score(row["combined_score"], faults)
    extra = {name: value for name, value in row.items() if name not in COLUMNS}
    if not faults:
        try:
            parse_origin(
                row.get("origin", ""),
                owner=row["owner"],
                repo=row["repo"],
                base=row["commit_hash"],
                golden=row["golden_commit_hash"],
            )
        except SourceError as error:
            faults.append(str(error))
    problems += [f"{place}: {fault}" for fault in faults]
    if faults:
        return None
    return Instance(
        row["owner"],
        row["repo"],
        row["commit_hash"],
        row["golden_commit_hash"],
        score,
        row["category"],
        language,
        extra,
    )


def is_path_name(name: str) -> bool:
    """Return whether ``name`` may be one component of a path in the published layout."""
    return _NAME.fullmatch(name) is not None and not name.startswith("-") and set(name) != {"."}


def _score(text: str, faults: list[str]) -> float | None:
    if not text:
        return None
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        faults.append(f"combined_score {_show(text)} is not a number")
        return None
    return score


def _show(text: str) -> str:
    return repr(shorten(text, _MAX_SHOWN_CHARS))
