"""Shares of trials and means of scores, with their intervals, as cells of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.report.statistics.intervals import Interval, Method, mean_interval
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Cell, Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from codetaste.report.table import Row
    from codetaste.swe_refactor.report.trial_row import TrialRow

_LEGEND = {
    Method.WILSON: "[low, high]: 95 % Wilson interval of the share",
    Method.T: "±: 95 % t-interval of the mean",
    Method.CLUSTER_T: "±: 95 % t-interval, attempts at one instance taken together",
    Method.BOOTSTRAP: "[low, high] of a mean: BCa bootstrap, because t is wrong for few and skewed values",
}


def share(rows: Sequence[TrialRow], holds: Callable[[TrialRow], bool]) -> Interval:
    """Return the share of the trials for which ``holds`` is true.

    With one attempt at each instance the interval is Wilson's, which is right for rare successes too; with
    several ones the attempts at an instance are a cluster.
    """
    values = [float(holds(row)) for row in rows]
    return mean_interval(values, [row.instance for row in rows], wilson=True)


def mean_codebleu(rows: Iterable[TrialRow]) -> Interval:
    """Return the mean CodeBLEU of the trials that have one, 0 of those without an answer."""
    measured = [(row.similarity, row.instance) for row in rows if row.similarity is not None]
    return mean_interval([value for value, _ in measured], [instance for _, instance in measured])


def count_columns(name: str, title: str) -> tuple[Column, Column]:
    """Return the columns of a number of trials and its share, with two decimals as in Table 2."""
    return (
        Column(f"{name}_count", "#", Unit.COUNT, heading=title),
        Column(f"{name}_share", "%", Unit.FRACTION, heading=title, decimals=2),
    )


def count_cells(rows: Sequence[TrialRow], holds: Callable[[TrialRow], bool]) -> tuple[Cell, Cell]:
    """Return the cells of ``count_columns``."""
    return sum(map(holds, rows)), share(rows, holds)


def legend(columns: Sequence[Column], rows: Iterable[Row]) -> tuple[str, ...]:
    """Explain each kind of interval that text output of the rows shows."""
    methods = {
        cell.method
        for row in rows
        for column, cell in zip(columns, row.cells, strict=True)
        if isinstance(cell, Interval) and cell.low is not None and not column.mean_only
    }
    return tuple(text for method, text in _LEGEND.items() if method in methods)
