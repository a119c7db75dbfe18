"""How hard rules are: the share of trials that satisfy each rule, sorted, by direction."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal

from matplotlib.lines import Line2D

from codetaste.figures.drawing.panels import legend_above, panel_grid, percent_axis, title_axes
from codetaste.figures.drawing.span import span_of
from codetaste.figures.drawing.style import SERIES
from codetaste.figures.figure import Plot
from codetaste.report.render.paper import PaperWidth
from codetaste.report.statistics.intervals import Interval, Method
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData

_PANEL: Final = 1.6
_MARGIN: Final = 0.3
_LINES: Final[dict[Direction, Literal["-", "--"]]] = {Direction.ADDITIVE: "-", Direction.REDUCTIVE: "--"}


def rule_plots(data: FigureData) -> list[Plot]:
    """Return the plot, if the rules of trials are known."""
    satisfied: defaultdict[tuple[str, Direction, str, str], list[bool]] = defaultdict(list)
    for row in data.rules:
        if row.satisfied is not None:
            key = data.setting(row.track, row.mode), Direction(row.direction), row.instance, row.rule
            satisfied[key].append(row.satisfied)
    shares = {key: sum(values) / len(values) for key, values in satisfied.items()}
    settings = [each.title for each in data.view.trials.track_modes]
    order = sorted(shares, key=lambda key: (settings.index(key[0]), key[1], -shares[key], *key[2:]))
    rows = [
        Row((instance, rule, direction.value, _share(shares[key], len(satisfied[key]))), setting)
        for key in order
        for setting, direction, instance, rule in [key]
    ]
    if not rows:
        return []
    columns = (
        Column("instance", "Instance"),
        Column("rule", "Rule"),
        Column("direction", "Direction"),
        Column("satisfied", "Satisfied by trials", Unit.FRACTION),
    )
    title = "Share of trials that satisfy each rule, by direction, track and mode"
    table = Table("rules", title, columns, tuple(rows), (), "", "track and mode")
    return [Plot("rules", title, table, draw_rules)]


def _share(share: float, trials: int) -> Interval:
    return Interval(share, None, None, trials, trials, Method.NONE)


def draw_rules(table: Table, width: PaperWidth) -> Figure:
    """Draw a panel for each track and mode, and in it a line for each direction, the easiest rules first."""
    panels = {setting: list(rows) for setting, rows in groupby(table.rows, key=lambda row: row.section)}
    columns = min(len(panels), 4 if width is PaperWidth.PAGE else 2)
    height = -(-len(panels) // columns) * _PANEL + _MARGIN
    figure, axes = panel_grid(len(panels), columns, width, height, share="y")
    for each, (setting, rows) in zip(axes, panels.items(), strict=True):
        each.set_title(setting, pad=3)
        for direction, look in zip(Direction, SERIES, strict=False):
            shares = [
                span.mean for row in rows if row.cells[2] == direction and (span := span_of(row.cells[3]))
            ]
            _draw_line(each, shares, look.colour, _LINES[direction])
        percent_axis(each, "x")
        percent_axis(each, "y")
        title_axes(each, "Rules (%)", "Satisfied by trials (%)")
    handles = [
        Line2D([], [], color=look.colour, linestyle=_LINES[direction])
        for direction, look in zip(Direction, SERIES, strict=False)
    ]
    legend_above(figure, handles, [f"{direction.capitalize()} rules" for direction in Direction], 2)
    return figure


def _draw_line(axes: Axes, shares: Sequence[float], colour: str, style: Literal["-", "--"]) -> None:
    """Draw falling steps; rules with the same share are one step, however many they are."""
    xs, ys = [0.0], [shares[0] if shares else 0.0]
    for share, same in groupby(shares):
        xs += [xs[-1], xs[-1] + len(list(same)) / len(shares)]
        ys += [share, share]
    if shares:
        axes.plot(xs, ys, color=colour, linestyle=style)
