"""Cost against alignment: a point with both intervals for each agent in each setting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from codetaste.site.overview.scatter.labels import Box, LabelPlace, place_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.report.statistics.intervals import Interval

_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 14, 46
_STEPS = (1.0, 2.0, 5.0)
_MAX_TICKS, _MARK_WIDTH = 6, 80
"""The most marks of the axis of costs, and the least distance of them."""


class DrawingFrame(NamedTuple):
    """The area of a drawing, in its own units, which are pixels where there is room for it."""

    name: str
    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


def _frame(name: str, width: int, height: int) -> DrawingFrame:
    return DrawingFrame(name, width, height, _LEFT, width - _RIGHT, _TOP, height - _BOTTOM)


_FRAMES = (_frame("wide", 720, 380), _frame("narrow", 340, 320))
"""A page shows the one that its window has room for, so that texts are not made smaller."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The cost and the score of a system in a setting.

    Attributes:
        name: for readers.
        label: a short sign at the point.
        series: the number of its colour.
        address: the page about it.
        cost: of a trial, in US dollars.
        score: of the measure, 0..1.
    """

    name: str
    label: str
    series: int
    address: str
    cost: Interval
    score: Interval


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the drawing, in its own units; lows and highs are the ends of the intervals."""

    of: Observation
    x: float
    y: float
    label: LabelPlace
    left: float
    right: float
    top: float
    bottom: float
    best: bool
    """Whether no other point is cheaper and better."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """The drawing: points, and the marks of both axes with their texts."""

    frame: DrawingFrame
    points: tuple[Point, ...]
    x_marks: tuple[tuple[float, str], ...]
    y_marks: tuple[tuple[float, str], ...]


def draw_scatters(observations: Sequence[Observation]) -> tuple[Scatter, ...]:
    """Return a wide and a narrow drawing of the observations that have a cost and a score; () without any."""
    known = [each for each in observations if each.cost.mean is not None and each.score.mean is not None]
    return tuple(_draw(known, frame) for frame in _FRAMES) if known else ()


def _draw(known: Sequence[Observation], frame: DrawingFrame) -> Scatter:
    most = max(_ends(each.cost)[1] for each in known) or 1.0
    step = _step(most, min(_MAX_TICKS, frame.width // _MARK_WIDTH))
    last = math.ceil(most / step) * step
    high = min(1.0, max(0.1, math.ceil(10 * max(_ends(each.score)[1] for each in known)) / 10))

    def at_x(value: float) -> float:
        return round(frame.left + (frame.right - frame.left) * min(1.0, max(0.0, value / last)), 1)

    def at_y(value: float) -> float:
        return round(frame.bottom - (frame.bottom - frame.top) * min(1.0, max(0.0, value / high)), 1)

    middles = [(at_x(each.cost.mean or 0.0), at_y(each.score.mean or 0.0)) for each in known]
    area = Box(frame.left, 0, frame.width, frame.bottom)
    labels = place_labels(middles, [each.label for each in known], area)
    points = []
    for each, at, label in zip(known, middles, labels, strict=True):
        (least, greatest), (low, top) = _ends(each.cost), _ends(each.score)
        best = not any(_is_better(other, each) for other in known)
        points.append(
            Point(
                each,
                *at,
                label,
                at_x(least),
                at_x(greatest),
                at_y(top),
                at_y(low),
                best,
            )
        )
    decimals = max(0, -math.floor(math.log10(step)))
    x_marks = tuple(
        (at_x(number * step), f"{number * step:.{decimals}f}") for number in range(round(last / step) + 1)
    )
    y_step = 0.1 if high <= 0.5 else 0.2  # noqa: PLR2004 - at most six marks
    y_marks = tuple(
        (at_y(number * y_step), f"{100 * number * y_step:.0f}")
        for number in range(int(high / y_step + 1e-9) + 1)
    )
    return Scatter(frame, tuple(points), x_marks, y_marks)


def _is_better(one: Observation, other: Observation) -> bool:
    """Whether ``one`` costs no more and scores no less than ``other``, and differs."""
    a, b = (one.cost.mean or 0.0, one.score.mean or 0.0), (other.cost.mean or 0.0, other.score.mean or 0.0)
    return a != b and a[0] <= b[0] and a[1] >= b[1]


def _ends(interval: Interval) -> tuple[float, float]:
    mean = interval.mean or 0.0
    return (
        mean if interval.low is None else interval.low,
        mean if interval.high is None else interval.high,
    )


def _step(most: float, number: int) -> float:
    """Return the distance of marks so that there are at most ``number`` after zero."""
    power = 10.0 ** math.floor(math.log10(most / number))
    return next((power * each for each in _STEPS if most / (power * each) <= number), power * 10)
