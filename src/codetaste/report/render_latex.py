"""Tables in LaTeX, as the paper sets them: booktabs, a section for each agent, ± in a column of its own.

They need the package booktabs and any engine: what pdfTeX has no glyph for is written as its code point.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import TYPE_CHECKING

from codetaste.report.measures import Unit
from codetaste.report.progress import printable
from codetaste.report.table import caption, spoken

if TYPE_CHECKING:
    from codetaste.report.table import Cell, Column, Row, Table

_LONGEST = 500
_DASHES = re.compile(r"-(?=-)")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "`": "{`}",
    '"': r"{\char34}",
    "–": r"\textendash{}",
    "…": r"\ldots{}",
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "⁺": r"$^{+}$",
    "⁻": r"$^{-}$",
    "∘": r"$\circ$",
}
"""Signs that LaTeX reads as commands, that join their neighbours, or that belong to ``\\`` before them."""
_LATIN = frozenset(map(chr, range(0xC0, 0x100))) - set("ÐðÞþ×÷")
"""Letters that every encoding of TeX has."""


def render_latex(table: Table) -> str:
    r"""Return a table as a float with ``\caption`` and ``\label``; one without rows is a comment."""
    if not table.rows:
        return "\n".join(f"% {printable(line, _LONGEST)}" for line in (caption(table), *table.notes))
    split = [_is_split(table, place) for place in range(len(table.columns))]
    spec = "".join(_spec(column, two) for column, two in zip(table.columns, split, strict=True))
    width = len(split) + sum(split)
    lines = [
        r"\begin{table}[htbp]",
        rf"  \caption{{{escape(_title(table))}.}}",
        rf"  \label{{tab:{_label(table)}}}",
        r"  \centering\small",
        rf"  \begin{{tabular}}{{{spec}}}",
        r"    \toprule",
        *_heads(table, split),
        r"    \midrule",
        *_body(table, split, width),
        r"    \bottomrule",
        r"  \end{tabular}",
        *(rf"  \par\footnotesize {escape(note)}." for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _title(table: Table) -> str:
    title = table.title[:1].upper() + table.title[1:]
    return f"{title} ({table.aggregation})" if table.aggregation else title


def escape(text: str) -> str:
    """Make any text safe for LaTeX: it is set as it is read, and does nothing."""
    flat = unicodedata.normalize("NFC", printable(text, _LONGEST))
    return _DASHES.sub("-{}", "".join(_glyph(char) for char in flat))


def _glyph(char: str) -> str:
    if char in _SPECIAL:
        return _SPECIAL[char]
    if char.isascii() or char in _LATIN:
        return char
    return f"{{[}}U+{ord(char):04X}{{]}}"


def _is_split(table: Table, place: int) -> bool:
    """Whether a column has intervals, whose second halves stand in a column of their own."""
    return any(spoken(row.cells[place], table.columns[place])[1] for row in table.rows)


def _spec(column: Column, two: bool) -> str:
    if column.unit is Unit.TEXT:
        return "l"
    return "r@{}l" if two else "r"


def _heads(table: Table, split: list[bool]) -> list[str]:
    lines = []
    if any(column.over for column in table.columns):
        cells, rules, at = [], [], 1
        for over, same in groupby(zip(table.columns, split, strict=True), key=lambda pair: pair[0].over):
            span = sum(1 + two for _, two in same)
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escape(over)}}}")
            if over:
                rules.append(rf"\cmidrule(lr){{{at}-{at + span - 1}}}")
            at += span
        lines += [f"    {' & '.join(cells)} \\\\", f"    {' '.join(rules)}"]
    heads = [_head(column, two) for column, two in zip(table.columns, split, strict=True)]
    return [*lines, f"    {' & '.join(heads)} \\\\"]


def _head(column: Column, two: bool) -> str:
    title = column.latex or escape(column.title)
    if column.sign:
        title = f"{title} ({escape(column.sign)})"
    return rf"\multicolumn{{2}}{{c}}{{{title}}}" if two else f"{{{title}}}"


def _body(table: Table, split: list[bool], width: int) -> list[str]:
    lines: list[str] = []
    section = None
    for row in table.rows:
        if table.section and row.section != section:
            if section is not None:
                lines.append(r"    \addlinespace")
            section = row.section
            lines.append(rf"    \multicolumn{{{width}}}{{l}}{{{escape(section)}}} \\")
        lines.append(f"    {' & '.join(_cells(table, row, split))} \\\\")
    return lines


def _cells(table: Table, row: Row, split: list[bool]) -> list[str]:
    cells = []
    for place, (cell, column, two) in enumerate(zip(row.cells, table.columns, split, strict=True)):
        indent = r"\quad " if place == 0 and table.section else ""
        head, tail = _spoken(cell, column)
        cells.append(indent + head)
        if two:
            cells.append(tail)
    return cells


def _spoken(cell: Cell, column: Column) -> tuple[str, str]:
    head, tail = spoken(cell, column)
    if tail.startswith(" ± "):
        return escape(head), rf"\,$\pm$\,{escape(tail[3:])}"
    if tail:
        return escape(head), rf"\,{escape(tail.strip())}"
    negative = column.unit is not Unit.TEXT and head.startswith("-")
    return (f"$-${escape(head[1:])}" if negative else escape(head)), ""


def _label(table: Table) -> str:
    return "-".join(part for part in (table.name, *table.aggregation.split()) if part)
