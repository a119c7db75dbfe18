"""``codetaste report`` as it is typed."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import Annotated, Literal

from cyclopts import Parameter

from codetaste.command import guarded

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
    """Make tables of runs and published outputs: comparison, the paper's tables, costs, what agents did.

    Several are taken together. Exit code 1 if there is no trial in them.

    Args:
        runs: Run folders or their names, or folders in the published layout of outputs.
        benchmark: The benchmark's folder, or "quickstart", for languages, categories, baselines and Tables 1
            and 2; default what the runs themselves name, if it is there.
        repos: A folder of clones OWNER/REPO, which tell licences and golden patches for Tables 1 and 2.
        format_: What tables are written in.
        table: Which tables; default comparison, 4, 5, effort, attempts and counts.
        by: A table of scores by this; with it others only if they are named.
        aggregation: How trials without a score count: as 0 (strict), not at all (published), or both ways.
        out: A folder for a file for each table; otherwise they go to standard output.
        json_: Say everything as JSON.
    """
    from codetaste.commands import reporting  # noqa: PLC0415 - only here

    wish = reporting.Wish(runs, benchmark, repos, format_, table, by, aggregation, out, json_)
    return guarded(lambda: reporting.report(wish), as_json=json_)
