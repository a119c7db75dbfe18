"""Templates with escaping: everything that comes from runs is text, never markup."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from codetaste import __version__
from codetaste.core.text import plural
from codetaste.core.units import format_usd
from codetaste.report.statistics.intervals import Interval
from codetaste.report.table import caption, format_cell
from codetaste.results.outcome import OutcomeFacet
from codetaste.site.html.address import relative
from codetaste.site.html.meanings import MEANINGS
from codetaste.site.html.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from codetaste.report.table import Cell, Column, Row
    from codetaste.site.site import Site

_CLASSES = {
    OutcomeFacet.SUCCESS: ("good", "✓"),
    OutcomeFacet.PARTIAL_SUCCESS: ("good", "◐"),
    OutcomeFacet.FAILURE: ("bad", "✗"),
    OutcomeFacet.TIMEOUT: ("warn", "◔"),
    OutcomeFacet.BUDGET_EXCEEDED: ("warn", "$"),
    OutcomeFacet.MAX_TURNS: ("warn", "↻"),
    OutcomeFacet.REFUSED: ("warn", "⊘"),
    OutcomeFacet.INFRASTRUCTURE_ERROR: ("warn", "⚠"),
}
"""Colour and sign of a facet; all others are neutral."""
_SHORT = 24
"""A text of so many characters is not broken into lines; a longer one has a column of some width."""
_BAR_LEFT, _BAR_WIDTH = 4, 112
"""Of the drawing of an interval, in its own units."""


@cache
def environment() -> Environment:
    """Return the templates of ``site/templates``."""
    made = Environment(
        loader=PackageLoader("codetaste.site", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.filters.update(
        group_rows=_group_rows,
        group_columns=_group_columns,
        usd=format_usd,
        letter_in=lambda system, comparison: comparison.letter(system),
    )
    made.globals.update(
        version=__version__,
        caption=caption,
        cell_value=_cell_value,
        facet_class=lambda facet: _CLASSES.get(facet, ("neutral", ""))[0],
        facet_sign=lambda facet: _CLASSES.get(facet, ("", "○"))[1],
        format_cell=format_cell,
        meanings=MEANINGS,
        number_cells=_number_cells,
        plural=plural,
        text_class=lambda value: "nowrap" if len(str(value)) <= _SHORT else "text",
        scale=lambda value: round(_BAR_LEFT + _BAR_WIDTH * min(1.0, max(0.0, value)), 1),
    )
    return made


def render_page(site: Site, template: str, address: str, title: str, **values: Any) -> bytes:  # noqa: ANN401
    """Return the page at ``address``.

    Args:
        site: the site that it belongs to.
        template: a file of ``site/templates`` that extends ``base.html``.
        address: of the page; links are made relative to it.
        title: of the page, as text.
        values: the template's own variables; ``crumbs`` are the pages above, ``data`` files beside the page,
            both as pairs of text and address.
    """
    every = {"crumbs": (), "data": (), **values}
    text = (
        environment()
        .get_template(template)
        .render(
            site=site,
            address=address,
            title=title,
            link=lambda target: relative(target, address),
            **every,
        )
    )
    # A lone surrogate, which file names and JSON can have, is no text of a page.
    return text.encode("utf-8", "replace")


def render_macro(name: str, *values: Any) -> str:  # noqa: ANN401
    """Return what a macro of ``macros.html`` makes of ``values``."""
    macro: Callable[..., str] = getattr(environment().get_template("macros.html").module, name)
    return macro(*values)


def _finalize(value: Any) -> Any:  # noqa: ANN401 - whatever a template prints
    """Make the hidden characters of every text visible before it is escaped."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _group_rows(rows: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    """Return consecutive rows of one section together."""
    return [(section, list(same)) for section, same in groupby(rows, key=lambda row: row.section)]


def _group_columns(columns: Sequence[Column]) -> list[tuple[str, list[Column]]]:
    """Return consecutive columns below one heading together."""
    return [(heading, list(same)) for heading, same in groupby(columns, key=lambda column: column.heading)]


def _number_cells(values: Iterable[float | None], columns: Sequence[Column]) -> Markup:
    """Return a cell of a table for each number; a function, since a site has a hundred thousand of them."""
    cells = []
    for value, column in zip(values, columns, strict=True):
        exact = "" if value is None else f' data-value="{value}"'
        cells.append(f'<td class="num"{exact}>{format_cell(value, column)[0]}</td>')
    return Markup("".join(cells))  # noqa: S704 - numbers


def _cell_value(cell: Cell) -> str | float:
    """Return what a cell is sorted by."""
    if isinstance(cell, Interval):
        return "" if cell.mean is None else cell.mean
    return "" if cell is None else cell
