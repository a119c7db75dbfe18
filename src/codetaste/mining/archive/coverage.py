"""How much of a time the read hours cover: which are missing, nearly empty, trimmed or torn."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.mining.archive.hour import hour_name, hours_between
from codetaste.mining.archive.known_holes import FIRST_TRIMMED_HOUR, known_hole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from codetaste.mining.archive.hour_summary import HourSummary

_FEW_EVENTS = 100
_NEARLY_EMPTY = 0.1
"""An hour with a smaller share of the median of its month, or with few lines at all, is nearly empty."""


class HourState(StrEnum):
    """What an hour gives; the first that applies, in this order."""

    MISSING = "missing"
    """There is no file of it."""
    TORN = "torn"
    """Its file could be read in part or not at all."""
    NEARLY_EMPTY = "nearly empty"
    """It has far fewer lines than the other hours of its month."""
    TRIMMED = "trimmed"
    """Its events lack titles, texts and sizes."""
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class HourCoverage:
    """One hour; ``note`` is what is known of the archive at that time, "" if nothing is."""

    hour: datetime
    state: HourState
    lines: int
    merged: int
    note: str


@dataclass(frozen=True, slots=True)
class CoverageSpan:
    """Consecutive hours of one state and one note, ``first`` to ``last`` included."""

    first: datetime
    last: datetime
    state: HourState
    hours: int
    lines: int
    merged: int
    note: str

    def describe(self) -> str:
        """Return one line: the hours, their state, what was found in them and what is known of them."""
        names = hour_name(self.first)
        if self.first != self.last:
            names += f" to {hour_name(self.last)}"
        found = f"{self.lines:,} events, {self.merged:,} merged pull requests"
        note = f"; {self.note}" if self.note and self.state != HourState.COMPLETE else ""
        return (
            f"{names}: {self.state} ({self.hours:,} {'hours' if self.hours > 1 else 'hour'}, {found}){note}"
        )


@dataclass(frozen=True, slots=True)
class Coverage:
    """The hours of a time; ``unnamed`` files have no hour in their name and are counted nowhere else."""

    hours: tuple[HourCoverage, ...]
    unnamed: int = 0

    def count(self, state: HourState) -> int:
        """Return how many hours are in ``state``."""
        return sum(hour.state == state for hour in self.hours)

    def spans(self) -> list[CoverageSpan]:
        """Return the hours, joined where consecutive ones have the same state and note."""
        spans: list[CoverageSpan] = []
        for hour in self.hours:
            last = spans[-1] if spans else None
            if last and (last.state, last.note) == (hour.state, hour.note):
                spans[-1] = CoverageSpan(
                    last.first,
                    hour.hour,
                    hour.state,
                    last.hours + 1,
                    last.lines + hour.lines,
                    last.merged + hour.merged,
                    hour.note,
                )
            else:
                spans.append(
                    CoverageSpan(hour.hour, hour.hour, hour.state, 1, hour.lines, hour.merged, hour.note)
                )
        return spans


def coverage_of(
    summaries: Iterable[HourSummary], first: datetime | None = None, last: datetime | None = None
) -> Coverage:
    """Return the coverage of the hours from ``first`` to ``last``, by default of those that were read.

    Several files of one hour count together, and are as torn as one of them is.
    """
    by_hour: dict[datetime, list[HourSummary]] = defaultdict(list)
    unnamed = 0
    for summary in summaries:
        if summary.hour is None:
            unnamed += 1
        else:
            by_hour[summary.hour].append(summary)
    lines = {hour: sum(each.lines for each in found) for hour, found in by_hour.items()}
    medians = _medians_by_month(lines)
    first, last = first or min(by_hour, default=None), last or max(by_hour, default=None)
    hours = []
    for hour in hours_between(first, last) if first and last else ():
        few = max(_FEW_EVENTS, _NEARLY_EMPTY * medians.get((hour.year, hour.month), 0))
        found = by_hour.get(hour, [])
        state = _state(hour, found, nearly_empty=lines.get(hour, 0) < few)
        merged = sum(each.merged for each in found)
        hours.append(HourCoverage(hour, state, lines.get(hour, 0), merged, known_hole(hour)))
    return Coverage(tuple(hours), unnamed)


def _medians_by_month(lines: dict[datetime, int]) -> dict[tuple[int, int], float]:
    months: dict[tuple[int, int], list[int]] = defaultdict(list)
    for hour, count in lines.items():
        months[hour.year, hour.month].append(count)
    return {month: statistics.median(counts) for month, counts in months.items()}


def _state(hour: datetime, found: Sequence[HourSummary], *, nearly_empty: bool) -> HourState:
    if not found:
        return HourState.MISSING
    if any(summary.torn for summary in found):
        return HourState.TORN
    if nearly_empty:
        return HourState.NEARLY_EMPTY
    if hour >= FIRST_TRIMMED_HOUR or any(summary.trimmed for summary in found):
        return HourState.TRIMMED
    return HourState.COMPLETE
