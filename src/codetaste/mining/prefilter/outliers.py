"""Bounds beyond which a change is an outlier: 0.5·p₁₀ ≤ changes ≤ 2·p₉₀ (CodeTaste A.1).

A percentile is interpolated linearly between the two nearest ranks, as NumPy and pandas do: of the sorted
values x₀ … xₙ₋₁ the q-th is at position (n − 1)·q/100. It is computed exactly, as a fraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.mining.prefilter.diff import CommitDiff

_LOW_PERCENTILE, _HIGH_PERCENTILE = 10, 90
_LOW_FACTOR, _HIGH_FACTOR = Fraction(1, 2), Fraction(2)


@dataclass(frozen=True, slots=True)
class Range:
    """The values from ``low`` to ``high``, both included."""

    low: Fraction
    high: Fraction

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        """Return the range as it is shown."""
        return f"{_shown(self.low)} to {_shown(self.high)}"


@dataclass(frozen=True, slots=True)
class OutlierBounds:
    """The bounds of one population.

    Attributes:
        lines: of added and removed lines.
        files: of created, deleted, modified and moved files.
    """

    lines: Range
    files: Range


def percentile(values: Sequence[int], percent: int) -> Fraction:
    """Return the percentile of at least one value, interpolated linearly.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values have no percentile")
    ordered = sorted(values)
    position = Fraction((len(ordered) - 1) * percent, 100)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def outlier_bounds(population: Iterable[CommitDiff]) -> OutlierBounds | None:
    """Return the bounds of a population, None if it is empty.

    Both are taken over the same commits, those that reach this filter: they are one condition of the paper.
    """
    changes = [(diff.changed_lines, diff.changed_files) for diff in population]
    if not changes:
        return None
    return OutlierBounds(_range([lines for lines, _ in changes]), _range([files for _, files in changes]))


def _range(values: list[int]) -> Range:
    low, high = (percentile(values, percent) for percent in (_LOW_PERCENTILE, _HIGH_PERCENTILE))
    return Range(_LOW_FACTOR * low, _HIGH_FACTOR * high)


def _shown(value: Fraction) -> str:
    return f"{float(value):,.2f}".rstrip("0").rstrip(".")
