"""A mean with the ends of its interval, as it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from codetaste.report.statistics.intervals import Interval

if TYPE_CHECKING:
    from codetaste.report.table import Cell


class Span(NamedTuple):
    """A mean and the ends of its interval; without an interval these equal the mean."""

    mean: float
    low: float
    high: float


def span_of(cell: Cell) -> Span | None:
    """Return what is drawn of a cell; None if it has no mean."""
    if not isinstance(cell, Interval) or cell.mean is None:
        return None
    return Span(
        cell.mean, cell.mean if cell.low is None else cell.low, cell.mean if cell.high is None else cell.high
    )
