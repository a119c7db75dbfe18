"""The trials of a report under one aggregation, grouped by agent, track and mode."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.report.statistics import measures
from codetaste.report.statistics.aggregate import Aggregation, Aggregator, Grouping, Sample, make_aggregator
from codetaste.report.statistics.merge import TrackMode, track_mode_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.intervals import Interval
    from codetaste.report.statistics.measures import Measure
    from codetaste.report.statistics.merge import MergedTrials


@dataclass(frozen=True, slots=True)
class AggregatedTrials:
    """All trials of a report under one aggregation."""

    trials: MergedTrials
    aggregator: Aggregator
    grouping: Grouping
    by_agent: Mapping[tuple[str, TrackMode], tuple[TrialRecord, ...]]

    @property
    def aggregation(self) -> Aggregation:
        """How trials without a score enter a mean."""
        return self.aggregator.aggregation

    def trials_of(self, agent: str, lane: TrackMode) -> tuple[TrialRecord, ...]:
        """Return an agent's trials in a track and mode."""
        return self.by_agent.get((agent, lane), ())

    def groups(self) -> list[tuple[str, TrackMode, tuple[TrialRecord, ...]]]:
        """Return the trials of each agent, the best first, in each track and mode where it has any."""
        return [
            (agent, lane, trials)
            for agent in self.ranked_agents()
            for lane in self.trials.track_modes
            if (trials := self.trials_of(agent, lane))
        ]

    def sample(self, records: Iterable[TrialRecord], measure: Measure) -> Sample:
        """Return the values of a measure in some trials."""
        return self.aggregator.sample(records, measure)

    def interval(self, records: Iterable[TrialRecord], measure: Measure) -> Interval:
        """Return the mean of a measure over some trials, with its interval."""
        return self.sample(records, measure).interval(measure, self.grouping)

    def has_values(self, measure: Measure) -> bool:
        """Whether any trial of an agent has a value of this measure."""
        return any(self.aggregator.value(record, measure) is not None for record in self.trials.agents)

    @property
    def primary_measure(self) -> Measure:
        """The measure by which agents are ranked: A, or IFR where PASS was not measured."""
        return measures.ALIGNMENT if self.has_values(measures.ALIGNMENT) else measures.IFR

    def ranked_agents(self) -> list[str]:
        """Return the agents, the best first, by the mean of their tracks' and modes' primary means."""
        primary = self.primary_measure

        def mean_of_means(agent: str) -> float:
            samples = [
                self.sample(self.trials_of(agent, lane), primary).values for lane in self.trials.track_modes
            ]
            means = [sum(values) / len(values) for values in samples if values]
            return sum(means) / len(means) if means else -1.0

        return sorted(self.trials.agent_names, key=lambda agent: (-mean_of_means(agent), agent))


def aggregate_trials(
    trials: MergedTrials, aggregation: Aggregation, grouping: Grouping = Grouping.INSTANCE
) -> AggregatedTrials:
    """Aggregate trials in one way."""
    by_agent: defaultdict[tuple[str, TrackMode], list[TrialRecord]] = defaultdict(list)
    for record in trials.agents:
        by_agent[record.agent, track_mode_of(record)].append(record)
    return AggregatedTrials(
        trials,
        make_aggregator(aggregation, trials.agents, (*measures.RATES, *measures.PRECISION)),
        grouping,
        {key: tuple(records) for key, records in by_agent.items()},
    )
