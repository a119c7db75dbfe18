"""How many instances are written in each language (CodeTaste Figure 5)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from codetaste.figures.drawing.bars import MARGIN, STEP, THICKNESS, name_rows
from codetaste.figures.drawing.panels import count_axis, note_below, omitted, panel_grid
from codetaste.figures.drawing.style import SERIES, SMALL
from codetaste.figures.figure import Plot
from codetaste.report.render.paper import PAGE_HEIGHT
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData
    from codetaste.report.render.paper import PaperWidth


def language_plots(data: FigureData) -> list[Plot]:
    """Return the plot of the benchmark's instances; without a benchmark, of the instances of trials."""
    languages = {each.id: each.language for each in data.results.benchmarks.instances}
    if not languages:
        languages = {each.instance: each.language for each in data.results.trials.agents}
    counts = Counter(language or "unknown" for language in languages.values())
    if not counts:
        return []
    rows = [Row(item) for item in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    columns = (Column("language", "Language"), Column("instances", "Instances", Unit.COUNT))
    title = "Instances by programming language"
    return [Plot("languages", title, Table("languages", title, columns, tuple(rows)), draw_languages)]


def draw_languages(table: Table, width: PaperWidth) -> Figure:
    """Draw a bar for each language, its number at the end."""
    shown = table.rows[: int((PAGE_HEIGHT - MARGIN) / STEP)]
    counts = [float(cell) for row in shown if isinstance(cell := row.cells[1], int)]
    figure, (axes,) = panel_grid(1, 1, width, len(shown) * STEP + MARGIN)
    bars = axes.barh(range(len(shown)), counts, THICKNESS, color=SERIES[0].colour)
    axes.bar_label(bars, [f"{count:,.0f}" for count in counts], padding=2, fontsize=SMALL)
    axes.set_xlabel("Instances", labelpad=1.5)
    count_axis(axes, "x", max(counts, default=0))
    name_rows(axes, [str(row.cells[0]) for row in shown])
    if more := omitted(len(table.rows) - len(shown), "language"):
        note_below(figure, more)
    return figure
