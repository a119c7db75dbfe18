"""Output in GitHub's Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import caption, format_cell

if TYPE_CHECKING:
    from codetaste.report.table import Table

_MAX_TEXT = 500
_SIGNS = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"} | {sign: f"\\{sign}" for sign in "\\`*_{}[]|~$#!^"}
)
_LINKS = re.compile(r"(?i)\b(www)\.|(:)(?=//)")


def render_markdown(table: Table) -> str:
    """Return a table in Markdown, with its sections as the first column; no text is interpreted as markup."""
    title = f"**{escape(caption(table))}**"
    notes = ["", *(f"- {escape(note)}" for note in table.notes)] if table.notes else []
    if not table.rows:
        return "\n".join([title, *notes])
    heads = []
    for column in table.columns:
        head = f"{column.title} ({column.sign})" if column.sign else column.title
        heads.append(escape(f"{column.heading}: {head}" if column.heading else head))
    signs = [":--" if column.unit is Unit.TEXT else "--:" for column in table.columns]
    if table.section:
        heads.insert(0, escape(table.section.capitalize()))
        signs.insert(0, ":--")
    lines = [title, "", _line(heads), _line(signs)]
    section = None
    for row in table.rows:
        pairs = zip(row.cells, table.columns, strict=True)
        cells = [escape("".join(format_cell(cell, column))) for cell, column in pairs]
        if table.section:
            cells.insert(0, escape(row.section) if row.section != section else "")
            section = row.section
        lines.append(_line(cells))
    return "\n".join([*lines, *notes])


def escape(text: str) -> str:
    """Escape a text for a line of Markdown: no markup, no HTML, no link, no mention, no formula."""
    flat = printable(text, _MAX_TEXT).translate(_SIGNS)
    return _LINKS.sub(lambda match: f"{match[1]}&#46;" if match[1] else "&#58;", flat)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
