"""Alignment of each agent on each instance, a heat map for each track and mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from matplotlib import colormaps
from matplotlib.ticker import FuncFormatter

from codetaste.figures.drawing.labels import make_labels
from codetaste.figures.drawing.panels import note_below, omitted, panel_grid
from codetaste.figures.drawing.style import GREY, SMALL, SMALLEST
from codetaste.figures.figure import Plot
from codetaste.report.render.paper import PAGE_HEIGHT, PaperWidth
from codetaste.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData
    from codetaste.report.statistics.merge import TrackMode

_LINE: Final = 0.08
"""Inches of an instance, enough for a label of ``SMALLEST`` points."""
_MARGIN: Final = 1.5
"""Inches above and below the map: labels of agents, the scale."""
_FLAT_MARGIN: Final = 0.8
"""The same where labels of agents are in one line."""
_SCALE: Final = 0.7
"""Inches of these that the scale takes."""
_NAMES: Final = 1.7
"""Inches that the labels of instances take, and the scale."""
_CHAR: Final = 0.065
"""Inches of a character of a label, with a margin."""
_UPRIGHT_CHAR: Final = 0.1
"""Inches of a wide character of a label that stands upright."""
_PAD: Final = 1.5
"""Points between a label and the map."""
_MEASURED: Final = 5
"""So many of the labels with the most characters decide how much room all labels need."""


def heatmap_plots(data: FigureData) -> list[Plot]:
    """Return a plot for each track and mode that has scores."""
    plots = [_plot(data, mode) for mode in data.view.trials.track_modes]
    return [plot for plot in plots if plot is not None]


def _plot(data: FigureData, mode: TrackMode) -> Plot | None:
    primary = data.view.primary_measure
    values = {
        agent: data.view.sample(data.view.trials_of(agent, mode), primary).by_instance()
        for agent in data.agents
    }
    agents = [agent for agent in data.agents if values[agent]]
    instances = {instance for each in values.values() for instance in each}
    if not agents:
        return None

    def difficulty(instance: str) -> tuple[float, str]:
        known = [values[agent][instance] for agent in agents if instance in values[agent]]
        return -sum(known) / len(known), instance

    rows = [
        Row((instance, *(values[agent].get(instance) for agent in agents)))
        for instance in sorted(instances, key=difficulty)
    ]
    columns = (
        Column("instance", "Instance"),
        *(Column(primary.name, primary.title, primary.unit, heading=agent) for agent in agents),
    )
    name = f"heatmap-{mode.track or 'unknown'}-{mode.mode or 'unknown'}"
    title = f"{primary.title} of each agent on each instance, {mode.title}; a mean over attempts"
    return Plot(name, title, Table(name, title, columns, tuple(rows), (), data.aggregation), draw_heatmap)


def draw_heatmap(table: Table, width: PaperWidth) -> Figure:
    """Draw agents side by side, the best first, and instances below each other, the easiest first."""
    agents = [column.heading for column in table.columns[1:]]
    side = 0.1 if width is PaperWidth.PAGE else 0.085
    shown = agents[: int((width.inches - _NAMES) / side)]
    lines = table.rows[: int((PAGE_HEIGHT - _MARGIN) / (_LINE * 0.9))]
    nan = float("nan")
    values = [
        [nan if not isinstance(cell, float) else cell for cell in row.cells[1 : len(shown) + 1]]
        for row in lines
    ]
    step = max(_LINE * 0.9, min(0.14, 3.0 / len(lines)))
    labels = list(make_labels(shown, 22).values())
    flat = max(map(len, labels)) * len(labels) * _CHAR < width.inches - _NAMES
    margin = _FLAT_MARGIN if flat else max(_MARGIN, _SCALE + max(map(len, labels)) * _UPRIGHT_CHAR)
    figure, (axes,) = panel_grid(1, 1, width, len(lines) * step + margin)
    axes.patch.set(hatch="//////", edgecolor=GREY, facecolor="white", linewidth=0)
    image = axes.imshow(
        values, cmap=colormaps["Blues"], vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    font = min(SMALL, max(SMALLEST, step * 72 * 0.9))
    _label_rows(axes, [*make_labels([str(row.cells[0]) for row in lines], 34).values()], font)
    axes.set_xticks(range(len(shown)), labels, rotation=0 if flat else 90, fontsize=SMALL)
    axes.tick_params(length=0, pad=_PAD, top=True, labeltop=True, bottom=False, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(True)
    bar = figure.colorbar(
        image,
        ax=axes,
        location="bottom",
        shrink=0.6,
        aspect=30,
        pad=0.08 / (len(lines) * step),
        format=FuncFormatter(lambda value, _: f"{value * 100:.0f}"),
    )
    bar.set_label(f"{table.columns[1].title} (%); hatched: no trial with a score", fontsize=SMALL, labelpad=1)
    more = ", ".join(
        filter(
            None,
            (omitted(len(agents) - len(shown), "agent"), omitted(len(table.rows) - len(lines), "instance")),
        )
    )
    if more:
        note_below(figure, more)
    return figure


def _label_rows(axes: Axes, labels: Sequence[str], font: float) -> None:
    """Write labels where those of ticks would be: a hundred ticks take longer to draw than all else."""
    axes.set_yticks([])
    transform, vertical, horizontal = axes.get_yaxis_text1_transform(_PAD)
    widest = sorted(labels, key=len)[-_MEASURED:]
    for number, label in enumerate(labels):
        text = axes.text(0, number, label, transform=transform, va=vertical, ha=horizontal, fontsize=font)
        text.set_in_layout(label in widest)
