"""Additive against reductive rules: IFR⁺ and IFR⁻ of agents by track and mode (CodeTaste Table 3)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from codetaste.figures.drawing.panels import percent_axis, title_axes
from codetaste.figures.drawing.scatter import MAX_POINTS, AgentPoint, number_points, scatter_grid
from codetaste.figures.drawing.span import span_of
from codetaste.figures.drawing.style import GREY
from codetaste.figures.figure import Plot
from codetaste.report.statistics import measures
from codetaste.report.table import Column, Row, Table, interval_legend
from codetaste.report.tables.scores import measure_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData
    from codetaste.report.render.paper import PaperWidth


def direction_plots(data: FigureData) -> list[Plot]:
    """Return the plot, if trials have both rates."""
    rows = []
    for mode in data.view.trials.track_modes:
        for agent in data.agents:
            pair = [data.interval(agent, mode, each) for each in (measures.IFR_PLUS, measures.IFR_MINUS)]
            if all(each.mean is not None for each in pair):
                rows.append(Row((agent, *pair), mode.title))
    if not rows:
        return []
    title = "IFR of additive rules against IFR of reductive rules of each agent in each track and mode"
    columns = (
        Column("agent", "Agent"),
        measure_column(measures.IFR_PLUS),
        measure_column(measures.IFR_MINUS),
    )
    table = Table(
        "directions",
        title,
        columns,
        tuple(rows),
        interval_legend(tuple(rows)),
        data.aggregation,
        "track and mode",
    )
    return [Plot("directions", f"{title}, with 95 % intervals", table, draw_directions)]


def draw_directions(table: Table, width: PaperWidth) -> Figure:
    """Draw a panel for each track and mode, all with one scale; on the diagonal both rates are equal."""
    panels: dict[str, Sequence[AgentPoint]] = {
        mode: [
            AgentPoint(str(row.cells[0]), plus, minus, marked=True)
            for row in rows
            if (plus := span_of(row.cells[1])) and (minus := span_of(row.cells[2]))
        ][:MAX_POINTS]
        for mode, rows in groupby(table.rows, key=lambda row: row.section)
    }
    figure, axes = scatter_grid(panels, width)
    ends = [end for points in panels.values() for point in points for end in (point.x.high, point.y.high)]
    for each in axes:
        each.plot([0, 1], [0, 1], color=GREY, linewidth=0.6, linestyle=(0, (3, 2)), zorder=0.5)
        percent_axis(each, "x", top=max(ends, default=1.0))
        percent_axis(each, "y", top=max(ends, default=1.0))
        title_axes(each, f"{table.columns[1].title} (%)", f"{table.columns[2].title} (%)")
    number_points(figure, axes, panels)
    return figure
