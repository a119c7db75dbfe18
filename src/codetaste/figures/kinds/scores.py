"""Scores of agents by mode, a figure for each track (CodeTaste Figure 7)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from matplotlib.lines import Line2D

from codetaste.figures.drawing.labels import make_labels
from codetaste.figures.drawing.panels import legend_above, note_below, omitted, panel_grid, percent_axis
from codetaste.figures.drawing.span import span_of
from codetaste.figures.drawing.style import BLACK, GREY, LIGHT, SERIES
from codetaste.figures.figure import Plot
from codetaste.report.render.paper import PAGE_HEIGHT, PaperWidth
from codetaste.report.statistics import measures
from codetaste.report.statistics.intervals import Interval
from codetaste.report.statistics.merge import REFERENCE_TITLES
from codetaste.report.table import Row, Table, interval_legend
from codetaste.report.tables.scores import MODE_COLUMN, TRIALS_COLUMN, measure_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData

_SHOWN: Final = (measures.IFR, measures.PASS, measures.ALIGNMENT, measures.PREC)
REFERENCES: Final = "References"
_GOLDEN: Final = next(iter(REFERENCE_TITLES.values()))
_MARGIN: Final = 0.75
"""Inches above and below the rows: legend, tick labels, axis label."""
_DASHES: Final = (0, (3, 2))


def score_plots(data: FigureData) -> list[Plot]:
    """Return a plot for each track that has scores."""
    tracks = dict.fromkeys(each.track for each in data.view.trials.track_modes)
    plots = []
    for track in tracks:
        table = _table(data, track)
        if any(
            isinstance(cell, Interval) and cell.mean is not None for row in table.rows for cell in row.cells
        ):
            plots.append(Plot(table.name, _caption(table, track), table, draw_scores))
    return plots


def _caption(table: Table, track: str) -> str:
    """Say what is drawn, and of how many instances the golden patch's mean is: agents may have had fewer."""
    *first, last = [column.title for column in table.columns[1:-1]]
    shown = f"{', '.join(first)} and {last}" if first else last
    caption = f"{shown} of each agent on the {track or 'unknown'} track, with 95 % intervals"
    golden = [row.cells[-1] for row in table.rows if (row.section, row.cells[0]) == (REFERENCES, _GOLDEN)]
    return f"{caption}; the {_GOLDEN.lower()}: the mean of its {golden[0]} trials" if golden else caption


def _table(data: FigureData, track: str) -> Table:
    modes = [each for each in data.view.trials.track_modes if each.track == track]
    shown = [measure for measure in _SHOWN if data.view.has_values(measure)]
    rows = [
        Row((mode.title, *(data.interval(agent, mode, measure) for measure in shown), len(trials)), agent)
        for agent in data.agents
        for mode in modes
        if (trials := data.view.trials_of(agent, mode))
    ]
    for pseudo, title in REFERENCE_TITLES.items():
        own = [record for record in data.view.trials.pseudo if record.agent == pseudo]
        means = [data.view.interval(own, measure).mean for measure in shown]
        if own:
            rows.append(Row((title, *means, len(own)), REFERENCES))
    columns = (MODE_COLUMN, *(measure_column(measure) for measure in shown), TRIALS_COLUMN)
    title = f"Scores on the {track or 'unknown'} track"
    return Table(
        f"scores-{track or 'unknown'}",
        title,
        columns,
        tuple(rows),
        interval_legend(tuple(rows)),
        data.aggregation,
        "agent",
    )


def draw_scores(table: Table, width: PaperWidth) -> Figure:
    """Draw a panel for each measure, a line of markers for each agent."""
    by_agent = {agent: list(rows) for agent, rows in groupby(table.rows, key=lambda row: row.section)}
    references = by_agent.pop(REFERENCES, [])
    modes = list(dict.fromkeys(str(row.cells[0]) for rows in by_agent.values() for row in rows))
    shown = table.columns[1:-1]
    columns = len(shown) if width is PaperWidth.PAGE else 2
    lines = -(-len(shown) // columns)
    room = PAGE_HEIGHT / lines - _MARGIN
    agents = list(by_agent)[: int(room / (0.03 + 0.045 * max(2, len(modes))))]
    step = min(room / len(agents), max(0.15, 0.07 + 0.045 * len(modes)))
    height = lines * (len(agents) * step + _MARGIN)
    figure, axes = panel_grid(len(shown), columns, width, height, share="y")
    for place, (each, column) in enumerate(zip(axes, shown, strict=True), 1):
        _draw_panel(each, [by_agent[agent] for agent in agents], modes, place)
        highest = max(
            (span.high for agent in agents for row in by_agent[agent] if (span := span_of(row.cells[place]))),
            default=1.0,
        )
        golden = [
            cell
            for row in references
            if row.cells[0] == _GOLDEN
            if isinstance(cell := row.cells[place], float)
        ]
        if golden and golden[0] < 1:
            highest = max(highest, golden[0])
            each.axvline(golden[0], color=GREY, linewidth=0.8, linestyle=_DASHES, zorder=0.5)
        percent_axis(each, "x", top=highest)
        each.set_xlabel(f"{column.title} (%)", labelpad=1.5)
    labels = make_labels(agents)
    axes[0].set_yticks(range(len(agents)), [labels[agent] for agent in agents])
    axes[0].set_ylim(len(agents) - 0.5, -0.5)
    _legend(figure, modes, golden=bool(references), columns=4 if width is PaperWidth.PAGE else 2)
    if more := omitted(len(by_agent) - len(agents), "agent"):
        note_below(figure, more)
    return figure


def _draw_panel(axes: Axes, agents: Sequence[Sequence[Row]], modes: Sequence[str], place: int) -> None:
    axes.tick_params(axis="y", length=0)
    for number in range(1, len(agents), 2):
        axes.axhspan(number - 0.5, number + 0.5, color=LIGHT, alpha=0.35, linewidth=0, zorder=0)
    for order, mode in enumerate(modes):
        look = SERIES[order % len(SERIES)]
        shift = (order + 1) / (len(modes) + 1) - 0.5
        found = [
            (number + shift, span)
            for number, rows in enumerate(agents)
            for row in rows
            if row.cells[0] == mode and (span := span_of(row.cells[place]))
        ]
        ys, spans = [y for y, _ in found], [span for _, span in found]
        axes.hlines(
            ys, [span.low for span in spans], [span.high for span in spans], look.colour, linewidth=0.9
        )
        edge = "white" if look.colour == BLACK else "black"
        means = [span.mean for span in spans]
        axes.plot(means, ys, look.marker, color=look.colour, markeredgecolor=edge, markeredgewidth=0.3)


def _legend(figure: Figure, modes: Sequence[str], *, golden: bool, columns: int) -> None:
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, markeredgecolor="black", markeredgewidth=0.3)
        for look in SERIES[: len(modes)]
    ]
    labels = list(modes)
    if golden:
        handles.append(Line2D([], [], color=GREY, linewidth=0.8, linestyle=_DASHES))
        labels.append(_GOLDEN)
    legend_above(figure, handles, labels, columns)
