"""Machine-readable CSV output (RFC 4180): a line for each cell, exact numbers, and their units.

All tables have the same columns, so that one file can hold several. Fractions are 0..1, never percents; money
is in US dollars; times are in seconds; a missing value is empty. A text that a spreadsheet would interpret as
a formula is prefixed with an apostrophe, as spreadsheets do themselves.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.report.statistics.intervals import Interval
from codetaste.report.statistics.measures import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codetaste.report.table import Cell, Table

HEADER = (
    "table",
    "aggregation",
    "section",
    "row",
    "heading",
    "column",
    "unit",
    "value",
    "low",
    "high",
    "n",
    "clusters",
    "method",
)
_MAX_TEXT = 1000


def render_csv(tables: Iterable[Table]) -> str:
    r"""Return all tables as one CSV document, lines ended by ``\r\n``."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(HEADER)
    for table in tables:
        writer.writerows(_rows(table))
    return text.getvalue()


def spreadsheet_safe(text: str) -> str:
    """Return a text without control characters that no spreadsheet interprets as a formula."""
    flat = printable(text, _MAX_TEXT)
    return f"'{flat}" if flat.lstrip()[:1] in {"=", "+", "-", "@"} else flat


def _rows(table: Table) -> Iterator[list[str]]:
    titles = {
        at for at, column in enumerate(table.columns) if column.unit is Unit.TEXT and not column.heading
    }
    named = [at for at in sorted(titles) if table.columns[at].title]
    for number, row in enumerate(table.rows, 1):
        title = " / ".join(str(row.cells[at]) for at in named) or str(number)
        start = [table.name, table.aggregation, spreadsheet_safe(row.section), spreadsheet_safe(title)]
        for at, (cell, column) in enumerate(zip(row.cells, table.columns, strict=True)):
            if at not in titles or len(titles) == len(table.columns):
                heading = spreadsheet_safe(column.heading)
                yield [*start, heading, column.name, column.unit, *_values(cell)]


def _values(cell: Cell) -> list[str]:
    if isinstance(cell, Interval):
        numbers = [_number(number) for number in (cell.mean, cell.low, cell.high, cell.n, cell.clusters)]
        return [*numbers, str(cell.method)]
    value = spreadsheet_safe(cell) if isinstance(cell, str) else _number(cell)
    return [value, "", "", "", "", ""]


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)
