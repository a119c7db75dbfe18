"""How much guessing is needed: additive rules with names that the task does not give (CodeTaste §4.4)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from codetaste.figures.drawing.bars import EDGE, bar_handles
from codetaste.figures.drawing.panels import legend_above, panel_grid, percent_axis
from codetaste.figures.drawing.span import span_of
from codetaste.figures.drawing.style import SERIES, SMALL
from codetaste.figures.figure import Plot
from codetaste.report.statistics.intervals import mean_interval
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table, format_cell, interval_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData
    from codetaste.report.render.paper import PaperWidth

_HEIGHT: Final = 1.9
_THICKNESS: Final = 0.38


def guess_plots(data: FigureData) -> list[Plot]:
    """Return the plot, if rules and descriptions are known."""
    values: defaultdict[tuple[str, bool], list[tuple[float, str]]] = defaultdict(list)
    rules: defaultdict[tuple[str, bool], set[tuple[str, str]]] = defaultdict(set)
    for row in data.rules:
        if row.names_are_guessed is not None and row.satisfied is not None:
            key = data.setting(row.track, row.mode), row.names_are_guessed
            values[key].append((float(row.satisfied), row.instance))
            rules[key].add((row.instance, row.rule))
    rows = []
    for setting in (each.title for each in data.view.trials.track_modes):
        guessed, other = (rules[setting, each] for each in (True, False))
        if guessed or other:
            share = len(guessed) / (len(guessed) + len(other))
            rates = [
                mean_interval(*(list(each) for each in zip(*values[setting, kind], strict=True)))
                if values[setting, kind]
                else None
                for kind in (True, False)
            ]
            rows.append(Row((setting, *rates, share, len(guessed) + len(other))))
    if not rows:
        return []
    columns = (
        Column("mode", "Mode"),
        Column("guessed", "Names must be guessed", Unit.FRACTION, heading="satisfied"),
        Column("other", "Names are known", Unit.FRACTION, heading="satisfied"),
        Column("guessed_share", "with names to guess", Unit.FRACTION, heading="additive rules"),
        Column("rules", "all", Unit.COUNT, heading="additive rules"),
    )
    title = "Satisfied additive rules whose names the task does not give, and others, by track and mode"
    notes = interval_legend(tuple(Row(row.cells[1:3]) for row in rows))
    return [Plot("guesses", title, Table("guesses", title, columns, tuple(rows), notes), draw_guesses)]


def draw_guesses(table: Table, width: PaperWidth) -> Figure:
    """Draw two bars for each track and mode, with their intervals."""
    figure, (axes,) = panel_grid(1, 1, width, _HEIGHT)
    highest = 0.0
    for place, look in ((1, SERIES[1]), (2, SERIES[0])):
        shift = (place - 1.5) * _THICKNESS
        found = [(x + shift, span) for x, row in enumerate(table.rows) if (span := span_of(row.cells[place]))]
        xs, spans = [x for x, _ in found], [span for _, span in found]
        axes.bar(
            xs,
            [span.mean for span in spans],
            _THICKNESS,
            color=look.colour,
            hatch=look.hatch,
            **EDGE,
        )
        axes.vlines(xs, [span.low for span in spans], [span.high for span in spans], "black", linewidth=0.8)
        highest = max([highest, *(span.high for span in spans)])
    percent_axis(axes, "y", top=highest)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("Satisfied rules (%)", labelpad=1.5)
    shares = [format_cell(row.cells[3], table.columns[3])[0] for row in table.rows]
    settings = [str(row.cells[0]).replace(" ", "\n") for row in table.rows]
    labels = [f"{setting}\n({share} %)" for setting, share in zip(settings, shares, strict=True)]
    axes.set_xticks(range(len(table.rows)), labels, fontsize=SMALL)
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("(%): additive rules with names to guess", fontsize=SMALL, labelpad=2)
    axes.set_xlim(-0.6, len(table.rows) - 0.4)
    handles = bar_handles((SERIES[1], SERIES[0]))
    legend_above(figure, handles, [column.title for column in table.columns[1:3]], 2)
    return figure
