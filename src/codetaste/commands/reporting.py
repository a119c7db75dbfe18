"""``codetaste report``: from folders to tables."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.atomic import write_atomically
from codetaste.benchmark.statistics import describe_benchmark
from codetaste.command import result_stream, say, tell
from codetaste.commands.named import named_benchmark
from codetaste.errors import ConfigError
from codetaste.evaluation.reading import merged, read_outputs
from codetaste.report.aggregate import Aggregation
from codetaste.report.comparison import as_json as comparison_json
from codetaste.report.contents import NAMES, USUAL, make_report, problems_table
from codetaste.report.progress import printable
from codetaste.report.render_csv import render_csv
from codetaste.report.render_json import problem_json, table_json
from codetaste.report.render_latex import render_latex
from codetaste.report.render_markdown import render_markdown
from codetaste.report.render_text import render_text
from codetaste.report.tables_groups import By
from codetaste.report.trials import gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.evaluation.records import Records
    from codetaste.report.contents import Report
    from codetaste.report.table import Table

_ENDINGS = {"text": "txt", "markdown": "md", "latex": "tex", "csv": "csv"}


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be told of which runs; empty names of tables are the usual ones."""

    runs: tuple[Path, ...]
    benchmark: str = ""
    repos: Path | None = None
    format: str = "text"
    tables: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    aggregation: str = "both"
    out: Path | None = None
    json: bool = False


def report(wish: Wish) -> int:
    """Make the tables; returns the exit code, 1 if there is no trial in the runs.

    Raises:
        ConfigError: a folder is not there or no output, or nothing is asked for.
        JournalError: a file cannot be written.
    """
    if not wish.runs and not wish.benchmark:
        raise ConfigError("name a run, a folder of outputs, or --benchmark for its Tables 1 and 2")
    roots = _roots(wish.runs)
    benchmark = _benchmark(wish, roots)
    records = _read(roots, benchmark)
    trials = gather(records.records)
    names = NAMES if "all" in wish.tables else wish.tables or (() if wish.by else _usual(wish))
    facts = None
    if benchmark is not None and {"1", "2"} & set(names):
        facts = describe_benchmark(benchmark)
    elif {"1", "2"} & set(wish.tables):
        raise ConfigError("Tables 1 and 2 are of a benchmark: name it by --benchmark")
    aggregations = list(Aggregation) if wish.aggregation == "both" else [Aggregation(wish.aggregation)]
    people = wish.format != "csv" and not wish.json
    made = make_report(trials, facts, names, [By(each) for each in wish.by], aggregations, merge=people)
    problem = problems_table(records.problems, trials.notes, listed=wish.format == "csv")
    tables = [*made.tables, *([problem] if problem else [])]
    files = _write(tables, wish) if wish.out is not None else []
    if wish.json:
        say(json.dumps(_json(records, made, trials.notes, files), indent=2))
    elif wish.out is None and tables:
        say(_rendered(tables, wish.format).removesuffix("\n"))
    elif files:
        say("\n".join(files))
    if not trials.agents and (roots or not tables):
        tell(f"codetaste: there is no trial in {printable(', '.join(map(str, wish.runs))) or 'no run'}")
        return 1
    return 0


def _usual(wish: Wish) -> tuple[str, ...]:
    return (*(("1",) if wish.benchmark else ()), *USUAL)


def _roots(runs: Sequence[Path]) -> list[Path]:
    """Return the folders that are meant, each once: paths as they are typed, or names below ``runs/``."""
    found: dict[Path, Path] = {}
    for run in runs:
        place = run if run.is_dir() or not (Path("runs") / run).is_dir() else Path("runs") / run
        found.setdefault(place.resolve(), place)
    return list(found.values())


def _benchmark(wish: Wish, roots: Sequence[Path]) -> Benchmark | None:
    """Open the benchmark that is named, or the one that all runs name, if it can be opened."""
    if wish.repos is not None and not wish.repos.is_dir():
        raise ConfigError(f"--repos: {wish.repos} is not a folder")
    if wish.benchmark:
        return named_benchmark(wish.benchmark, wish.repos)
    named = {_named(root) for root in roots}
    name = named.pop() if len(named) == 1 else ""
    try:
        return named_benchmark(name, wish.repos) if name else None
    except ConfigError:
        return None


def _named(root: Path) -> str:
    """Return the benchmark in a run's frozen config, "" where nothing is said."""
    for folder in (root, root.parent):
        try:
            config = json.loads((folder / "config.json").read_bytes())
            return str(config["benchmark"]["path"])
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            continue
    return ""


def _read(roots: Sequence[Path], benchmark: Benchmark | None) -> Records:
    """Read every folder; runs that have one name are told apart by their paths."""
    readings: list[Records] = []
    names: set[str] = set()
    for root in roots:
        found = read_outputs(root, benchmark)
        own = {record.run for record in found.records}
        if own & names:
            label = printable(str(root))
            found = replace(found, records=tuple(replace(each, run=label) for each in found.records))
            own = {label}
        if len(roots) > 1:
            placed = [replace(each, place=f"{printable(str(root))}: {each.place}") for each in found.problems]
            found = replace(found, problems=tuple(placed))
        names |= own
        readings.append(found)
    return readings[0] if len(readings) == 1 else merged(readings)


def _rendered(tables: Sequence[Table], format_: str) -> str:
    if format_ == "csv":
        return render_csv(tables)
    stream = result_stream()
    width = shutil.get_terminal_size().columns if format_ == "text" and stream.isatty() else None
    render = {"markdown": render_markdown, "latex": render_latex}.get(format_)
    between = "\n\n\n" if format_ == "text" else "\n\n"
    return between.join(render_text(table, width) if render is None else render(table) for table in tables)


def _write(tables: Sequence[Table], wish: Wish) -> list[str]:
    """Write a file for each table; returns their paths."""
    out = wish.out or Path()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out: {out} cannot be made: {error.strerror}") from None
    written = []
    for table in tables:
        how = table.aggregation if table.aggregation in set(Aggregation) else ""
        name = f"table-{table.name}" if table.name.isdecimal() else table.name
        path = out / f"{name}{f'-{how}' if how else ''}.{_ENDINGS[wish.format]}"
        text = _rendered([table], wish.format)
        write_atomically(path, text if wish.format == "csv" else f"{text}\n")
        written.append(str(path))
    return written


def _json(records: Records, made: Report, notes: Sequence[str], files: Sequence[str]) -> dict[str, object]:
    return {
        "trials": len(records.records),
        "comparisons": [comparison_json(each) for each in made.comparisons],
        "tables": [table_json(each) for each in made.tables],
        "problems": [problem_json(each) for each in records.problems],
        "notes": list(notes),
        "files": list(files),
    }
