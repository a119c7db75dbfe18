"""LaTeX output in the paper's style: booktabs, a section for each agent, ± in a column of its own.

The output needs the package booktabs and works with any engine: characters without a glyph in pdfTeX are
written as their code points.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import caption, format_cell

if TYPE_CHECKING:
    from codetaste.report.table import Cell, Column, Table

_MAX_TEXT = 500
_DASHES = re.compile(r"-(?=-)")
_ESCAPES = {
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
"""Characters that LaTeX reads as commands, that form ligatures, or that would be arguments of a ``\\``."""
_LATIN = frozenset(map(chr, range(0xC0, 0x100))) - set("ÐðÞþ×÷")
"""Letters that all TeX encodings have."""


def render_latex(table: Table) -> str:
    r"""Return a table as a float with ``\caption`` and ``\label``; one without rows is a comment."""
    if not table.rows:
        return "\n".join(f"% {printable(line, _MAX_TEXT)}" for line in (caption(table), *table.notes))
    # Intervals are split: their second parts are set in a column of their own.
    split = [
        any(format_cell(row.cells[position], column)[1] for row in table.rows)
        for position, column in enumerate(table.columns)
    ]
    spec = "".join(
        "l" if column.unit is Unit.TEXT else "r@{}l" if two else "r"
        for column, two in zip(table.columns, split, strict=True)
    )
    title = table.title[:1].upper() + table.title[1:]
    title += f" ({table.aggregation})" if table.aggregation else ""
    label = "-".join([table.name, *table.aggregation.split()])
    lines = [
        r"\begin{table}[htbp]",
        rf"  \caption{{{escape(title)}.}}",
        rf"  \label{{tab:{label}}}",
        r"  \centering\small",
        rf"  \begin{{tabular}}{{{spec}}}",
        r"    \toprule",
        *_heads(table, split),
        r"    \midrule",
        *_body(table, split),
        r"    \bottomrule",
        r"  \end{tabular}",
        *(rf"  \par\footnotesize {escape(note)}." for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines)


def escape(text: str) -> str:
    """Escape a text for LaTeX, so that it is typeset literally."""
    flat = unicodedata.normalize("NFC", printable(text, _MAX_TEXT))
    return _DASHES.sub("-{}", "".join(_glyph(char) for char in flat))


def _glyph(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isascii() or char in _LATIN:
        return char
    return f"{{[}}U+{ord(char):04X}{{]}}"


def _heads(table: Table, split: list[bool]) -> list[str]:
    lines = []
    if any(column.heading for column in table.columns):
        cells, rules, at = [], [], 1
        for heading, same in groupby(
            zip(table.columns, split, strict=True), key=lambda pair: pair[0].heading
        ):
            span = sum(1 + two for _, two in same)
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escape(heading)}}}")
            if heading:
                rules.append(rf"\cmidrule(lr){{{at}-{at + span - 1}}}")
            at += span
        lines += [f"    {' & '.join(cells)} \\\\", f"    {' '.join(rules)}"]
    headers = []
    for column, two in zip(table.columns, split, strict=True):
        title = column.latex or escape(column.title)
        title += f" ({escape(column.sign)})" if column.sign else ""
        headers.append(rf"\multicolumn{{2}}{{c}}{{{title}}}" if two else f"{{{title}}}")
    return [*lines, f"    {' & '.join(headers)} \\\\"]


def _body(table: Table, split: list[bool]) -> list[str]:
    lines: list[str] = []
    section = None
    for row in table.rows:
        if table.section and row.section != section:
            if section is not None:
                lines.append(r"    \addlinespace")
            section = row.section
            width = len(split) + sum(split)
            lines.append(rf"    \multicolumn{{{width}}}{{l}}{{{escape(section)}}} \\")
        cells: list[str] = []
        for cell, column, two in zip(row.cells, table.columns, split, strict=True):
            cells += _split_cell(cell, column)[: 1 + two]
        indent = r"\quad " if table.section else ""
        lines.append(f"    {indent}{' & '.join(cells)} \\\\")
    return lines


def _split_cell(cell: Cell, column: Column) -> tuple[str, str]:
    first, second = format_cell(cell, column)
    if second.startswith(" ± "):
        return escape(first), rf"\,$\pm$\,{escape(second[3:])}"
    if second:
        return escape(first), rf"\,{escape(second.strip())}"
    negative = column.unit is not Unit.TEXT and first.startswith("-")
    return (f"$-${escape(first[1:])}" if negative else escape(first)), ""
