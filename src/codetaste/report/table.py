"""A table as data: columns with units, rows of cells, notes. How it looks is up to ``render_*.py``.

A cell's number is exact and in its column's unit: fractions 0..1, US dollars, seconds. People see percents
and minutes; machines see what is here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from codetaste.report.measures import Unit
from codetaste.report.statistics import Interval, Method

if TYPE_CHECKING:
    from collections.abc import Sequence

Cell: TypeAlias = str | int | float | Interval | None
"""None is not measured, or undefined."""

NOTHING = "–"
_AGREED = "strict and published agree"
_SCALE = {Unit.FRACTION: 100.0, Unit.SECONDS: 1 / 60}
_DECIMALS = {Unit.USD: 2, Unit.MEAN: 2, Unit.P: 4}
_SIGN = {Unit.FRACTION: "%", Unit.USD: "$", Unit.SECONDS: "min"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: as files call it, unique within the table together with ``over``.
        title: as people read it.
        unit: of its cells.
        latex: its title in LaTeX, markup included; default the escaped title.
        over: what stands above this column and its neighbours.
        bare: people see means without intervals.
    """

    name: str
    title: str
    unit: Unit = Unit.TEXT
    latex: str = ""
    over: str = ""
    bare: bool = False

    @property
    def sign(self) -> str:
        """What people read behind the title: "%", "$", "min" or nothing."""
        return _SIGN.get(self.unit, "")


@dataclass(frozen=True, slots=True)
class Row:
    """Cells in the order of the columns; rows that follow each other with one ``section`` stand below it."""

    cells: tuple[Cell, ...]
    section: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: as the command line and files call it: "4", "comparison".
        title: its caption.
        columns: of its rows.
        rows: its content.
        notes: a line each, below it.
        aggregation: "strict" or "published", "" where it has none.
        section: what sections are: "agent".
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    aggregation: str = ""
    section: str = ""


def spoken(cell: Cell, column: Column) -> tuple[str, str]:
    """Return what people read of a cell, in two parts: "76.0" and " ± 8.5", or "2.0" and " [0.7, 5.9]".

    An even interval is written as its half width, as in the paper; others by their ends.
    """
    if isinstance(cell, str):
        return cell, ""
    if isinstance(cell, int | float):
        return _number(cell, column.unit), ""
    if cell is None or cell.mean is None:
        return NOTHING, ""
    mean = _number(cell.mean, column.unit)
    if column.bare or cell.low is None or cell.high is None:
        return mean, ""
    if cell.margin is not None:
        return mean, f" ± {_number(cell.margin, column.unit)}"
    return mean, f" [{_number(cell.low, column.unit)}, {_number(cell.high, column.unit)}]"


def _number(value: float, unit: Unit) -> str:
    if unit is Unit.COUNT:
        return str(int(value))
    scaled = value * _SCALE.get(unit, 1.0)
    return f"{scaled + 0.0:.{_DECIMALS.get(unit, 1)}f}"


def caption(table: Table) -> str:
    """Return what stands above a table: "Table 4 (strict): …" for the paper's, others by their name."""
    sign = f"Table {table.name}" if table.name.isdecimal() else table.name.capitalize()
    how = f" ({table.aggregation})" if table.aggregation else ""
    return f"{sign}{how}: {table.title}"


def agreed(tables: Sequence[Table]) -> list[Table]:
    """Return a table made under several aggregations once, if people would read the same in all of them.

    Sums made in another order differ in digits that nobody sees.
    """
    if len(tables) > 1 and all(_read(table) == _read(tables[0]) for table in tables):
        return [replace(tables[0], aggregation=_AGREED)]
    return list(tables)


def _read(table: Table) -> list[tuple[object, ...]]:
    return [
        (row.section, *(spoken(cell, each) for cell, each in zip(row.cells, table.columns, strict=True)))
        for row in table.rows
    ]


def legend(rows: tuple[Row, ...]) -> tuple[str, ...]:
    """Say how the intervals in ``rows`` were made, those that are there."""
    methods = {cell.method for row in rows for cell in row.cells if isinstance(cell, Interval)}
    said = {
        Method.T: "±: 95 % t-interval of the mean, not clipped",
        Method.CLUSTER_T: "±: 95 % t-interval, values of one cluster taken together",
        Method.BOOTSTRAP: "[low, high]: BCa bootstrap where t is wrong: few and skewed values",
        Method.WILSON: "[low, high]: Wilson where all values agree, or t would leave 0–100 %",
    }
    return tuple(text for method, text in said.items() if method in methods)
