"""The two aggregations of trials, and the samples that ``view.py`` takes of them.

``strict`` is codetaste's own: a trial that failed, was refused, or whose patch does not apply scores 0 in
every score. ``published`` does what the published harness does: such trials are dropped from its means, and
undefined values become 1 or 0. Both count the trials without a value.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.evaluation.trials.records import TrialStatus
from codetaste.report.statistics.intervals import Interval, mean_interval
from codetaste.report.statistics.measures import Unit

if TYPE_CHECKING:
    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.measures import Measure

ZERO_SCORE_STATUSES = frozenset({TrialStatus.FAILED, TrialStatus.REFUSED, TrialStatus.DOES_NOT_APPLY})
"""Statuses of trials that score 0 in ``strict``."""


class Aggregation(StrEnum):
    """How trials without a score enter a mean."""

    STRICT = "strict"
    PUBLISHED = "published"


class Grouping(StrEnum):
    """The groups within which values depend on each other; attempts at one instance always do."""

    INSTANCE = "instance"
    """Each instance is a group, as in the paper."""
    REPOSITORY = "repository"


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of one measure in some trials, and the number of trials without a value."""

    values: tuple[float, ...]
    records: tuple[TrialRecord, ...]
    """The trial of each value."""
    missing: int

    def interval(self, measure: Measure, grouping: Grouping) -> Interval:
        """Return the mean and its confidence interval."""
        repository = grouping is Grouping.REPOSITORY
        clusters = [(record.repository if repository else "") or record.instance for record in self.records]
        return mean_interval(self.values, clusters, fractions=measure.unit is Unit.FRACTION)

    def by_instance(self) -> dict[str, float]:
        """Return the mean over the attempts at each instance."""
        values: defaultdict[str, list[float]] = defaultdict(list)
        for value, record in zip(self.values, self.records, strict=True):
            values[record.instance].append(value)
        return {instance: math.fsum(each) / len(each) for instance, each in values.items()}
