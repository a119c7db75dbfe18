"""``codetaste swe-refactor report``: read the trials of runs, and print their tables."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from codetaste.cli.options import AsJson, OptionalPath
from codetaste.cli.tables import TextFormat, render_tables, write_tables
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.files import read_text_file
from codetaste.core.text import plural, printable
from codetaste.errors import ConfigError
from codetaste.report.render.json import table_to_json
from codetaste.report.statistics.comparison import ALPHA
from codetaste.report.table import Table
from codetaste.results.roots import run_folders
from codetaste.swe_refactor.dataset.format import MAX_FILE_BYTES, parse_instances
from codetaste.swe_refactor.report.comparison import compare_successes
from codetaste.swe_refactor.report.merge import read_runs
from codetaste.swe_refactor.report.projects import group_projects, project_table
from codetaste.swe_refactor.report.tables import (
    DEFAULT_TRIAL_TABLES,
    TRIAL_TABLES,
    TrialTableName,
    report_tables,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.report.comparison import SuccessTest
    from codetaste.swe_refactor.report.trial_row import TrialRow

_SAMPLE_TABLE, _PROJECTS_TABLE = "5", "6"
_FILE_FORMATS = ("csv", "markdown", "latex", "json")

_Format = Literal[TextFormat, "json"]
_TableName = Literal[TrialTableName, "6", "all"]


@command
def report(
    *runs: Path,
    table: Annotated[tuple[_TableName, ...], Parameter(negative=())] = (),
    format_: Annotated[_Format, Parameter(name="--format")] = "text",
    sample: OptionalPath = None,
    instances: OptionalPath = None,
    to: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Print or write the tables of runs of SWE-Refactor.

    Args:
        runs: Run folders or their names.
        table: Which tables; default 2, effort, strategies, ranking and failures; with --to all of them.
        format_: Format of the tables.
        sample: The instances of Table 5: a file of instances, such as swe-refactor sample writes, or a JSON
            list of ids.
        instances: The same for all tables: trials at other instances are left out. Of a file of instances,
            Table 6 shows the projects.
        to: A folder for each table as CSV, Markdown, LaTeX and JSON.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if there is no trial in the runs.

    Raises:
        ConfigError: a folder is not a run with trials of SWE-Refactor, a file is damaged, or a table needs an
            option that is not there.
        StorageFull: no space is left.
        JournalError: a file cannot be written.
    """
    if not runs:
        raise ConfigError("name a run: the folder, such as runs/NAME, or its name")
    sampled = None if sample is None else _read_list(sample, "--sample")
    chosen = None if instances is None else _read_list(instances, "--instances")
    with_instances = chosen is not None and bool(chosen.instances)
    names = _table_names(table, with_sample=sampled is not None, with_instances=with_instances, all_=to)
    merged = read_runs(run_folders(runs))
    rows, notes = merged.rows, list(merged.notes)
    if chosen is not None:
        rows, note = _select(rows, chosen.ids)
        notes += note
    made = (
        report_tables(rows, [name for name in names if name != _PROJECTS_TABLE], sampled and sampled.ids)
        if rows
        else []
    )
    if chosen is not None and instances is not None and _PROJECTS_TABLE in names:
        made.append(project_table(group_projects(chosen.instances, instances.stem)))
    tables = [replace(each, notes=(*each.notes, *map(printable, notes))) for each in made]
    files = [] if to is None else write_tables(tables, _FILE_FORMATS, to, "--to")
    if json_ or format_ == "json":
        print_result(json_document(_to_json(rows, tables, notes, files)))
    elif files:
        print_result("\n".join(files))
    elif tables:
        shown = _with_common_notes_last(tables) if format_ == "text" else tables
        print_result(render_tables(shown, format_).removesuffix("\n"))
    if not rows:
        where = "" if instances is None or not merged.rows else f" at the instances of {instances}"
        notify(printable(f"codetaste: there is no trial{where} in {', '.join(map(str, runs))}"))
    return 0 if rows else 1


def _table_names(
    named: Sequence[str], *, with_sample: bool, with_instances: bool, all_: Path | None
) -> Sequence[str]:
    """Return the names of the tables to make, those of the command line if there are any."""
    needs = {_SAMPLE_TABLE: (with_sample, "--sample"), _PROJECTS_TABLE: (with_instances, "--instances")}
    problems = [
        f"--table {name} is about a file of instances: name it with {option}"
        for name, (given, option) in needs.items()
        if name in named and not given
    ]
    if problems:
        raise ConfigError(*problems)
    if "all" in named or (all_ is not None and not named):
        found: Sequence[str] = (*TRIAL_TABLES, _PROJECTS_TABLE)
    elif named:
        found = tuple(dict.fromkeys(named))
    else:
        found = (*DEFAULT_TRIAL_TABLES, *(name for name, (given, _) in needs.items() if given))
    return [name for name in found if needs.get(name, (True,))[0]]


class _InstanceList(NamedTuple):
    """The ids of a file, and its instances; none if it is a list of ids."""

    ids: frozenset[str]
    instances: tuple[RefactoringInstance, ...] = ()


def _read_list(path: Path, option: str) -> _InstanceList:
    """Read a file of instances, or a JSON list of ids.

    Raises:
        ConfigError: it is neither.
    """
    try:
        text = read_text_file(path, MAX_FILE_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"{option} {path}: cannot be read: {reason}") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None  # reported below
    if isinstance(data, list) and data and all(isinstance(each, str) for each in data):
        return _InstanceList(frozenset(data))
    found = parse_instances(text, f"{option} {path}")
    return _InstanceList(frozenset(each.unique_id for each in found), found)


def _select(rows: Sequence[TrialRow], ids: frozenset[str]) -> tuple[tuple[TrialRow, ...], list[str]]:
    """Return the rows of these instances, and a note on instances without one."""
    found = tuple(row for row in rows if row.instance in ids)
    missing = len(ids - {row.instance for row in found})
    have = "have" if missing > 1 else "has"
    note = f"{plural(missing, 'instance')} of {plural(len(ids), 'instance')} {have} no trial"
    return found, [note] if missing else []


def _with_common_notes_last(tables: Sequence[Table]) -> list[Table]:
    """Return the tables without the notes that several of them have, and these notes behind the last one."""
    counts = Counter(note for each in tables for note in each.notes)
    common = tuple(note for note, number in counts.items() if number > 1)
    own = [replace(each, notes=tuple(note for note in each.notes if note not in common)) for each in tables]
    return [*own, Table("notes", "on several of these tables", (), (), common)] if common else own


def _to_json(
    rows: Sequence[TrialRow], tables: Sequence[Table], notes: Sequence[str], files: Sequence[str]
) -> dict[str, Any]:
    return {
        "trials": len(rows),
        "not_counted": sum(not row.counted for row in rows),
        "tests": [_test_to_json(each) for each in compare_successes(rows)],
        "tables": [table_to_json(each) for each in tables],
        "notes": list(notes),
        "files": list(files),
    }


def _test_to_json(test: SuccessTest) -> dict[str, Any]:
    data = asdict(test)
    return {
        **{name: value for name, value in data.items() if name not in {"first", "second", "q"}},
        "first": test.first._asdict(),
        "second": test.second._asdict(),
        "p_corrected": test.q,
        "significant": test.q <= ALPHA,
    }
