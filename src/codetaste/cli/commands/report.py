"""Arguments of ``codetaste report``."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import Annotated, Literal

from cyclopts import Parameter

from codetaste.console import run_command

_Table = Literal[
    "1", "2", "3", "4", "5", "comparison", "modes", "differences", "effort", "attempts", "counts", "all"
]
_By = Literal["agent", "track", "mode", "language", "category", "repository", "instance"]


def report(
    *runs: Path,
    benchmark: str = "",
    repos: Path | None = None,
    format_: Annotated[Literal["text", "markdown", "latex", "csv"], Parameter(name="--format")] = "text",
    table: Annotated[tuple[_Table, ...], Parameter(negative=())] = (),
    by: Annotated[tuple[_By, ...], Parameter(negative=())] = (),
    aggregation: Literal["strict", "published", "both"] = "both",
    out: Path | None = None,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Print tables of runs and published outputs: comparison, the paper's tables, costs, activity of agents.

    Several runs are merged. Exit code 1 if they have no trial.

    Args:
        runs: Run folders or their names, or folders in the published layout of outputs.
        benchmark: The benchmark's folder, or "quickstart", for languages, categories, baselines and Tables 1
            and 2; default the benchmark of the runs, if it exists.
        repos: A folder of clones OWNER/REPO, for licences and golden patches in Tables 1 and 2.
        format_: Format of the tables.
        table: Which tables; default comparison, 4, 5, effort, attempts and counts.
        by: Add a table of scores grouped by this; other tables are then printed only if named.
        aggregation: How trials without a score count: as 0 (strict), not at all (published), or both ways.
        out: A folder for one file per table; default standard output.
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import reporting  # noqa: PLC0415 - only here

    arguments = reporting.ReportArguments(runs, benchmark, repos, format_, table, by, aggregation, out, json_)
    return run_command(lambda: reporting.print_report(arguments), as_json=json_)
