"""Horizontal bars: one for each name, whole or in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matplotlib.patches import Patch

from codetaste.figures.drawing.labels import make_labels
from codetaste.figures.drawing.panels import (
    LINE,
    legend_above,
    note_below,
    omitted,
    panel_grid,
    percent_axis,
)
from codetaste.figures.drawing.style import SMALL
from codetaste.report.render.paper import PAGE_HEIGHT, PaperWidth

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from codetaste.figures.drawing.style import Series

STEP: Final = 0.17
"""Inches from one bar to the next."""
MARGIN: Final = 0.45
THICKNESS: Final = 0.72
EDGE: Final[Mapping[str, Any]] = {"edgecolor": "black", "linewidth": 0.4}
"""The outline of a bar."""


def stacked_bars(
    bars: Mapping[str, Sequence[float]], parts: Mapping[str, Series], width: PaperWidth
) -> Figure:
    """Draw the parts of each bar as shares of its sum, which is written at its end."""
    columns = 5 if width is PaperWidth.PAGE else 3
    above = -(-len(parts) // columns) * LINE
    names = list(bars)[: int((PAGE_HEIGHT - MARGIN - above) / STEP)]
    figure, (axes,) = panel_grid(1, 1, width, len(names) * STEP + MARGIN + above)
    sums = [sum(bars[name]) for name in names]
    left = [0.0] * len(names)
    for place, look in enumerate(parts.values()):
        shares = [
            bars[name][place] / total if total else 0.0 for name, total in zip(names, sums, strict=True)
        ]
        drawn = axes.barh(range(len(names)), shares, THICKNESS, left, color=look.colour, **EDGE)
        for patch, share in zip(drawn, shares, strict=True):
            patch.set_visible(share > 0)
            patch.set_hatch(look.hatch)
        left = [start + share for start, share in zip(left, shares, strict=True)]
    for number, total in enumerate(sums):
        text_at_end(axes, number, f"{total:,.0f}")
    percent_axis(axes, "x")
    axes.set_xlim(0, 1.0)
    axes.set_xlabel("Trials (%), and their number", labelpad=1.5)
    name_rows(axes, names)
    legend_above(figure, bar_handles(parts.values()), list(parts), columns)
    if more := omitted(len(bars) - len(names), "agent"):
        note_below(figure, more)
    return figure


def bar_handles(looks: Iterable[Series]) -> list[Patch]:
    """Return what a legend shows of bars with these looks."""
    return [Patch(facecolor=look.colour, hatch=look.hatch, **EDGE) for look in looks]


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label the rows of a chart, the first one on top."""
    labels = make_labels(names)
    axes.set_yticks(range(len(names)), [labels[name] for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def text_at_end(axes: Axes, number: int, text: str) -> None:
    """Write beside the row ``number``, to the right of the chart."""
    axes.annotate(
        text,
        (1.0, number),
        (3, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=SMALL,
        annotation_clip=False,
    )
