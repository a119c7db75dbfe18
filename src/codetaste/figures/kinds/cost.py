"""Cost against alignment: which agents give most for their price (a Pareto front for each track and mode)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from matplotlib.lines import Line2D

from codetaste.figures.drawing.panels import legend_above, money_axis, percent_axis, title_axes
from codetaste.figures.drawing.scatter import MAX_POINTS, AgentPoint, marked_look, number_points, scatter_grid
from codetaste.figures.drawing.span import span_of
from codetaste.figures.drawing.style import SERIES
from codetaste.figures.figure import Plot
from codetaste.report.statistics import measures
from codetaste.report.statistics.measures import Unit
from codetaste.report.statistics.scripted import scripted_notes
from codetaste.report.table import Column, Row, Table, interval_legend
from codetaste.report.tables.scores import measure_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData
    from codetaste.report.render.paper import PaperWidth

_FRONT_LINE: Final[Mapping[str, Any]] = {"color": SERIES[1].colour, "linewidth": 1.3, "zorder": 0.8}
"""Of another colour than the intervals, and below them."""
_AGENT = Column("agent", "Agent")
_FRONT = Column("pareto_front", "On the Pareto front", Unit.COUNT)


def cost_plots(data: FigureData) -> list[Plot]:
    """Return the plot, if trials have costs and scores."""
    primary = data.view.primary_measure
    rows = []
    for mode in data.view.trials.track_modes:
        pairs = [
            (agent, data.interval(agent, mode, measures.COST), data.interval(agent, mode, primary))
            for agent in data.agents
        ]
        known = [pair for pair in pairs if pair[1].mean is not None and pair[2].mean is not None]
        front = pareto_front([(cost.mean or 0.0, score.mean or 0.0) for _, cost, score in known])
        rows += [
            Row((agent, cost, score, int(on_front)), mode.title)
            for (agent, cost, score), on_front in zip(known, front, strict=True)
        ]
    if not rows:
        return []
    title = f"Mean cost of a trial against {primary.title} of each agent in each track and mode"
    columns = (_AGENT, measure_column(measures.COST), measure_column(primary), _FRONT)
    table = Table(
        "cost", title, columns, tuple(rows), interval_legend(tuple(rows)), data.aggregation, "track and mode"
    )
    shown = "; ".join(
        [f"{title}, with 95 % intervals and the Pareto front", *scripted_notes(data.view.trials.agents)]
    )
    return [Plot("cost", shown, table, draw_cost)]


def pareto_front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Return for each point (cost, score) whether no other is at least as good in both and better in one."""
    return [
        not any(
            (cost <= own_cost and score >= own_score) and (cost < own_cost or score > own_score)
            for cost, score in points
        )
        for own_cost, own_score in points
    ]


def draw_cost(table: Table, width: PaperWidth) -> Figure:
    """Draw a panel for each track and mode, all with one scale; agents on the front are joined by steps."""
    panels: dict[str, Sequence[AgentPoint]] = {
        mode: [point for row in rows if (point := _point(row)) is not None][:MAX_POINTS]
        for mode, rows in groupby(table.rows, key=lambda row: row.section)
    }
    figure, axes = scatter_grid(panels, width)
    every = [point for points in panels.values() for point in points]
    costs = [point.x.mean for point in every]
    ends = [end for point in every for end in (point.x.low, point.x.high)]
    highest = max((point.y.high for point in every), default=1.0)
    for each, points in zip(axes, panels.values(), strict=True):
        front = sorted((point.x.mean, point.y.mean) for point in points if point.marked)
        each.step(
            [cost for cost, _ in front],
            [score for _, score in front],
            where="post",
            **_FRONT_LINE,
        )
        money_axis(each, costs, ends)
        percent_axis(each, "y", top=highest)
        title_axes(each, "Cost of a trial", f"{table.columns[2].title} (%)")
    handles = [
        Line2D([], [], **_FRONT_LINE),
        *(Line2D([], [], linestyle="", **marked_look(marked=marked)) for marked in (True, False)),
    ]
    legend_above(figure, handles, ["Pareto front", "On the front", "Not on it"], 3)
    number_points(figure, axes, panels)
    return figure


def _point(row: Row) -> AgentPoint | None:
    cost, score = span_of(row.cells[1]), span_of(row.cells[2])
    if cost is None or score is None:
        return None
    return AgentPoint(str(row.cells[0]), cost, score, marked=bool(row.cells[3]))
