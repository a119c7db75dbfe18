"""Rows of ``codetaste report``: which of its options ask for rows, and rows written to files or printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast, get_args

from codetaste.console.streams import notify, print_result
from codetaste.core.files import write_atomically
from codetaste.core.text import plural, printable
from codetaste.errors import ConfigError
from codetaste.results.load import ROW_KINDS, RowTable
from codetaste.results.rows.files import RowFormat, render_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.results.load import Results

ReportFormat = Literal["text", "markdown", "latex", "csv", "jsonl", "parquet"]
_ONLY_ROWS = {"jsonl", "parquet"}


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Which rows are to be written, in which format."""

    tables: tuple[RowTable, ...]
    format: RowFormat


def requested_rows(
    tables: Sequence[str], format_: ReportFormat, *, grouped: bool, as_json: bool
) -> RowRequest | None:
    """Return which rows the options ask for; None if they ask for tables.

    Raises:
        ConfigError: the options do not fit together.
    """
    named: tuple[RowTable, ...] = tuple(each for each in get_args(RowTable) if each in tables)
    if not named and format_ in _ONLY_ROWS:
        raise ConfigError(f"--format {format_} is for --table trials, rules or jobs")
    if not named:
        return None
    shown = ", ".join(named)
    if len(named) < len(set(tables)) or grouped:
        raise ConfigError(f"--table {shown}: rows are written alone, without --by and other tables")
    if as_json:
        raise ConfigError(f"--table {shown}: not with --json; rows as JSON are --format jsonl")
    if format_ in {"text", "markdown", "latex"}:
        raise ConfigError(f"--table {shown}: rows are data; add --format csv, jsonl or parquet")
    return RowRequest(named, cast("RowFormat", format_))


def write_rows(results: Results, request: RowRequest, out: Path | None) -> int:
    """Print rows, or write a file for each table; return the exit code, 1 if there is no row.

    Args:
        results: the results.
        request: which rows.
        out: a file, if its name ends like the format, or a folder; None is standard output.

    Raises:
        ConfigError: several tables for one file or for standard output, or Parquet for standard output.
        ToolMissing: pyarrow is not installed.
        StorageFull: no space is left.
        JournalError: a file cannot be written.
    """
    suffix = f".{request.format}"
    if len(request.tables) > 1 and (out is None or out.suffix == suffix):
        raise ConfigError(f"--table {', '.join(request.tables)}: name a folder with --out, for a file each")
    if out is None and request.format == "parquet":
        raise ConfigError("--format parquet: name a file or a folder with --out")
    found = 0
    for table in request.tables:
        rows = results.table(table)
        content = render_rows(ROW_KINDS[table], rows, request.format)
        found += len(rows)
        if out is None:
            print_result(content.decode().removesuffix("\n").removesuffix("\r"))
            continue
        path = out if out.suffix == suffix else out / f"{table}{suffix}"
        write_atomically(path, content)
        print_result(str(path))
    _notify_of_problems(results)
    if not found:
        notify(f"codetaste: there is no row of {' or '.join(request.tables)}")
    return 0 if found else 1


def _notify_of_problems(results: Results) -> None:
    problems = results.problems
    if problems:
        first = printable(str(problems[0]))
        more = f", and {len(problems) - 1:,} more (codetaste report lists all)" if len(problems) > 1 else ""
        notify(f"codetaste: {plural(len(problems), 'problem')} in what was read: {first}{more}")
