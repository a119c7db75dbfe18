"""From trials to values that a mean is made of: the two aggregations, and what each of them left out.

``strict`` is ours: a trial that failed, was refused, or whose patch does not apply scores 0 in all that is a
score. ``published`` is what the published harness does: such trials vanish from its means, and what is
undefined becomes 1 or 0. What was not measured is counted in both.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.evaluation.records import TrialStatus
from codetaste.report.statistics import Interval, mean_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.evaluation.records import TrialRecord
    from codetaste.report.measures import Measure

WORTHLESS = frozenset({TrialStatus.FAILED, TrialStatus.REFUSED, TrialStatus.DOES_NOT_APPLY})
"""What became of trials that score 0 in ``strict``."""


class Aggregation(StrEnum):
    """How trials without a score enter a mean."""

    STRICT = "strict"
    PUBLISHED = "published"


class Grouping(StrEnum):
    """By what values depend on each other. Attempts at one instance always do."""

    INSTANCE = "instance"
    """As the paper counts: each instance for itself."""
    REPOSITORY = "repository"


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of one measure in some trials, and how many of these have none."""

    values: tuple[float, ...]
    records: tuple[TrialRecord, ...]
    """The trial of each value."""
    missing: int

    def interval(self, measure: Measure, grouping: Grouping) -> Interval:
        """Return the mean with its interval."""
        repository = grouping is Grouping.REPOSITORY
        clusters = [(record.repository if repository else "") or record.instance for record in self.records]
        return mean_interval(self.values, clusters, fractions=measure.unit == "fraction")

    def by_instance(self) -> dict[str, float]:
        """Return the mean over the attempts at each instance."""
        values: defaultdict[str, list[float]] = defaultdict(list)
        for value, record in zip(self.values, self.records, strict=True):
            values[record.instance].append(value)
        return {instance: math.fsum(each) / len(each) for instance, each in values.items()}


@dataclass(frozen=True, slots=True)
class Aggregator:
    """One way to make values of trials; made once for all trials of a report (``aggregator``)."""

    aggregation: Aggregation
    measured: frozenset[tuple[str, str]]
    """Measure and lane or instance (with a sign of which) in which some scored trial has a value."""
    scored: frozenset[str]
    """Lanes and instances that have a scored trial."""

    def value(self, record: TrialRecord, measure: Measure) -> float | None:
        """Return what a trial contributes to the mean of a measure; None is nothing.

        In ``strict`` a failed trial scores 0 only where that score could have been measured: where trials of
        its agent in this lane have it (or anybody's, if all of those failed), and not on an instance that was
        scored without it, for want of tests or rules. Else PASS would be 0 where nobody ran tests. Where all
        trials failed it is 0 in what rules alone can tell.
        """
        if self.aggregation is Aggregation.PUBLISHED:
            value = measure.published(record)
        elif measure.score and record.status in WORTHLESS:
            value = 0.0 if self._could_be_measured(record, measure) else None
        else:
            value = measure.of(record)
        if value is None or not measure.takes(value):
            return None
        return min(1.0, max(0.0, value)) if measure.unit == "fraction" else value

    def sample(self, records: Iterable[TrialRecord], measure: Measure) -> Sample:
        """Return the values of one measure in some trials."""
        values = [(self.value(record, measure), record) for record in records]
        kept = [(float(value), record) for value, record in values if value is not None]
        return Sample(
            tuple(value for value, _ in kept),
            tuple(record for _, record in kept),
            len(values) - len(kept),
        )

    def _could_be_measured(self, record: TrialRecord, measure: Measure) -> bool:
        lane, instance = _lane(record), _instance(record)
        if instance in self.scored and (measure.name, instance) not in self.measured:
            return False
        if lane in self.scored:
            return (measure.name, lane) in self.measured
        return (measure.name, "") in self.measured


def aggregator(
    aggregation: Aggregation, records: Sequence[TrialRecord], measures: Iterable[Measure]
) -> Aggregator:
    """Return the way to make values of ``records``, all those of a report."""
    measured: set[tuple[str, str]] = set()
    scored: set[str] = set()
    for record in records:
        if record.status is TrialStatus.SCORED and not record.pseudo:
            scored |= {_lane(record), _instance(record)}
            for measure in measures:
                if measure.score and measure.of(record) is not None:
                    measured |= {(measure.name, place) for place in ("", _lane(record), _instance(record))}
    if all(record.status in WORTHLESS for record in records if not record.pseudo):
        measured = {(measure.name, "") for measure in measures if measure.score and not measure.tested}
    return Aggregator(aggregation, frozenset(measured), frozenset(scored))


def _lane(record: TrialRecord) -> str:
    return f"lane\n{record.agent}\n{record.track}\n{record.mode}"


def _instance(record: TrialRecord) -> str:
    return f"instance\n{record.instance}"


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of trials."""

    trials: int
    by_status: Counter[TrialStatus]
    dropped: int
    """In no mean of the published harness."""


def count(records: Sequence[TrialRecord]) -> Counts:
    """Count what became of trials."""
    return Counts(
        len(records),
        Counter(record.status for record in records),
        sum(1 for record in records if record.published is None),
    )
