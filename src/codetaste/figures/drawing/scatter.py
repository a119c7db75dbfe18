"""Scatter plots of agents: a panel for each track and mode, intervals both ways, a key of numbered agents."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any, Final

from codetaste.figures.drawing.labels import make_labels
from codetaste.figures.drawing.panels import LINE, key_below, panel_grid
from codetaste.figures.drawing.style import GREY, SERIES, SMALL
from codetaste.report.render.paper import PaperWidth

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from codetaste.figures.drawing.span import Span

MAX_POINTS: Final = 40
"""Agents in a panel; more cannot be told apart."""
_PANEL: Final = 1.7
"""Inches of the height of a panel, of a large one the double."""
_CROWD: Final = 15
"""With more agents panels are large."""
_MARGIN: Final = 0.4
_NUMBER: Final = (0.13, 0.09)
"""Inches that a number takes: two numbers with these distances can both be read."""
_MARKER: Final = (0.08, 0.06)
"""Inches between the centres of a number and of a marker that it leaves free."""
_SIDES: Final = tuple((x * 0.085, y * 0.065) for y in (1, -1) for x in (1, -1))
"""Where a number is beside its point, in inches."""
_FARTHER: Final = tuple(
    (0.085 * ring * cos(turn * pi / 8), 0.085 * ring * sin(turn * pi / 8))
    for ring in range(2, 10)
    for turn in range(16)
)
"""Where it is if there is no place beside its point; then a line leads to it."""
_LEADER: Final = {"arrowstyle": "-", "color": GREY, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 0}


@dataclass(frozen=True, slots=True)
class AgentPoint:
    """An agent in a panel; ``marked`` points are drawn filled."""

    agent: str
    x: Span
    y: Span
    marked: bool = False


def scatter_grid(panels: Mapping[str, Sequence[AgentPoint]], width: PaperWidth) -> tuple[Figure, list[Axes]]:
    """Draw the points of each panel; the agents are numbered in the order of their first points."""
    numbers = _numbers(panels)
    page, large = width is PaperWidth.PAGE, len(numbers) > _CROWD
    most = (2 if large else 4) if page else (1 if large else 2)
    rows = -(-len(panels) // most)
    key_columns = 4 if page else 2
    height = rows * _PANEL * (1.5 if large else 1) + -(-len(numbers) // key_columns) * LINE + _MARGIN
    figure, axes = panel_grid(len(panels), -(-len(panels) // rows), width, height)
    for each, (title, points) in zip(axes, panels.items(), strict=True):
        each.set_title(title, pad=3)
        _draw(each, points)
    key_below(figure, make_labels(numbers, 24 if page else 22).values(), key_columns)
    return figure, axes


def number_points(figure: Figure, axes: Sequence[Axes], panels: Mapping[str, Sequence[AgentPoint]]) -> None:
    """Write near each point the number of its agent, inside of the panel: marked ones first.

    To be called when the limits of the axes are set.
    """
    numbers = _numbers(panels)
    figure.draw_without_rendering()
    for each, points in zip(axes, panels.values(), strict=True):
        box = each.get_window_extent().padded(-_NUMBER[1] / 2 * figure.dpi)
        means = [(point.x.mean, point.y.mean) for point in points]
        markers = [(each.transData.transform(mean) / figure.dpi).tolist() for mean in means]
        placed: list[tuple[float, float]] = []
        for point, (x, y) in sorted(zip(points, markers, strict=True), key=lambda pair: not pair[0].marked):
            inside = [
                (right, up)
                for right, up in (*_SIDES, *_FARTHER)
                if box.contains((x + right) * figure.dpi, (y + up) * figure.dpi)
            ]
            right, up = next(
                (
                    side
                    for side in inside
                    if _is_free(x + side[0], y + side[1], placed, _NUMBER)
                    and _is_free(x + side[0], y + side[1], markers, _MARKER)
                ),
                inside[0],
            )
            placed.append((x + right, y + up))
            text = each.annotate(
                str(numbers[point.agent]),
                (point.x.mean, point.y.mean),
                (right * 72, up * 72),
                textcoords="offset points",
                fontsize=SMALL,
                ha="center",
                va="center",
                arrowprops=None if (right, up) in _SIDES else _LEADER,
            )
            text.set_in_layout(False)


def _is_free(x: float, y: float, taken: Iterable[Sequence[float]], room: tuple[float, float]) -> bool:
    return not any(abs(x - at[0]) < room[0] and abs(y - at[1]) < room[1] for at in taken)


def _numbers(panels: Mapping[str, Sequence[AgentPoint]]) -> dict[str, int]:
    agents = dict.fromkeys(point.agent for points in panels.values() for point in points)
    return {agent: number for number, agent in enumerate(agents, 1)}


def _draw(axes: Axes, points: Sequence[AgentPoint]) -> None:
    """Draw points with their intervals: those that are marked filled, the others as circles."""
    for marked in (False, True):
        own = [each for each in points if each.marked is marked]
        colour = SERIES[0].colour if marked else GREY
        xs, ys = [each.x for each in own], [each.y for each in own]
        axes.hlines([y.mean for y in ys], [x.low for x in xs], [x.high for x in xs], colour, linewidth=0.5)
        axes.vlines([x.mean for x in xs], [y.low for y in ys], [y.high for y in ys], colour, linewidth=0.5)
        look = marked_look(marked=marked)
        axes.plot([x.mean for x in xs], [y.mean for y in ys], linestyle="", **look)


def marked_look(*, marked: bool) -> dict[str, Any]:
    """Return the look of a marker."""
    colour = SERIES[0].colour if marked else GREY
    return {
        "marker": "D" if marked else "o",
        "color": colour,
        "markerfacecolor": colour if marked else "white",
        "markeredgewidth": 0.7,
        "markersize": 3.2,
    }
