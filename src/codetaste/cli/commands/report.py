"""``codetaste report``: read runs and published outputs, print their tables and draw their figures."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import anyio
from cyclopts import Parameter

from codetaste.benchmark.facts.facts import describe_benchmark
from codetaste.cli.arguments import open_scan, resolve_benchmark
from codetaste.cli.figures import NO_FIGURES, FigureOptions, write_figures
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.cli.rows import ReportFormat, requested_rows, write_rows
from codetaste.cli.site import STANDARD_OUTPUT, OutputOptions, write_report_site
from codetaste.cli.tables import TextFormat, render_tables, write_tables
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.text import plural
from codetaste.errors import ConfigError
from codetaste.flows.existing_rules.coverage import existing_coverage
from codetaste.report.discovery.tables import (
    DISCOVERY_TABLES,
    DiscoveryTableName,
    discovery_tables,
    existing_rules_table,
)
from codetaste.report.render.json import table_to_json
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.tables.comparison import comparison_to_json
from codetaste.report.tables.environments import (
    ENVIRONMENT_TABLES,
    EnvironmentTableName,
    environment_tables,
)
from codetaste.report.tables.groups import GroupBy
from codetaste.report.tables.report import DEFAULT_TABLES, TABLE_NAMES, TableName, make_report, problems_table
from codetaste.results.load import Results, RowTable
from codetaste.results.read import describe_no_trials, read_results
from codetaste.results.roots import check_outside, existing_run_folders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.facts.facts import BenchmarkFacts
    from codetaste.report.discovery.passes import PassRecord
    from codetaste.report.render.paper import PaperWidth
    from codetaste.report.table import Table
    from codetaste.report.tables.report import TrialReport
    from codetaste.results.read import RunResults
    from codetaste.rules.registration import Direction
    from codetaste.rules.scan.model import Line

_BENCHMARK_TABLES = {"1", "2"}

_AnyTable = Literal[TableName, DiscoveryTableName, EnvironmentTableName, RowTable, "all"]


@dataclass(frozen=True, kw_only=True)
class BenchmarkOptions:
    """Options that name the benchmark of runs."""

    benchmark: str = ""
    """The benchmark's folder, or "quickstart", for languages, categories, baselines and Tables 1 and 2;
    default the benchmark of the runs, if it exists."""
    repos: OptionalPath = None
    """A folder of clones OWNER/REPO, for licences and golden patches in Tables 1 and 2."""


_OF_RUNS = BenchmarkOptions()


@command
def report(
    *runs: Path,
    source: Annotated[BenchmarkOptions, Parameter(name="*")] = _OF_RUNS,
    format_: Annotated[ReportFormat | None, Parameter(name="--format")] = None,
    table: Annotated[tuple[_AnyTable, ...], Parameter(negative=())] = (),
    by: Annotated[tuple[GroupBy, ...], Parameter(negative=())] = (),
    aggregation: Literal["strict", "published", "both"] = "both",
    output: Annotated[OutputOptions, Parameter(name="*")] = STANDARD_OUTPUT,
    figures: Annotated[FigureOptions, Parameter(name="*")] = NO_FIGURES,
    json_: AsJson = False,
) -> int:
    """Print the tables of runs, or write a site of pages with -o, tables or figures.

    Args:
        runs: Run folders or their names, or folders in the published layout of outputs.
        source: The benchmark that the runs are about.
        format_: Format of the tables, default text; of the rows "trials", "rules" and "jobs" csv, jsonl or
            parquet.
        table: Which tables; default comparison, 4, 5, effort, attempts, counts, and those of rule discovery
            and of environments. "trials", "rules" and "jobs" have a row for each, as docs/rows.md describes.
        by: Add a table of scores grouped by this; other tables are then printed only if named.
        aggregation: How trials without a score count: as 0 (strict), not at all (published), or both ways.
        output: Where the report is written.
        figures: Which figures to draw, and how.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if there is no trial, no discovered rule and no environment in the runs, or if they
        have the data of none of the figures.

    Raises:
        ConfigError: a folder does not exist or is not a run, or no run is given.
        JournalError: a file cannot be written, or a journal is damaged.
        ToolMissing: figures need matplotlib, which is not installed.
    """
    benchmark = source.benchmark
    if not runs and not benchmark:
        raise ConfigError("name a run, a folder of outputs, or --benchmark for its Tables 1 and 2")
    rows = requested_rows(table, format_ or "text", grouped=bool(by), as_json=json_)
    roots = existing_run_folders(runs)
    if output.out is not None:
        check_outside(output.out, roots, "-o")
    named = _find_benchmark(benchmark, source.repos)
    results = read_results(roots, named, source.repos)
    aggregations = list(Aggregation) if aggregation == "both" else [Aggregation(aggregation)]
    if figures.figure:
        if table or by or format_ is not None or output.redact:
            raise ConfigError(
                "--figure: figures are drawn alone, without --table, --by, --format and --redact"
            )
        return write_figures(results, figures, aggregations[0], output.out, as_json=json_)
    if rows is not None:
        return write_rows(Results(results), rows, output.out)
    if output.out is not None and format_ is None and not (table or by):
        return write_report_site(results, output, as_json=json_)
    if output.redact:
        raise ConfigError("--redact is for the site: name its folder with -o, and no table or format")
    text_format = cast("TextFormat", format_ or "text")  # the others are of rows
    chosen = _ChosenTables(table, by, text_format, output.out, figures.width, bool(benchmark))
    return _print_tables(results, named or results.benchmarks.only, chosen, aggregations, as_json=json_)


@dataclass(frozen=True, slots=True)
class _ChosenTables:
    """Which tables are made, and in which form; ``with_benchmark``: those of a named benchmark too."""

    named: tuple[_AnyTable, ...]
    by: tuple[GroupBy, ...]
    format: TextFormat
    out: Path | None
    width: PaperWidth
    with_benchmark: bool


def _print_tables(
    results: RunResults,
    benchmark: Benchmark | None,
    chosen: _ChosenTables,
    aggregations: Sequence[Aggregation],
    *,
    as_json: bool,
) -> int:
    passes, environments, trials = results.passes, results.environments, results.trials
    names = _table_names(chosen.named, grouped=bool(chosen.by), with_benchmark=chosen.with_benchmark)
    of_trials = [name for name in names if name in TABLE_NAMES]
    facts = _facts(benchmark, names, chosen.named)
    merge = chosen.format != "csv" and not as_json
    made = make_report(trials, facts, of_trials, chosen.by, aggregations, merge=merge)
    problem = problems_table(results.problems, trials.notes, listed=chosen.format == "csv")
    discovered = discovery_tables(passes, names)
    if "existing-rules" in chosen.named:
        discovered += _beside_existing(passes, benchmark)
    discovered += environment_tables(environments, names)
    tables = [*made.tables, *discovered, *([problem] if problem else [])]
    files = []
    if chosen.out is not None:
        files = write_tables(tables, [chosen.format], chosen.out, "--out", chosen.width)
    if as_json:
        made = replace(made, tables=(*made.tables, *discovered))
        print_result(json_document(_report_to_json(results, made, files)))
    elif chosen.out is None and tables:
        print_result(render_tables(tables, chosen.format, chosen.width).removesuffix("\n"))
    elif files:
        print_result("\n".join(files))
    if not (trials.agents or passes or environments) and (results.roots or not tables):
        hint = "; codetaste swe-refactor report is for SWE-Refactor's" if results.answers.rows else ""
        notify(f"codetaste: {describe_no_trials(results)}{hint}")
        return 1
    if answers := len(results.answers.rows):
        notify(
            f"codetaste: not in these tables: {plural(answers, 'trial')} of SWE-Refactor; "
            "codetaste swe-refactor report has them"
        )
    return 0


def _facts(benchmark: Benchmark | None, names: Sequence[str], named: Sequence[str]) -> BenchmarkFacts | None:
    """Return what Tables 1 and 2 need; None if they are not made.

    Raises:
        ConfigError: one of them is ``named``, but there is no benchmark.
    """
    if benchmark is not None and _BENCHMARK_TABLES & set(names):
        return describe_benchmark(benchmark)
    if _BENCHMARK_TABLES & set(named):
        raise ConfigError("Tables 1 and 2 describe a benchmark: name it with --benchmark")
    return None


def _table_names(named: Sequence[str], *, grouped: bool, with_benchmark: bool) -> Sequence[str]:
    """Return the names of the tables to make, those of the command line if there are any."""
    if "all" in named:
        return (*TABLE_NAMES, *DISCOVERY_TABLES, *ENVIRONMENT_TABLES)
    if named or grouped:
        return named
    return (*(("1",) if with_benchmark else ()), *DEFAULT_TABLES, *DISCOVERY_TABLES, *ENVIRONMENT_TABLES)


def _report_to_json(results: RunResults, made: TrialReport, files: Sequence[str]) -> dict[str, Any]:
    return {
        "trials": len(results.records.records),
        "comparisons": [comparison_to_json(each) for each in made.comparisons],
        "tables": [table_to_json(each) for each in made.tables],
        "problems": [asdict(each) for each in results.problems],
        "notes": list(results.trials.notes),
        "files": list(files),
    }


def _find_benchmark(name: str, repos: Path | None) -> Benchmark | None:
    """Open the benchmark ``name``, if there is a name."""
    if repos is not None and not repos.is_dir():
        raise ConfigError(f"--repos: {repos} is not a folder")
    return resolve_benchmark(name, repos) if name else None


def _beside_existing(passes: Sequence[PassRecord], benchmark: Benchmark | None) -> list[Table]:
    """Scan with the benchmark's rules and compare; needs the sources of the instances."""
    if benchmark is None:
        raise ConfigError("existing-rules compares with the rules of a benchmark: name it with --benchmark")
    wanted = {each.instance for each in passes}
    instances = [each for each in benchmark.instances if each.id in wanted]

    async def scan() -> dict[tuple[str, Direction], frozenset[Line]]:
        return await existing_coverage(benchmark, instances, await open_scan(benchmark))

    made = existing_rules_table(passes, anyio.run(scan))
    if made is None:
        notify("codetaste: the benchmark has no rules for the instances of these runs")
    return [] if made is None else [made]
