"""The tables of a report on trials, by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from codetaste.swe_refactor.report.comparison import ranking_table, tests_table
from codetaste.swe_refactor.report.failures.table import failure_table
from codetaste.swe_refactor.report.models import effort_table, table_2
from codetaste.swe_refactor.report.successes import figure_3, score_table, table_3, table_4, table_5

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from codetaste.report.table import Table
    from codetaste.swe_refactor.report.trial_row import TrialRow

TrialTableName = Literal[
    "2", "effort", "3", "4", "5", "strategies", "by-type", "by-project", "ranking", "tests", "failures"
]
TRIAL_TABLES: Final[tuple[TrialTableName, ...]] = get_args(TrialTableName)
DEFAULT_TRIAL_TABLES: Final = ("2", "effort", "strategies", "ranking", "failures")
"""Which is better, what it costs, and why others fail: a screen long."""

_TABLES: Final[Mapping[str, Callable[[Sequence[TrialRow]], Table]]] = {
    "2": table_2,
    "effort": effort_table,
    "3": table_3,
    "4": table_4,
    "strategies": figure_3,
    "by-type": lambda rows: score_table(rows, "type"),
    "by-project": lambda rows: score_table(rows, "project"),
    "ranking": ranking_table,
    "tests": tests_table,
    "failures": failure_table,
}


def report_tables(
    rows: Sequence[TrialRow],
    names: Sequence[str] = DEFAULT_TRIAL_TABLES,
    sample: Collection[str] | None = None,
) -> list[Table]:
    """Return the tables ``names`` in their order.

    Args:
        rows: the results of trials, each once.
        names: some of ``TRIAL_TABLES``.
        sample: the unique ids of the instances of Table 5; without them there is no Table 5.
    """
    tables = []
    for name in names:
        if name != "5":
            tables.append(_TABLES[name](rows))
        elif sample is not None:
            tables.append(table_5(rows, sample))
    return tables
