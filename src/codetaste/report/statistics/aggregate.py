"""The two aggregations of trials: the value that each trial contributes to a mean, and the trials left out.

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

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        return mean_interval(self.values, clusters, fractions=measure.unit == "fraction")

    def by_instance(self) -> dict[str, float]:
        """Return the mean over the attempts at each instance."""
        values: defaultdict[str, list[float]] = defaultdict(list)
        for value, record in zip(self.values, self.records, strict=True):
            values[record.instance].append(value)
        return {instance: math.fsum(each) / len(each) for instance, each in values.items()}


@dataclass(frozen=True, slots=True)
class Aggregator:
    """Computes the values of trials under one aggregation; one serves all trials of a report."""

    aggregation: Aggregation
    measured_groups: frozenset[tuple[str, str]]
    """Pairs of a measure and a group in which a scored trial has a value.

    A group is an agent's track and mode, or an instance.
    """
    scored_groups: frozenset[str]
    """Groups (as above) that have a scored trial."""

    def value(self, record: TrialRecord, measure: Measure) -> float | None:
        """Return what a trial contributes to the mean of a measure; None where it contributes nothing.

        In ``strict`` a failed trial scores 0 only where that score could have been measured: where other
        trials of its agent in this track and mode have it (or any agent's trials, if all of those failed),
        and not on an instance that was scored without it because tests or rules are missing. Otherwise PASS
        would be 0 where no tests were run. Where all trials failed, the scores that need no tests are 0.
        """
        if self.aggregation is Aggregation.PUBLISHED:
            value = measure.published_value(record)
        elif measure.is_score and record.scores.status in ZERO_SCORE_STATUSES:
            value = 0.0 if self._could_be_measured(record, measure) else None
        else:
            value = measure.value(record)
        if value is None or not measure.accepts(value):
            return None
        return min(1.0, max(0.0, value)) if measure.unit == "fraction" else value

    def sample(self, records: Iterable[TrialRecord], measure: Measure) -> Sample:
        """Return the values of one measure in some trials."""
        values = [(self.value(record, measure), record) for record in records]
        present = [(float(value), record) for value, record in values if value is not None]
        return Sample(
            tuple(value for value, _ in present),
            tuple(record for _, record in present),
            len(values) - len(present),
        )

    def _could_be_measured(self, record: TrialRecord, measure: Measure) -> bool:
        agent_group, instance = _agent_group(record), _instance_group(record)
        if instance in self.scored_groups and (measure.name, instance) not in self.measured_groups:
            return False
        if agent_group in self.scored_groups:
            return (measure.name, agent_group) in self.measured_groups
        return (measure.name, "") in self.measured_groups


def make_aggregator(
    aggregation: Aggregation, records: Sequence[TrialRecord], measures: Iterable[Measure]
) -> Aggregator:
    """Return the aggregator for ``records``, which are all records of a report."""
    measured: set[tuple[str, str]] = set()
    scored: set[str] = set()
    for record in records:
        if record.scores.status is TrialStatus.SCORED and not record.pseudo:
            scored |= {_agent_group(record), _instance_group(record)}
            for measure in measures:
                if measure.is_score and measure.value(record) is not None:
                    measured |= {
                        (measure.name, group) for group in ("", _agent_group(record), _instance_group(record))
                    }
    if all(record.scores.status in ZERO_SCORE_STATUSES for record in records if not record.pseudo):
        measured = {
            (measure.name, "") for measure in measures if measure.is_score and not measure.needs_tests
        }
    return Aggregator(aggregation, frozenset(measured), frozenset(scored))


def _agent_group(record: TrialRecord) -> str:
    return f"lane\n{record.agent}\n{record.track}\n{record.mode}"


def _instance_group(record: TrialRecord) -> str:
    return f"instance\n{record.instance}"
