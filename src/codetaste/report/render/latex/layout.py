"""How a table fits its page: the size of its type, columns whose text is wrapped, and parts of it.

The first of these that fits is taken: small type, smaller type, long texts in several lines; parts side by
side that repeat the columns with the names of rows. A part is never higher than a page.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from codetaste.report.render.latex.text_width import shorten_to, text_width
from codetaste.report.render.paper import PAGE_HEIGHT, POINTS_PER_INCH
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import format_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.report.render.paper import PaperWidth
    from codetaste.report.table import Column, Row, Table


class TypeSize(NamedTuple):
    """A size of type in a standard class of ten points.

    ``em`` is the width of ten points' em in it (smaller sizes of Computer Modern are wider), ``line`` the
    distance of lines, ``gap`` what is left free on both sides of a column; all in points.
    """

    command: str
    em: float
    line: float
    gap: float


SMALL: Final = TypeSize(r"\small", 9 * 1.029, 11, 4)
SMALLER: Final = TypeSize(r"\footnotesize", 8 * 1.063, 9.5, 3)
SMALLEST: Final = TypeSize(r"\scriptsize", 7 * 1.165, 8, 2.5)
_MIN_WRAPPED: Final = 75.0
"""Points of the narrowest column of wrapped text."""
_INDENT: Final = 1.0
"""Em of the indentation of rows below the name of their section."""
_TITLE: Final = 6.0
"""Em of a title that stays in one line."""
_KEYS: Final = 0.5
"""Share of the line for names of rows that are repeated in each part."""
_RAGGED: Final = 1.3
"""How much longer a text is because its lines are not full."""
_HEADING: Final = 14.0
"""Em of a heading above columns."""


class ColumnSize(NamedTuple):
    """The widths of a column in em: of its cells, of its title, and of the longest word of its title."""

    text: bool
    cells: float
    title: float
    word: float

    @property
    def width(self) -> float:
        """The width of the column."""
        return max(self.cells, self.title)


class TablePart(NamedTuple):
    """A part of a table: the places of its columns, its rows, and the points of wrapped columns."""

    columns: tuple[int, ...]
    rows: tuple[Row, ...]
    size: TypeSize
    wrapped: dict[int, float]
    titles: dict[int, list[str]]
    """The lines of the title of each column."""
    width: float
    """Points that its columns take."""


def lay_out(table: Table, width: PaperWidth, notes_height: float) -> list[TablePart]:
    """Return the parts of a table with rows, in the order of reading.

    Args:
        table: the table.
        width: the place that it fills.
        notes_height: points that its caption and its notes take.
    """
    line = width.inches * POINTS_PER_INCH
    sizes = [_size(table, at, column) for at, column in enumerate(table.columns)]
    size, groups, wrapped = _fit(table, sizes, line)
    parts = []
    for columns in groups:
        rooms = {at: wrapped[at] / size.em if at in wrapped else sizes[at].cells for at in columns}
        titles = {at: title_lines(table.columns[at], rooms[at]) for at in columns}
        head = (2 + max(map(len, titles.values()))) * size.line + 12
        room = PAGE_HEIGHT * POINTS_PER_INCH - notes_height - head
        points = _total(table, columns, sizes, size, wrapped)
        for rows in _pages(table, [sizes[at] for at in columns], columns, (size, wrapped, room)):
            own = {at: each for at, each in wrapped.items() if at in columns}
            parts.append(TablePart(columns, rows, size, own, titles, points))
    return parts


def title_lines(column: Column, cells: float) -> list[str]:
    """Return the title of a column in lines hardly wider than its cells, in em; in one if it has markup."""
    title = f"{column.title} ({column.sign})" if column.sign else column.title
    if column.latex:
        return [title]
    room = max(_TITLE, cells)
    lines: list[str] = []
    for word in title.split():
        if lines and text_width(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def shorten_heading(heading: str) -> str:
    """Return as much of a heading above columns as fits beside the names of rows."""
    return shorten_to(heading, _HEADING)


def _size(table: Table, at: int, column: Column) -> ColumnSize:
    parts = [format_cell(row.cells[at], column) for row in table.rows]
    first = max((text_width(each) for each, _ in parts), default=0.0)
    second = max((text_width(each) + 0.2 for _, each in parts if each), default=0.0)
    cells = first + second + (_INDENT if at == 0 and table.section else 0.0)
    title = max(map(text_width, title_lines(column, cells)))
    word = max(map(text_width, title_lines(column, 0.0)))
    return ColumnSize(column.unit is Unit.TEXT, cells, title, word)


def _fit(
    table: Table, sizes: Sequence[ColumnSize], line: float
) -> tuple[TypeSize, list[tuple[int, ...]], dict[int, float]]:
    """Return the size of type, the groups of columns that are set side by side, and the wrapped columns."""
    everything = tuple(range(len(sizes)))
    for size in (SMALL, SMALLER):
        if _total(table, everything, sizes, size, {}) <= line:
            return size, [everything], {}
    for size in (SMALL, SMALLER, SMALLEST):
        wrapped = _wrap(table, everything, sizes, size, line)
        if wrapped is not None:
            return size, [everything], wrapped
    keys = tuple(at for at, _ in enumerate(sizes) if all(each.text for each in sizes[: at + 1])) or (0,)
    if len(keys) == len(sizes):
        keys = keys[:1]
    wrapped = _wrap(table, keys, sizes, SMALLER, line * _KEYS)
    if wrapped is None:
        wrapped = {at: line * _KEYS / len(keys) - 2 * SMALLER.gap for at in keys if sizes[at].text}
    wrapped |= {
        at: line * 0.5
        for at, each in enumerate(sizes)
        if each.text and at not in keys and each.width * SMALLER.em > line * 0.5
    }
    return SMALLER, _pack(table, keys, sizes, wrapped, line), wrapped


def _wrap(
    table: Table, columns: Sequence[int], sizes: Sequence[ColumnSize], size: TypeSize, line: float
) -> dict[int, float] | None:
    """Return the points of the text columns that are wrapped to fit the line; None if none fits."""
    wide = [at for at in columns if sizes[at].text and sizes[at].width * size.em > _MIN_WRAPPED]
    wrapped: dict[int, float] = {}
    while True:
        excess = _total(table, columns, sizes, size, wrapped) - line
        if excess <= 0:
            return wrapped
        rest = [at for at in wide if at not in wrapped]
        if not rest:
            return None
        widest = max(rest, key=lambda at: sizes[at].width)
        wrapped[widest] = max(_MIN_WRAPPED, sizes[widest].width * size.em - excess)


def _total(
    table: Table,
    columns: Sequence[int],
    sizes: Sequence[ColumnSize],
    size: TypeSize,
    wrapped: dict[int, float],
) -> float:
    """Return the width of some columns in points, headings and names of sections included."""
    total = 0.0
    for heading, same in groupby(columns, key=lambda at: table.columns[at].heading):
        own = sum(
            max(wrapped.get(at, sizes[at].width * size.em), sizes[at].word * size.em) + 2 * size.gap
            for at in same
        )
        total += max(own, text_width(shorten_heading(heading)) * size.em + 2 * size.gap)
    return total - 2 * size.gap


def _pack(
    table: Table,
    keys: Sequence[int],
    sizes: Sequence[ColumnSize],
    wrapped: dict[int, float],
    line: float,
) -> list[tuple[int, ...]]:
    """Return the columns of each part: the keys and as many others as fit, if possible whole headings."""
    others = [at for at in range(len(sizes)) if at not in keys]
    blocks = [tuple(same) for _, same in groupby(others, key=lambda at: table.columns[at].heading or at)]

    def fits(columns: Sequence[int]) -> bool:
        return _total(table, (*keys, *columns), sizes, SMALLER, wrapped) <= line

    parts: list[tuple[int, ...]] = []
    current: tuple[int, ...] = ()
    for block in blocks:
        for piece in [block] if fits(block) else [(at,) for at in block]:
            if current and not fits((*current, *piece)):
                parts.append((*keys, *current))
                current = ()
            current = (*current, *piece)
    return [*parts, (*keys, *current)]


def _pages(
    table: Table,
    sizes: Sequence[ColumnSize],
    columns: Sequence[int],
    place: tuple[TypeSize, dict[int, float], float],
) -> Iterator[tuple[Row, ...]]:
    """Yield the rows of each page, of the height of ``place``."""
    size, wrapped, room = place
    rows: list[Row] = []
    used = 0.0
    for row in table.rows:
        lines = 1
        for at, each in zip(columns, sizes, strict=True):
            if at in wrapped and each.text:
                text = format_cell(row.cells[at], table.columns[at])[0]
                lines = max(lines, int(text_width(text) * size.em * _RAGGED / (wrapped[at] - 10)) + 1)
        height = lines * size.line
        if table.section and (not rows or row.section != rows[-1].section):
            height += size.line + 6
        if rows and used + height > room:
            yield tuple(rows)
            rows, used = [], size.line + 6
        rows.append(row)
        used += height
    yield tuple(rows)
