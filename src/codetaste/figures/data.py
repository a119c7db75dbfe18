"""What figures are drawn from: the results of runs under one aggregation, each number computed once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from codetaste.report.statistics.merge import TrackMode
from codetaste.report.statistics.view import aggregate_trials
from codetaste.results.rows.rule_rows import rule_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.report.statistics.aggregate import Aggregation
    from codetaste.report.statistics.intervals import Interval
    from codetaste.report.statistics.measures import Measure
    from codetaste.report.statistics.view import AggregatedTrials
    from codetaste.results.read import RunResults
    from codetaste.results.rows.rule import RuleVerdict


@dataclass(frozen=True)
class FigureData:
    """The results of runs, and how trials without a score enter their means."""

    results: RunResults
    aggregation: Aggregation
    known_rules: Sequence[RuleVerdict] | None = None
    """The verdicts on rules, if they were read before."""
    _settings: dict[tuple[str | None, str | None], str] = field(default_factory=dict, repr=False)
    _intervals: dict[tuple[str, TrackMode, str], Interval] = field(default_factory=dict, repr=False)

    @cached_property
    def view(self) -> AggregatedTrials:
        """The trials of CodeTaste, as the tables of reports see them."""
        return aggregate_trials(self.results.trials, self.aggregation)

    @cached_property
    def agents(self) -> list[str]:
        """All agents, the best first."""
        return self.view.ranked_agents()

    @cached_property
    def rules(self) -> list[RuleVerdict]:
        """Whether the trials of agents satisfy the rules of their instances. Blocking, and seconds long."""
        rows = rule_rows(self.results, counted=False)[0] if self.known_rules is None else self.known_rules
        return [row for row in rows if not row.pseudo]

    def setting(self, track: str | None, mode: str | None) -> str:
        """Return the title of a track and mode."""
        if (track, mode) not in self._settings:  # each of 100,000 rules asks for it
            self._settings[track, mode] = TrackMode(track or "", mode or "").title
        return self._settings[track, mode]

    def interval(self, agent: str, track_mode: TrackMode, measure: Measure) -> Interval:
        """Return an agent's mean of a measure in a track and mode, as in Table 4."""
        key = agent, track_mode, measure.name
        if key not in self._intervals:
            self._intervals[key] = self.view.interval(self.view.trials_of(agent, track_mode), measure)
        return self._intervals[key]
