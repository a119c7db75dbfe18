"""All kinds of figures by name, and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from codetaste.figures.drawing.export import export_figure
from codetaste.figures.drawing.style import figure_style
from codetaste.figures.figure import FigureFile, MissingFigure
from codetaste.figures.kinds.cost import cost_plots
from codetaste.figures.kinds.directions import direction_plots
from codetaste.figures.kinds.endings import ending_plots
from codetaste.figures.kinds.funnel import funnel_plots
from codetaste.figures.kinds.guesses import guess_plots
from codetaste.figures.kinds.heatmap import heatmap_plots
from codetaste.figures.kinds.languages import language_plots
from codetaste.figures.kinds.rules import rule_plots
from codetaste.figures.kinds.scores import score_plots
from codetaste.figures.kinds.strategies import strategy_plots
from codetaste.report.render.csv import render_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from codetaste.figures.data import FigureData
    from codetaste.figures.figure import Plot
    from codetaste.figures.names import FigureFormat, FigureName
    from codetaste.report.render.paper import PaperWidth


class FigureKind(NamedTuple):
    """A kind of figures, and what results must have for it."""

    plots: Callable[[FigureData], list[Plot]]
    needs: str


KINDS: Final[Mapping[FigureName, FigureKind]] = {
    "scores": FigureKind(score_plots, "trials of CodeTaste with scores"),
    "cost": FigureKind(cost_plots, "trials of CodeTaste with scores and known costs"),
    "endings": FigureKind(ending_plots, "trials of CodeTaste"),
    "directions": FigureKind(direction_plots, "trials with additive and reductive rules"),
    "rules": FigureKind(rule_plots, "trials whose rules can be read"),
    "guesses": FigureKind(guess_plots, "trials whose rules and task descriptions can be read"),
    "heatmap": FigureKind(heatmap_plots, "trials of CodeTaste with scores"),
    "languages": FigureKind(language_plots, "trials or a benchmark of CodeTaste"),
    "funnel": FigureKind(funnel_plots, "a run that mines"),
    "strategies": FigureKind(strategy_plots, "trials of SWE-Refactor"),
}


def draw_figures(
    data: FigureData, name: FigureName, formats: Sequence[FigureFormat], width: PaperWidth
) -> Iterator[FigureFile | MissingFigure]:
    """Draw the figures of one kind in each format, each followed by its numbers."""
    kind = KINDS[name]
    plots = kind.plots(data)
    if not plots:
        yield MissingFigure(name, f"it needs {kind.needs}")
    for plot in plots:
        for format_, content in _draw(plot, formats, width):
            yield FigureFile(plot.name, plot.title, format_, content)
        yield FigureFile(plot.name, plot.title, "csv", render_csv([plot.table]).encode())


def _draw(plot: Plot, formats: Sequence[FigureFormat], width: PaperWidth) -> list[tuple[FigureFormat, bytes]]:
    """Return the drawing in each format; the style is set only meanwhile."""
    with figure_style():
        figure = plot.draw(plot.table, width)
        if engine := figure.get_layout_engine():
            engine.execute(figure)
        figure.set_layout_engine(None)  # the layout is computed once for all formats
        return [(format_, export_figure(figure, format_)) for format_ in formats]
