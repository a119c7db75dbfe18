"""Rows of the tables of a patch as HTML: lines of its excerpt, and its files with their counts.

They are made here and not in a template because a site has some hundred thousand of them: so it takes a third
of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from codetaste.rules.registration import Direction
from codetaste.site.html.visible import visible
from codetaste.site.trial.patch.patch_data import file_notes, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.site.trial.patch.excerpt import ExcerptFile, ExcerptLine, LineMark
    from codetaste.site.trial.patch.marked_patch import MarkedFile

_CLASSES = {"+": "add", "-": "del"}
_KINDS = {"additive": "▲ additive", "reductive": "▼ reductive", "remaining": "◆ left"}


def line_rows(anchors: Mapping[tuple[str, str], str], file: ExcerptFile) -> Markup:
    """Return a row for each line, with the id ``L<file>-<line>``; every text is escaped.

    Args:
        anchors: the fragments that name the rules in the page, by direction and id.
        file: the lines.
    """
    return Markup("\n".join(_line_row(anchors, file.number, line) for line in file.lines))  # noqa: S704


def file_rows(files: Iterable[MarkedFile]) -> Markup:
    """Return a row for each file, which leads to its lines; every text is escaped."""
    return Markup("\n".join(_file_row(number, each) for number, each in enumerate(files, 1)))  # noqa: S704


def _line_row(anchors: Mapping[tuple[str, str], str], file: int, line: ExcerptLine) -> str:
    old, new = ("" if number is None else str(number) for number in (line.old, line.new))
    marked = " marked" if line.marks else ""
    marks = "".join(_mark(anchors, mark) for mark in line.marks)
    return (
        f'<tr class="{_CLASSES.get(line.sign, "same")}{marked}" id="L{file}-{new or f"o{old}"}">\n'
        f'<td class="line">{old}</td><td class="line">{new}</td>\n'
        f'<td class="text">{_text(line.sign)} {_text(line.text)}</td>\n'
        f'<td class="mark">{marks}</td></tr>'
    )


def _mark(anchors: Mapping[tuple[str, str], str], mark: LineMark) -> str:
    direction = Direction.ADDITIVE if mark.kind == "additive" else Direction.REDUCTIVE
    named = ((_text(anchors.get((direction, name), f"rule-{name}")), _text(name)) for name in mark.rules)
    return "".join(f'<a href="#{anchor}">{_KINDS[mark.kind]}: {name}</a> ' for anchor, name in named)


def _file_row(number: int, each: MarkedFile) -> str:
    counts = each.counts
    numbers = (counts.added, counts.hits_added, counts.removed, counts.hits_removed)
    cells = "".join(f'<td class="num">{count}</td>' for count in (*numbers, len(each.matches.remaining)))
    path, notes = _text(shown_path(each.path)), _text(", ".join(file_notes(each)))
    return f'<tr><th scope="row"><a href="#F{number}">{path}</a></th>{cells}<td>{notes}</td></tr>'


def _text(text: str) -> Markup:
    return escape(visible(text))
