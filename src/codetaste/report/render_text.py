"""Tables for a terminal or a plain file: aligned by columns of the screen, split where they are too wide."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from codetaste.report.measures import Unit
from codetaste.report.progress import printable
from codetaste.report.table import caption, spoken

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.report.table import Column, Row, Table

_GAP, _INDENT = "  ", "  "
_LONGEST = 48
"""Columns of the screen that one text may take."""
_OVER = 200
_LEAST = 40
"""Width below which nothing is split any further."""


@dataclass(frozen=True, slots=True)
class _Strip:
    """A column of the table as it is drawn: every line equally wide."""

    over: str
    head: str
    body: tuple[str, ...]

    @property
    def width(self) -> int:
        return _columns_of(self.head)


def render_text(table: Table, width: int | None = None) -> str:
    """Return a table in plain text.

    Args:
        table: what it says; its texts may hold anything.
        width: columns of the screen; what does not fit stands in further blocks below, each with the titles
            of the rows again. Default is one block however wide.
    """
    strips = [_strip(column, table.rows, place) for place, column in enumerate(table.columns)]
    leads = _leads(table.columns)
    lines = list(_wrapped(caption(table), width))
    for block in _blocks(strips[leads:], strips[:leads], width) if table.rows else ():
        lines += ["", *_drawn(table, [*strips[:leads], *block])]
    if table.notes:
        lines += ["", *(line for note in table.notes for line in _wrapped(note, width, "· "))]
    return "\n".join(line.rstrip() for line in lines)


def _leads(columns: Sequence[Column]) -> int:
    """Count the columns of text that begin a row: they are its title."""
    for place, column in enumerate(columns):
        if column.unit is not Unit.TEXT or column.over:
            return place
    return min(1, len(columns))


def _strip(column: Column, rows: Iterable[Row], place: int) -> _Strip:
    """Align a column: text to the left, numbers at their point, intervals at their ±."""
    cells = [tuple(_fit(part) for part in spoken(row.cells[place], column)) for row in rows]
    title = _fit(f"{column.title} ({column.sign})" if column.sign and not column.over else column.title)
    tail = max((_columns_of(after) for _, after in cells), default=0)
    if column.unit is Unit.TEXT:
        width = max([_columns_of(title), *(_columns_of(text) for text, _ in cells)])
        return _Strip(column.over, _left(title, width), tuple(_left(text, width) for text, _ in cells))
    width = max([_columns_of(title), *(_columns_of(text) + tail for text, _ in cells)])
    body = tuple(_right(text + _left(after, tail), width) for text, after in cells)
    return _Strip(column.over, _right(title, width), body)


def _blocks(strips: Sequence[_Strip], leads: Sequence[_Strip], width: int | None) -> list[list[_Strip]]:
    """Put as many strips side by side as fit beside the row titles; those of one title stay together."""
    room = None if width is None else max(width, _LEAST) - len(_INDENT) - _wide(leads)
    blocks: list[list[_Strip]] = [[]]
    for over, same in groupby(strips, key=lambda strip: strip.over):
        parts = list(same)
        for part in [parts] if over else [[each] for each in parts]:
            if room is not None and blocks[-1] and _wide([*blocks[-1], *part]) > room:
                blocks.append([])
            blocks[-1] += part
    return blocks


def _wide(strips: Iterable[_Strip]) -> int:
    return sum(strip.width + len(_GAP) for strip in strips)


def _drawn(table: Table, strips: Sequence[_Strip]) -> list[str]:
    indent = _INDENT if table.section else ""
    lines = []
    if any(strip.over for strip in strips):
        lines += [indent + line for line in _overs(strips)]
    lines.append(indent + _GAP.join(strip.head for strip in strips))
    section = None
    for place, row in enumerate(table.rows):
        if row.section != section and table.section:
            section = row.section
            lines.append(_fit(section))
        lines.append(indent + _GAP.join(strip.body[place] for strip in strips))
    return lines


def _overs(strips: Sequence[_Strip]) -> list[str]:
    """Write what stands above columns, in as many lines as it needs: cut short, two could look alike."""
    columns = []
    for over, same in groupby(strips, key=lambda strip: strip.over):
        width = _wide(same) - len(_GAP)
        columns.append([_left(piece, width) for piece in _pieces(printable(over, _OVER), width)])
    height = max(len(column) for column in columns)
    padded = [[" " * _columns_of(column[0])] * (height - len(column)) + column for column in columns]
    return [_GAP.join(line) for line in zip(*padded, strict=True)]


def _pieces(text: str, width: int) -> list[str]:
    """Cut a text into pieces of at most ``width`` columns."""
    pieces = [""]
    for char in text:
        if pieces[-1] and _columns_of(pieces[-1] + char) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces


def _wrapped(text: str, width: int | None, sign: str = "") -> list[str]:
    """Break a sentence into lines; East Asian characters count double."""
    said = sign + printable(text, 2000)
    if width is None or _columns_of(said) <= width:
        return [said]
    room = max(_LEAST, width)
    wide = _columns_of(said) > len(said)
    return textwrap.wrap(said, room // 2 if wide else room, subsequent_indent=" " * len(sign)) or [said]


def _fit(text: str, limit: int = _LONGEST) -> str:
    """Make any text safe for a line of a terminal, and no wider than ``limit``."""
    flat = printable(text, 4 * _LONGEST)
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
    """Count the columns of the screen that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - names in other scripts, and signs, only

    return cell_len(text)
