"""What each filter of mining left, and each step from commits to instances (CodeTaste Figure 2)."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from codetaste.core.text import printable
from codetaste.figures.drawing.bars import MARGIN, STEP, THICKNESS, name_rows, text_at_end
from codetaste.figures.drawing.panels import LOG_FROM, note_below, omitted, panel_grid
from codetaste.figures.drawing.style import LIGHT, SERIES
from codetaste.figures.figure import Plot
from codetaste.report.render.paper import PAGE_HEIGHT
from codetaste.report.tables.funnel import funnel_table, steps_table
from codetaste.results.funnels import read_funnels, read_steps

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData
    from codetaste.report.render.paper import PaperWidth
    from codetaste.report.table import Row, Table


def funnel_plots(data: FigureData) -> list[Plot]:
    """Return a plot for each mining run, and one of the steps from commits to instances for each run."""
    tables = []
    for root in data.results.roots:
        if steps := read_steps(root):
            tables.append(("Commits and instances after each step", steps_table(steps)))
        for name, rows in read_funnels(root).items():
            title = f"Commits after each filter of the mining run {printable(name, 60)}"
            tables.append((title, funnel_table(rows)))
    numbers = count(1)
    names = ["funnel" if len(tables) == 1 else f"funnel-{next(numbers)}" for _ in tables]
    return [
        Plot(name, title, table, draw_funnel)
        for name, (title, table) in zip(names, tables, strict=True)
        if table.rows
    ]


def draw_funnel(table: Table, width: PaperWidth) -> Figure:
    """Draw for each filter what entered, in grey, and what it left, with the number and the share removed."""
    shown = table.rows[: int((PAGE_HEIGHT - MARGIN) / STEP)]
    entered, left = ([_number(row, at) for row in shown] for at in (1, 3))
    figure, (axes,) = panel_grid(1, 1, width, len(shown) * STEP + MARGIN)
    axes.barh(range(len(shown)), entered, THICKNESS, color=LIGHT)
    axes.barh(range(len(shown)), left, THICKNESS, color=SERIES[0].colour)
    highest = max(entered, default=0) or 1
    if highest / max(1.0, min(left, default=1.0)) > LOG_FROM:
        axes.set_xscale("log")
        axes.set_xlim(0.8, highest * 1.3)
    else:
        axes.set_xlim(0, highest * 1.05)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for number, (before, after) in enumerate(zip(entered, left, strict=True)):
        removed = f"  −{1 - after / before:.1%}".replace("%", " %") if after < before else ""
        text_at_end(axes, number, f"{after:,.0f}{removed}")
    axes.set_xlabel("Left (grey: entered)", labelpad=1.5)
    name_rows(axes, [f"{row.section}: {row.cells[0]}" if row.section else str(row.cells[0]) for row in shown])
    if more := omitted(len(table.rows) - len(shown), "filter"):
        note_below(figure, more)
    return figure


def _number(row: Row, at: int) -> float:
    cell = row.cells[at]
    return float(cell) if isinstance(cell, int | float) else 0.0
