"""Panels of a figure: their grid, their height on a page, axes in percent, legends and notes."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Final, Literal

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from codetaste.core.text import plural
from codetaste.figures.drawing.style import GREY, SMALL
from codetaste.report.render.paper import PAGE_HEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from codetaste.report.render.paper import PaperWidth

LINE: Final = 0.125
"""Inches that a line of a legend or a note takes."""
LOG_FROM: Final = 8
"""A ratio of the largest to the smallest value from which a logarithmic axis is easier to read."""
_CHAR_SHARE: Final = 0.045
"""The share of the width of a narrow panel that a character of a label takes."""
_LOG_FACTORS: Final = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
"""Which multiples of powers of ten have labels on a logarithmic axis: the most that fit."""


def panel_grid(
    panels: int,
    columns: int,
    width: PaperWidth,
    height: float,
    share: Literal["", "x", "y"] = "",
) -> tuple[Figure, list[Axes]]:
    """Return a figure of some panels with ``height`` inches in all; they may share an axis."""
    columns = max(1, min(columns, panels))
    rows = -(-panels // columns)
    engine = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.02, hspace=0.02)
    figure = Figure(figsize=(width.inches, min(height, PAGE_HEIGHT)), layout=engine)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=share == "x", sharey=share == "y")
    axes = [each for row in grid for each in row]
    for each in axes[panels:]:
        each.remove()
    return figure, axes[:panels]


def percent_axis(axes: Axes, name: str, *, top: float = 1.0) -> None:
    """Make the axis ``name`` ("x" or "y") one of fractions in 0..1, shown as percents.

    It ends at the first tick that is at least ``top``, and at most at 100 %.
    """
    axis = axes.xaxis if name == "x" else axes.yaxis
    ticks = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(0, min(1.0, top) or 1.0)
    margin = 0.03 * ticks[-1]
    (axes.set_xlim if name == "x" else axes.set_ylim)(-margin, ticks[-1] + margin)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:.4g}"))
    axes.grid(visible=True, axis="x" if name == "x" else "y")


def count_axis(axes: Axes, name: str, highest: float) -> None:
    """Make the axis ``name`` ("x" or "y") one of counts in 0..``highest``, with room for their numbers."""
    (axes.set_xlim if name == "x" else axes.set_ylim)(0, (highest or 1) * 1.15)
    (axes.xaxis if name == "x" else axes.yaxis).set_major_locator(MaxNLocator(5, integer=True))


def title_axes(axes: Axes, x: str, y: str) -> None:
    """Write the titles of both axes of a panel; that of the y axis only in the first column."""
    axes.set_xlabel(x, labelpad=1.5)
    if axes.get_subplotspec().is_first_col():  # type: ignore[union-attr]
        axes.set_ylabel(y, labelpad=1.5)


def money_axis(axes: Axes, values: Sequence[float], ends: Sequence[float] = ()) -> None:
    """Make the x axis one of US dollars; logarithmic if the values differ much.

    The axis shows the ``ends`` of intervals too, a logarithmic one down to a tenth of the values.
    """
    low, high = min(values, default=0), max(values, default=0)
    if low > 0 and high / low > LOG_FROM:
        low, high = max(low / 10, min((low, *ends))) / 1.2, max((high, *ends)) * 1.2
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(FixedLocator(_log_ticks(low, high)))
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    else:
        axes.set_xlim(0, max((high, *ends)) * 1.05 or 1.0)
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(_dollars))
    axes.grid(visible=True, axis="x")


def _log_ticks(low: float, high: float) -> list[float]:
    """Return the values of a logarithmic axis whose labels do not touch below a narrow panel."""
    powers = [10.0**power for power in range(floor(log10(low)), ceil(log10(high)) + 1)]
    ticks: list[float] = []
    for factors in _LOG_FACTORS:
        ticks = [power * factor for power in powers for factor in factors if low <= power * factor <= high]
        room = max(len(_dollars(tick)) for tick in ticks) * _CHAR_SHARE * log10(high / low)
        if all(log10(right / left) > room for left, right in pairwise(ticks)):
            return ticks
    return ticks[:: ceil(room)]


def _dollars(value: float, _: float = 0) -> str:
    return f"${value:,.10g}"


def legend_above(figure: Figure, handles: Sequence[Artist], labels: Sequence[str], columns: int) -> None:
    """Put a legend above all panels."""
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=max(1, min(columns, len(labels))),
        columnspacing=1.2,
        handletextpad=0.5,
    )


def key_below(figure: Figure, labels: Iterable[str], columns: int) -> None:
    """Put a key of numbers and what they stand for below all panels."""
    texts = [f"{number}  {label}" for number, label in enumerate(labels, 1)]
    figure.legend(
        [Line2D([], [], linestyle="") for _ in texts],
        texts,
        loc="outside lower center",
        ncols=columns,
        handlelength=0,
        handletextpad=0,
        columnspacing=1.5,
        labelspacing=0.25,
    )


def note_below(figure: Figure, text: str) -> None:
    """Put a line below all panels."""
    figure.supxlabel(text, fontsize=SMALL, color=GREY)


def omitted(number: int, noun: str) -> str:
    """Say how many are not drawn."""
    return f"and {plural(number, f'other {noun}')}: in the CSV file" if number > 0 else ""
