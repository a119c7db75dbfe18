"""A table as data: columns with units, rows of cells, and notes. ``report/render`` formats it.

A cell's number is exact and in its column's unit: fractions 0..1, US dollars, seconds. Text output shows
percents and minutes; machine-readable output has these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from codetaste.core.units import usd_decimals
from codetaste.report.statistics.intervals import Interval, Method
from codetaste.report.statistics.measures import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

Cell: TypeAlias = str | int | float | Interval | None
"""None means not measured, or undefined."""

NO_VALUE = "–"
_EQUAL = "strict and published agree"
_SCALE = {Unit.FRACTION: 100.0, Unit.SECONDS: 1 / 60}
_DECIMALS = {Unit.USD: 2, Unit.MEAN: 2, Unit.P: 4}
_SIGN = {Unit.FRACTION: "%", Unit.USD: "$", Unit.SECONDS: "min"}

_SHORT_S = 6.0
"""A tenth of a minute."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: its name in files, unique within the table together with ``heading``.
        title: its title in text.
        unit: the unit of its cells.
        latex: its title in LaTeX, with markup; default is the escaped title.
        heading: the heading above this column and its neighbours.
        mean_only: text output shows means without intervals.
        decimals: decimals in text output; default is those of the unit.
    """

    name: str
    title: str
    unit: Unit = Unit.TEXT
    latex: str = ""
    heading: str = ""
    mean_only: bool = False
    decimals: int | None = None

    @property
    def sign(self) -> str:
        """The sign of the unit in text output: "%", "$", "min" or nothing."""
        return _SIGN.get(self.unit, "")


@dataclass(frozen=True, slots=True)
class Row:
    """Cells in the order of the columns; consecutive rows with one ``section`` form that section."""

    cells: tuple[Cell, ...]
    section: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: its name on the command line and in files: "4", "comparison".
        title: its caption.
        columns: the columns.
        rows: the rows.
        notes: lines below the table.
        aggregation: "strict" or "published"; "" for none.
        section: the kind of its sections: "agent".
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    aggregation: str = ""
    section: str = ""


def format_cell(cell: Cell, column: Column) -> tuple[str, str]:
    """Format a cell in two parts: "76.0" and " ± 8.5", or "2.0" and " [0.7, 5.9]".

    A symmetric interval is shown by its half width, as in the paper; others by their ends.
    """
    if isinstance(cell, str):
        return cell, ""
    if isinstance(cell, int | float):
        return _number(cell, column, _decimals(cell, column)), ""
    if cell is None or cell.mean is None:
        return NO_VALUE, ""
    decimals = _decimals(cell.mean, column)
    mean = _number(cell.mean, column, decimals)
    if column.mean_only or cell.low is None or cell.high is None:
        return mean, ""
    if cell.margin is not None:
        return mean, f" ± {_number(cell.margin, column, decimals)}"
    return mean, f" [{_number(cell.low, column, decimals)}, {_number(cell.high, column, decimals)}]"


def _number(value: float, column: Column, decimals: int) -> str:
    if column.unit is Unit.COUNT:
        return str(int(value))
    scaled = value * _SCALE.get(column.unit, 1.0)
    return f"{scaled + 0.0:.{decimals}f}"


def _decimals(value: float, column: Column) -> int:
    """Return the decimals of a value.

    An amount below 10 cents has as many as ``format_usd`` shows, a time below a tenth of a minute has two.
    """
    decimals = _DECIMALS.get(column.unit, 1) if column.decimals is None else column.decimals
    if column.unit is Unit.SECONDS and 0 < value < _SHORT_S:
        return max(decimals, 2)
    return max(decimals, usd_decimals(value)) if column.unit is Unit.USD else decimals


def caption(table: Table) -> str:
    """Return the caption of a table: "Table 4 (strict): …" for the paper's tables, others with their name."""
    sign = f"Table {table.name}" if table.name.isdecimal() else table.name.capitalize()
    how = f" ({table.aggregation})" if table.aggregation else ""
    return f"{sign}{how}: {table.title}"


def collapse_equal(tables: Sequence[Table]) -> list[Table]:
    """Return one table instead of several aggregations' tables if their formatted text is the same.

    The exact numbers may differ in digits that are not shown, because sums are made in another order.
    """
    texts = [
        [
            (
                row.section,
                [format_cell(cell, each) for cell, each in zip(row.cells, table.columns, strict=True)],
            )
            for row in table.rows
        ]
        for table in tables
    ]
    if len(tables) > 1 and all(text == texts[0] for text in texts):
        return [replace(tables[0], aggregation=_EQUAL)]
    return list(tables)


def interval_legend(rows: tuple[Row, ...]) -> tuple[str, ...]:
    """Explain each kind of interval that occurs in ``rows``."""
    methods = {cell.method for row in rows for cell in row.cells if isinstance(cell, Interval)}
    texts = {
        Method.T: "±: 95 % t-interval of the mean, not clipped",
        Method.CLUSTER_T: "±: 95 % t-interval, values of one cluster taken together",
        Method.BOOTSTRAP: "[low, high]: BCa bootstrap where t is wrong: few and skewed values",
        Method.WILSON: "[low, high]: Wilson where all values agree, or t would leave 0–100 %",
    }
    return tuple(text for method, text in texts.items() if method in methods)
