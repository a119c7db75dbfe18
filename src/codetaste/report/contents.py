"""Which tables a report has: those that were asked for, under each aggregation, of what there is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.report import tables_effort, tables_scores
from codetaste.report.comparison import comparison_table, differences_table
from codetaste.report.contest import compare_view
from codetaste.report.table import Column, Row, Table, agreed
from codetaste.report.tables_benchmark import table_1, table_2
from codetaste.report.tables_groups import group_table
from codetaste.report.view import view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from codetaste.benchmark.statistics import BenchmarkFacts
    from codetaste.evaluation.records import Problem
    from codetaste.report.aggregate import Aggregation
    from codetaste.report.contest import Comparison
    from codetaste.report.tables_groups import By
    from codetaste.report.trials import Trials
    from codetaste.report.view import View

NAMES = ("1", "2", "3", "4", "5", "comparison", "modes", "differences", "effort", "attempts", "counts")
USUAL = ("comparison", "4", "5", "effort", "attempts", "counts")
"""What a report has unless tables are named."""
_BENCHMARK = frozenset({"1", "2"})
_LISTED = 60


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report says."""

    tables: tuple[Table, ...]
    comparisons: tuple[Comparison, ...]


def make_report(
    trials: Trials,
    facts: BenchmarkFacts | None,
    names: Sequence[str],
    groups: Sequence[By],
    aggregations: Sequence[Aggregation],
    *,
    merge: bool = True,
) -> Report:
    """Make the tables ``names`` and one for each of ``groups``; what nothing is known for is left out.

    With ``merge`` a table that is the same under all aggregations is there once.
    """
    looks = [view(trials, aggregation) for aggregation in aggregations] if trials.agents else []
    compared = {"comparison", "differences"} & set(names)
    comparisons = {look.aggregation: compare_view(look) for look in looks if compared}
    tables: list[Table] = []
    for name in names:
        if name in _BENCHMARK:
            tables += [] if facts is None else [{"1": table_1, "2": table_2}[name](facts)]
        else:
            tables += _each([_table(name, look, comparisons) for look in looks], merge=merge)
    for by in groups:
        tables += _each([group_table(look, by) for look in looks], merge=merge)
    return Report(tuple(tables), tuple(comparisons.values()))


def _each(made: Sequence[Table | None], *, merge: bool) -> list[Table]:
    """Return a table under each aggregation; one that knows none, or where they agree, once."""
    tables = [table for table in made if table is not None]
    if tables and not tables[0].aggregation:
        return tables[:1]
    return agreed(tables) if merge else tables


def _table(name: str, look: View, comparisons: Mapping[Aggregation, Comparison]) -> Table | None:
    if name == "comparison":
        return comparison_table(comparisons[look.aggregation])
    if name == "differences":
        return differences_table(comparisons[look.aggregation])
    if name == "modes":
        return comparison_table(compare_view(look, "lane"))
    return _OF_VIEW[name](look)


_OF_VIEW: dict[str, Callable[[View], Table | None]] = {
    "3": tables_scores.table_3,
    "4": tables_scores.table_4,
    "5": tables_scores.table_5,
    "effort": tables_effort.effort_table,
    "attempts": tables_effort.attempts_table,
    "counts": tables_effort.counts_table,
}


def problems_table(problems: Sequence[Problem], notes: Sequence[str], *, listed: bool) -> Table | None:
    """Return what was wrong with what was read, and what is odd in it; None where nothing is.

    Args:
        problems: of reading.
        notes: of bringing trials together.
        listed: as rows for programs; otherwise as notes, the first of them.
    """
    if not problems and not notes:
        return None
    counts = Counter(str(problem.kind) for problem in problems)
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts.most_common())
    title = f"{len(problems):,} in what was read{f' ({kinds})' if kinds else ''}"
    if listed:
        columns = (
            Column("place", "Place"),
            Column("kind", "Kind"),
            Column("text", "What is wrong", over=" "),
        )
        rows = [Row((problem.place, str(problem.kind), problem.text)) for problem in problems]
        rows += [Row(("", "note", note)) for note in notes]
        return Table("problems", title, columns, tuple(rows))
    said = [*notes, *(f"{problem.kind}: {problem}" for problem in problems)]
    more = (f"and {len(said) - _LISTED:,} more (--json has all)",) if len(said) > _LISTED else ()
    return Table("problems", title, (), (), (*said[:_LISTED], *more))
