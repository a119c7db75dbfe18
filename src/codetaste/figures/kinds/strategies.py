"""Successful refactorings of strategies by type, a panel for each model (SWE-Refactor Figure 3)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from codetaste.figures.drawing.bars import EDGE, bar_handles
from codetaste.figures.drawing.labels import glyphs, make_labels, shorten_middle
from codetaste.figures.drawing.panels import LINE, count_axis, legend_above, note_below, omitted, panel_grid
from codetaste.figures.drawing.style import SERIES, SMALL, SMALLEST
from codetaste.figures.figure import Plot
from codetaste.report.render.paper import PAGE_HEIGHT, PaperWidth
from codetaste.swe_refactor.report.successes import figure_3

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData
    from codetaste.report.table import Table

_PANEL: Final = 1.35
_MARGIN: Final = 0.3
_MAX_NUMBERED: Final = 30
"""Bars that still have room for their numbers."""


def strategy_plots(data: FigureData) -> list[Plot]:
    """Return the plot, if there are trials of SWE-Refactor."""
    rows = data.results.answers.rows
    if not rows:
        return []
    title = "Successful refactorings of each strategy by type of refactoring"
    return [Plot("strategies", title, figure_3(rows), draw_strategies)]


def draw_strategies(table: Table, width: PaperWidth) -> Figure:
    """Draw the total and each type as a group of bars, one bar for each strategy."""
    models = {model: list(rows) for model, rows in groupby(table.rows, key=lambda row: row.section)}
    strategies = list(dict.fromkeys(str(row.cells[0]) for row in table.rows))[: len(SERIES)]
    columns = 4 if width is PaperWidth.PAGE else 2
    above = -(-len(strategies) // columns) * LINE + _MARGIN
    shown = list(models)[: int((PAGE_HEIGHT - above) / _PANEL)]
    figure, axes = panel_grid(len(shown), 1, width, len(shown) * _PANEL + above, share="x")
    types = ["All", *(column.title for column in table.columns[2:])]
    highest = max((cell for row in table.rows for cell in row.cells[1:] if isinstance(cell, int)), default=0)
    thickness = 0.84 / len(strategies)
    numbered = len(strategies) * len(types) <= _MAX_NUMBERED * (2 if width is PaperWidth.PAGE else 1)
    for each, model in zip(axes, shown, strict=True):
        for place, strategy in enumerate(strategies):
            row = next((row for row in models[model] if row.cells[0] == strategy), None)
            if row is None:
                continue
            counts = [float(cell) if isinstance(cell, int) else 0.0 for cell in row.cells[1:]]
            look = SERIES[place]
            shift = (place + 0.5) * thickness - 0.42
            bars = each.bar(
                [number + shift for number in range(len(types))],
                counts,
                thickness,
                color=look.colour,
                hatch=look.hatch,
                **EDGE,
            )
            if numbered:
                each.bar_label(bars, [f"{count:,.0f}" for count in counts], padding=1, fontsize=SMALLEST)
        count_axis(each, "y", highest)
        each.set_ylabel("Successes", labelpad=1.5)
        each.set_title(shorten_middle(glyphs(model), 60), pad=2)
    axes[-1].set_xticks(
        range(len(types)),
        [glyphs(each).replace(" + ", " +\n").replace(" (", "\n(") for each in types],
        fontsize=SMALL,
    )
    labels = make_labels(strategies, 24)
    handles = bar_handles(SERIES[: len(strategies)])
    legend_above(figure, handles, [labels[each] for each in strategies], columns)
    if more := omitted(len(models) - len(shown), "model"):
        note_below(figure, more)
    return figure
