"""Plain-text output of tables: aligned by screen columns, and split into blocks where too wide."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import caption, format_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.report.table import Column, Row, Table

_GAP, _INDENT = "  ", "  "
_MAX_WIDTH = 48
"""Maximum width of one text, in screen columns."""
_MAX_HEADING = 200
_MIN_WIDTH = 40
"""Smallest width to which a table is split."""


@dataclass(frozen=True, slots=True)
class _TextColumn:
    """A column of the rendered table, whose lines all have the same width."""

    heading: str
    head: str
    body: tuple[str, ...]

    @property
    def width(self) -> int:
        return _columns_of(self.head)


def render_text(table: Table, width: int | None = None) -> str:
    """Return a table in plain text.

    Args:
        table: the table; its texts are untrusted.
        width: number of screen columns. Columns that do not fit are shown in further blocks below, each of
            which repeats the row titles. Default is one block of any width.
    """
    text_columns = [
        _text_column(column, table.rows, position) for position, column in enumerate(table.columns)
    ]
    # The text columns at the beginning of a row are its title.
    not_title = (at for at, each in enumerate(table.columns) if each.unit is not Unit.TEXT or each.heading)
    titles = next(not_title, min(1, len(table.columns)))
    lines = list(_wrap(caption(table), width))
    for block in _blocks(text_columns[titles:], text_columns[:titles], width) if table.rows else ():
        lines += ["", *_render_block(table, [*text_columns[:titles], *block])]
    if table.notes:
        lines += ["", *(line for note in table.notes for line in _wrap(note, width, "· "))]
    return "\n".join(line.rstrip() for line in lines)


def _text_column(column: Column, rows: Iterable[Row], position: int) -> _TextColumn:
    """Align a column: text on the left, numbers at the decimal point, intervals at ±."""
    cells = [tuple(_fit(part) for part in format_cell(row.cells[position], column)) for row in rows]
    title = _fit(f"{column.title} ({column.sign})" if column.sign and not column.heading else column.title)
    tail = max((_columns_of(after) for _, after in cells), default=0)
    if column.unit is Unit.TEXT:
        width = max([_columns_of(title), *(_columns_of(text) for text, _ in cells)])
        return _TextColumn(
            column.heading, _left(title, width), tuple(_left(text, width) for text, _ in cells)
        )
    width = max([_columns_of(title), *(_columns_of(text) + tail for text, _ in cells)])
    body = tuple(_right(text + _left(after, tail), width) for text, after in cells)
    return _TextColumn(column.heading, _right(title, width), body)


def _blocks(
    text_columns: Sequence[_TextColumn], titles: Sequence[_TextColumn], width: int | None
) -> list[list[_TextColumn]]:
    """Distribute columns over blocks that fit beside the row titles; those of one heading stay together."""
    room = None if width is None else max(width, _MIN_WIDTH) - len(_INDENT) - _wide(titles)
    blocks: list[list[_TextColumn]] = [[]]
    for heading, same in groupby(text_columns, key=lambda each: each.heading):
        parts = list(same)
        for part in [parts] if heading else [[each] for each in parts]:
            if room is not None and blocks[-1] and _wide([*blocks[-1], *part]) > room:
                blocks.append([])
            blocks[-1] += part
    return blocks


def _wide(text_columns: Iterable[_TextColumn]) -> int:
    return sum(each.width + len(_GAP) for each in text_columns)


def _render_block(table: Table, text_columns: Sequence[_TextColumn]) -> list[str]:
    indent = _INDENT if table.section else ""
    lines = []
    if any(each.heading for each in text_columns):
        lines += [indent + line for line in _headings(text_columns)]
    lines.append(indent + _GAP.join(each.head for each in text_columns))
    section = None
    for position, row in enumerate(table.rows):
        if row.section != section and table.section:
            section = row.section
            lines.append(_fit(section))
        lines.append(indent + _GAP.join(each.body[position] for each in text_columns))
    return lines


def _headings(text_columns: Sequence[_TextColumn]) -> list[str]:
    """Render the headings above columns; they are wrapped, because truncated ones could look alike."""
    columns = []
    for heading, same in groupby(text_columns, key=lambda each: each.heading):
        width = _wide(same) - len(_GAP)
        columns.append([_left(piece, width) for piece in _pieces(printable(heading, _MAX_HEADING), width)])
    height = max(len(column) for column in columns)
    padded = [[" " * _columns_of(column[0])] * (height - len(column)) + column for column in columns]
    return [_GAP.join(line) for line in zip(*padded, strict=True)]


def _pieces(text: str, width: int) -> list[str]:
    pieces = [""]
    for char in text:
        if pieces[-1] and _columns_of(pieces[-1] + char) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces


def _wrap(text: str, width: int | None, sign: str = "") -> list[str]:
    """Wrap a sentence into lines; East Asian characters count double."""
    line = sign + printable(text, 2000)
    if width is None or _columns_of(line) <= width:
        return [line]
    room = max(_MIN_WIDTH, width)
    wide = _columns_of(line) > len(line)
    return textwrap.wrap(line, room // 2 if wide else room, subsequent_indent=" " * len(sign)) or [line]


def _fit(text: str, limit: int = _MAX_WIDTH) -> str:
    """Make a text safe for a line of a terminal, and truncate it to ``limit`` columns."""
    flat = printable(text, 4 * _MAX_WIDTH)
    if _columns_of(flat) <= limit:
        return flat
    while flat and _columns_of(flat) > limit - 1:
        flat = flat[:-1]
    return f"{flat}…"


def _left(text: str, width: int) -> str:
    return text + " " * (width - _columns_of(text))


def _right(text: str, width: int) -> str:
    return " " * (width - _columns_of(text)) + text


def _columns_of(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - only for text that is not ASCII

    return cell_len(text)
