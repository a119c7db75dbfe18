"""LaTeX output in the paper's style: booktabs, a section for each agent, ± in a column of its own.

The output needs the package booktabs and works with any engine. A table that is too wide or too high for
its page is written in parts.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from codetaste.core.text import printable
from codetaste.report.render.latex.escape import escape
from codetaste.report.render.latex.layout import lay_out, shorten_heading
from codetaste.report.render.latex.text_width import escape_breakable, shorten_to, text_width
from codetaste.report.render.paper import POINTS_PER_INCH, PaperWidth
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import caption, format_cell

if TYPE_CHECKING:
    from codetaste.report.render.latex.layout import TablePart
    from codetaste.report.table import Cell, Column, Table

_MAX_TEXT: Final = 500
_SECTION: Final = 150.0
"""Points that the name of a section may take, even if the columns are narrower."""
_QUAD: Final = 10.0
"""Points of ``\\quad``, at most."""
_MAX_FLOATS: Final = 10
"""Parts after which all are set: LaTeX cannot keep many floats."""
_MAX_NOTES: Final = 200.0
"""Points of notes that stay with the table; more follow it as text."""
_CAPTION: Final = 10 * 1.1, 12.0
_NOTE: Final = 8 * 1.063 * 1.1, 9.5
"""Points of an em, with a tenth for ragged lines, and of a line."""


def render_latex(table: Table, width: PaperWidth = PaperWidth.PAGE) -> str:
    r"""Return a table as a float with ``\caption`` and ``\label``; one without rows is a comment.

    A table of the width of a page is a ``table*``, which spans both columns of a paper that has two.
    """
    if not table.rows:
        return "\n".join(f"% {printable(line, _MAX_TEXT)}" for line in (caption(table), *table.notes))
    # Intervals are split: their second parts are set in a column of their own.
    split = [
        any(format_cell(row.cells[position], column)[1] for row in table.rows)
        for position, column in enumerate(table.columns)
    ]
    title = table.title[:1].upper() + table.title[1:]
    title += f" ({table.aggregation})" if table.aggregation else ""
    line = width.inches * POINTS_PER_INCH
    notes = sum(_height(note, line, _NOTE) for note in table.notes)
    inside = notes <= _MAX_NOTES
    parts = lay_out(table, width, _height(title, line, _CAPTION) + 24 + (notes if inside else 0))
    environment = "table*" if width is PaperWidth.PAGE else "table"
    texts = []
    for number, part in enumerate(parts, 1):
        suffix = f" (part {number} of {len(parts)})" if len(parts) > 1 else ""
        lines = [
            rf"\begin{{{environment}}}[htbp]",
            rf"  \caption{{{escape_breakable(title + suffix)}.}}",
            rf"  \label{{tab:{_label(table, number)}}}",
            rf"  \centering{part.size.command}\setlength{{\tabcolsep}}{{{part.size.gap:g}pt}}",
            *_tabular(table, part, split, line),
            *(_note(note) for note in table.notes if inside and number == len(parts)),
            rf"\end{{{environment}}}",
        ]
        if number % _MAX_FLOATS == 0:
            lines.append(r"\clearpage")
        texts.append("\n".join(lines))
    if not inside:
        texts += [rf"{{\footnotesize\raggedright {escape_breakable(note)}.\par}}" for note in table.notes]
    return "\n".join(texts)


def _note(text: str) -> str:
    return rf"  \par\footnotesize\raggedright {escape_breakable(text)}."


def _height(text: str, line: float, size: tuple[float, float]) -> float:
    em, height = size
    return (int(text_width(text) * em / line) + 1) * height


def _label(table: Table, number: int) -> str:
    return "-".join([table.name, *table.aggregation.split(), *([str(number)] if number > 1 else [])])


def _tabular(table: Table, part: TablePart, split: list[bool], line: float) -> list[str]:
    columns = [table.columns[at] for at in part.columns]
    two = [split[at] for at in part.columns]
    spec = "".join(
        "l" if column.unit is Unit.TEXT else "r@{}l" if both else "r"
        for column, both in zip(columns, two, strict=True)
    )
    return [
        rf"  \begin{{tabular}}{{@{{}}{spec}@{{}}}}",
        r"    \toprule",
        *_heads(columns, two, [part.titles[at] for at in part.columns]),
        r"    \midrule",
        *_body(table, part, two, line),
        r"    \bottomrule",
        r"  \end{tabular}",
    ]


def _heads(columns: list[Column], two: list[bool], titles: list[list[str]]) -> list[str]:
    lines = []
    if any(column.heading for column in columns):
        cells, rules, at = [], [], 1
        for heading, same in groupby(zip(columns, two, strict=True), key=lambda pair: pair[0].heading):
            span = sum(1 + both for _, both in same)
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escape(shorten_heading(heading))}}}")
            if heading:
                rules.append(rf"\cmidrule(lr){{{at}-{at + span - 1}}}")
            at += span
        lines += [f"    {' & '.join(cells)} \\\\", f"    {' '.join(rules)}"]
    headers = []
    for column, both, title in zip(columns, two, titles, strict=True):
        if column.latex:
            text = column.latex + (f" ({escape(column.sign)})" if column.sign else "")
        else:
            text = r"\\".join(map(escape, title))
        if len(title) > 1:
            text = rf"\shortstack{{{text}}}"
        headers.append(rf"\multicolumn{{2}}{{c}}{{{text}}}" if both else f"{{{text}}}")
    return [*lines, f"    {' & '.join(headers)} \\\\"]


def _body(table: Table, part: TablePart, two: list[bool], line: float) -> list[str]:
    lines: list[str] = []
    section = None
    for row in part.rows:
        if table.section and row.section != section:
            if section is not None:
                lines.append(r"    \addlinespace")
            section = row.section
            shown = shorten_to(section, min(line, max(part.width, _SECTION)) / part.size.em)
            lines.append(rf"    \multicolumn{{{len(two) + sum(two)}}}{{@{{}}l@{{}}}}{{{escape(shown)}}} \\")
        cells: list[str] = []
        for at, both in zip(part.columns, two, strict=True):
            if at in part.wrapped:
                text = format_cell(row.cells[at], table.columns[at])[0]
                cells.append(_wrapped(text, part, at, indented=not cells and bool(table.section)))
            else:
                cells += _split_cell(row.cells[at], table.columns[at])[: 1 + both]
        indent = r"\quad " if table.section else ""
        lines.append(f"    {indent}{' & '.join(cells)} \\\\")
    return lines


def _wrapped(text: str, part: TablePart, at: int, *, indented: bool) -> str:
    points = part.wrapped[at] - (_QUAD if indented else 0)
    breakable = escape_breakable(text, points / part.size.em)
    return rf"\parbox[t]{{{points:.1f}pt}}{{\raggedright\strut {breakable}\strut}}"


def _split_cell(cell: Cell, column: Column) -> tuple[str, str]:
    first, second = format_cell(cell, column)
    if second.startswith(" ± "):
        return escape(first), rf"\,$\pm$\,{escape(second[3:])}"
    if second:
        return escape(first), rf"\,{escape(second.strip())}"
    negative = column.unit is not Unit.TEXT and first.startswith("-")
    return (f"$-${escape(first[1:])}" if negative else escape(first)), ""
