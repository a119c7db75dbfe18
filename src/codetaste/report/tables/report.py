"""The tables of a report: the selected ones, under each aggregation, as far as there is data for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from codetaste.report.statistics.comparison import compare_systems
from codetaste.report.statistics.view import aggregate_trials
from codetaste.report.table import Column, Row, Table, collapse_equal
from codetaste.report.tables.benchmark import table_1, table_2
from codetaste.report.tables.comparison import comparison_table, differences_table
from codetaste.report.tables.effort import attempts_table, counts_table, effort_table
from codetaste.report.tables.groups import group_table
from codetaste.report.tables.refactorings import refactorings_table
from codetaste.report.tables.scores import strict_success_table, table_3, table_4, table_5

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from codetaste.benchmark.facts.facts import BenchmarkFacts
    from codetaste.evaluation.trials.records import ReadProblem
    from codetaste.report.statistics.aggregate import Aggregation
    from codetaste.report.statistics.comparison import Comparison
    from codetaste.report.statistics.merge import MergedTrials
    from codetaste.report.statistics.view import AggregatedTrials
    from codetaste.report.tables.groups import GroupBy

TableName = Literal[
    "1",
    "2",
    "3",
    "4",
    "5",
    "strict-success",
    "comparison",
    "modes",
    "differences",
    "effort",
    "attempts",
    "counts",
    "refactorings",
]
TABLE_NAMES: tuple[TableName, ...] = get_args(TableName)
DEFAULT_TABLES = ("comparison", "4", "5", "effort", "attempts", "counts", "refactorings")
"""The tables of a report unless tables are named."""
_BENCHMARK = {"1": table_1, "2": table_2}
_MAX_LISTED = 60


@dataclass(frozen=True, slots=True)
class TrialReport:
    """The tables and comparisons of a report."""

    tables: tuple[Table, ...]
    comparisons: tuple[Comparison, ...]


def make_report(
    trials: MergedTrials,
    facts: BenchmarkFacts | None,
    table_names: Sequence[str],
    groups: Sequence[GroupBy],
    aggregations: Sequence[Aggregation],
    *,
    merge: bool = True,
) -> TrialReport:
    """Make the tables ``table_names`` and one for each of ``groups``; tables without data are left out.

    With ``merge`` a table that is the same under all aggregations appears once.
    """
    views = [aggregate_trials(trials, aggregation) for aggregation in aggregations] if trials.agents else []
    compared = {"comparison", "differences"} & set(table_names)
    comparisons = {view.aggregation: compare_systems(view) for view in views if compared}
    tables: list[Table] = []
    for name in table_names:
        if name in _BENCHMARK:
            tables += [] if facts is None else [_BENCHMARK[name](facts)]
        else:
            tables += _unique([_table(name, view, comparisons) for view in views], merge=merge)
    for by in groups:
        tables += _unique([group_table(view, by) for view in views], merge=merge)
    return TrialReport(tuple(tables), tuple(comparisons.values()))


def _unique(made: Sequence[Table | None], *, merge: bool) -> list[Table]:
    """Return one table for each aggregation, or one in all if it has no aggregation or all are equal."""
    tables = [table for table in made if table is not None]
    if tables and not tables[0].aggregation:
        return tables[:1]
    return collapse_equal(tables) if merge else tables


def _table(name: str, view: AggregatedTrials, comparisons: Mapping[Aggregation, Comparison]) -> Table | None:
    if name == "comparison":
        return comparison_table(comparisons[view.aggregation])
    if name == "differences":
        return differences_table(comparisons[view.aggregation])
    if name == "modes":
        return comparison_table(compare_systems(view, "track_mode"))
    return _OF_VIEW[name](view)


_OF_VIEW: dict[str, Callable[[AggregatedTrials], Table | None]] = {
    "3": table_3,
    "4": table_4,
    "5": table_5,
    "strict-success": strict_success_table,
    "effort": effort_table,
    "attempts": attempts_table,
    "counts": counts_table,
    "refactorings": refactorings_table,
}


def problems_table(problems: Sequence[ReadProblem], notes: Sequence[str], *, listed: bool) -> Table | None:
    """Return a table of the problems in the data that was read; None where there are none.

    Args:
        problems: problems of reading.
        notes: notes of merging the trials.
        listed: give all as rows, for machine-readable output; otherwise the first ones as notes.
    """
    if not problems and not notes:
        return None
    counts = Counter(str(problem.kind) for problem in problems)
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.most_common())
    title = f"{len(problems):,} in what was read{f' ({kinds})' if kinds else ''}"
    if listed:
        columns = (
            Column("location", "Location"),
            Column("kind", "Kind"),
            Column("text", "What is wrong", heading=" "),
        )
        rows = [Row((problem.location, str(problem.kind), problem.text)) for problem in problems]
        rows += [Row(("", "note", note)) for note in notes]
        return Table("problems", title, columns, tuple(rows))
    lines = [*notes, *(f"{problem.kind}: {problem}" for problem in problems)]
    more = (f"and {len(lines) - _MAX_LISTED:,} more (--json has all)",) if len(lines) > _MAX_LISTED else ()
    return Table("problems", title, (), (), (*lines[:_MAX_LISTED], *more))
