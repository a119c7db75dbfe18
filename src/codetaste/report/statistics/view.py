"""The trials of a report under one aggregation, grouped by agent, track and mode."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.evaluation.trials.records import TrialStatus
from codetaste.report.statistics import measures
from codetaste.report.statistics.aggregate import ZERO_SCORE_STATUSES, Aggregation, Grouping, Sample
from codetaste.report.statistics.merge import TrackMode, track_mode_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.intervals import Interval
    from codetaste.report.statistics.measures import Measure
    from codetaste.report.statistics.merge import MergedTrials


@dataclass(frozen=True, slots=True)
class AggregatedTrials:
    """All trials of a report under one aggregation, or those of some groups of them."""

    trials: MergedTrials
    aggregation: Aggregation
    """How trials without a score enter a mean."""
    grouping: Grouping
    by_agent: Mapping[tuple[str, TrackMode], tuple[TrialRecord, ...]]

    measured_groups: frozenset[tuple[str, str]]
    """Pairs of a measure and a group in which a scored trial has a value.

    A group is an agent's track and mode, or an instance.
    """
    scored_groups: frozenset[str]
    """Groups (as above) that have a scored trial."""

    def trials_of(self, agent: str, track_mode: TrackMode) -> tuple[TrialRecord, ...]:
        """Return an agent's trials in a track and mode."""
        return self.by_agent.get((agent, track_mode), ())

    @property
    def listed(self) -> tuple[TrialRecord, ...]:
        """The trials of the groups, in the order of all."""
        return tuple(
            record for record in self.trials.agents if (record.agent, track_mode_of(record)) in self.by_agent
        )

    def only(self, *, agent: str | None = None, track_mode: TrackMode | None = None) -> AggregatedTrials:
        """Return the same view with the groups of one agent, or of one track and mode, alone."""
        groups = {
            key: trials
            for key, trials in self.by_agent.items()
            if agent in {None, key[0]} and track_mode in {None, key[1]}
        }
        return replace(self, by_agent=groups)

    def groups(self) -> list[tuple[str, TrackMode, tuple[TrialRecord, ...]]]:
        """Return the trials of each agent, the best first, in each track and mode where it has any."""
        return [
            (agent, track_mode, trials)
            for agent in self.ranked_agents()
            for track_mode in self.trials.track_modes
            if (trials := self.trials_of(agent, track_mode))
        ]

    def value(self, record: TrialRecord, measure: Measure) -> float | None:
        """Return what a trial contributes to the mean of a measure; None where it contributes nothing.

        In ``strict`` a failed trial scores 0 only where that score could have been measured: where other
        trials of its agent in this track and mode have it (or any agent's trials, if all of those failed),
        and not on an instance that was scored without it because tests or rules are missing. Otherwise PASS
        would be 0 where no tests were run. Where all trials failed, the scores that need no tests are 0.
        """
        if self.aggregation is Aggregation.PUBLISHED:
            value = measure.published_value(record)
            if value is None and record.pseudo:  # recorded tests of references, of which no mean is published
                value = measure.value(record)
        elif measure.is_score and record.scores.status in ZERO_SCORE_STATUSES:
            agent_group, instance = _agent_group(record), _instance_group(record)
            if instance in self.scored_groups and (measure.name, instance) not in self.measured_groups:
                return None
            group = agent_group if agent_group in self.scored_groups else ""
            value = 0.0 if (measure.name, group) in self.measured_groups else None
        else:
            value = measure.value(record)
        if value is None or not measure.accepts(value):
            return None
        return min(1.0, max(0.0, value)) if measure.unit is measures.Unit.FRACTION else value

    def sample(self, records: Iterable[TrialRecord], measure: Measure) -> Sample:
        """Return the values of a measure in some trials."""
        values = [(self.value(record, measure), record) for record in records]
        present = [(float(value), record) for value, record in values if value is not None]
        return Sample(
            tuple(value for value, _ in present),
            tuple(record for _, record in present),
            len(values) - len(present),
        )

    def interval(self, records: Iterable[TrialRecord], measure: Measure) -> Interval:
        """Return the mean of a measure over some trials, with its interval."""
        return self.sample(records, measure).interval(measure, self.grouping)

    def has_values(self, measure: Measure) -> bool:
        """Whether any trial of an agent has a value of this measure."""
        return any(self.value(record, measure) is not None for record in self.trials.agents)

    @property
    def primary_measure(self) -> Measure:
        """The measure by which agents are ranked: A, or IFR where PASS was not measured."""
        return measures.ALIGNMENT if self.has_values(measures.ALIGNMENT) else measures.IFR

    def ranked_agents(self) -> list[str]:
        """Return the agents, the best first, by the mean of their tracks' and modes' primary means."""
        primary = self.primary_measure

        def mean_of_means(agent: str) -> float:
            samples = [
                self.sample(self.trials_of(agent, track_mode), primary).values
                for track_mode in self.trials.track_modes
            ]
            means = [sum(values) / len(values) for values in samples if values]
            return sum(means) / len(means) if means else -1.0

        return sorted(self.trials.agent_names, key=lambda agent: (-mean_of_means(agent), agent))


def aggregate_trials(
    trials: MergedTrials, aggregation: Aggregation, grouping: Grouping = Grouping.INSTANCE
) -> AggregatedTrials:
    """Aggregate trials in one way."""
    by_agent: defaultdict[tuple[str, TrackMode], list[TrialRecord]] = defaultdict(list)
    measured: set[tuple[str, str]] = set()
    scored: set[str] = set()
    scores = (*measures.RATES, *measures.PRECISION)
    for record in trials.agents:
        by_agent[record.agent, track_mode_of(record)].append(record)
        if record.scores.status is TrialStatus.SCORED:
            groups = {_agent_group(record), _instance_group(record)}
            scored |= groups
            for measure in scores:
                if measure.value(record) is not None:
                    measured |= {(measure.name, group) for group in ("", *groups)}
    if all(record.scores.status in ZERO_SCORE_STATUSES for record in trials.agents):
        measured = {(measure.name, "") for measure in scores if not measure.needs_tests}
    return AggregatedTrials(
        trials,
        aggregation,
        grouping,
        {key: tuple(records) for key, records in by_agent.items()},
        frozenset(measured),
        frozenset(scored),
    )


def _agent_group(record: TrialRecord) -> str:
    return f"track_mode\n{record.agent}\n{record.track}\n{record.mode}"


def _instance_group(record: TrialRecord) -> str:
    return f"instance\n{record.instance}"
