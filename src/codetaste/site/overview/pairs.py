"""Two systems side by side: where both are right, only one, or none, by the size of the difference.

A system is an agent in a track and mode. The test of a pair is the comparison's, as ``codetaste report``
prints it: of two agents in one setting, or of two settings of one agent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from codetaste.report.statistics import measures
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.intervals import Interval, mean_interval
from codetaste.results.outcome import OutcomeFacet
from codetaste.site.html.address import file_name
from codetaste.site.site import setting_name, trial_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.comparison import PairwiseTest
    from codetaste.report.statistics.measures import Measure
    from codetaste.report.statistics.merge import TrackMode
    from codetaste.site.site import Site

MEASURES = (measures.ALIGNMENT, measures.PASS, measures.IFR, measures.PREC)
_RIGHT = frozenset({OutcomeFacet.SUCCESS, OutcomeFacet.PARTIAL_SUCCESS})
_UNKNOWN = frozenset({OutcomeFacet.NOT_SCORED, OutcomeFacet.NOT_ENDED, OutcomeFacet.UNREADABLE})


class PairVerdict(StrEnum):
    """On which side a system is right."""

    BOTH = "both right"
    FIRST = "only the first"
    SECOND = "only the second"
    NONE = "both wrong"


class System(NamedTuple):
    """An agent in a track and mode."""

    agent: str
    setting: TrackMode

    @property
    def title(self) -> str:
        """For readers."""
        return f"{self.agent}, {self.setting.title}"

    @property
    def key(self) -> str:
        """Its part of an address."""
        return f"{file_name(self.agent)}.{setting_name(self.setting.title)}"


class Pair(NamedTuple):
    """Two systems."""

    first: System
    second: System

    @property
    def address(self) -> str:
        """Of its page."""
        return f"compare/{self.first.key}--{self.second.key}/index.html"


@dataclass(frozen=True, slots=True)
class PairSide:
    """What a system did on an instance: means over its attempts, None where unknown.

    It is right if more than half of the attempts with a verdict are a success or a part of one.
    """

    values: tuple[float | None, ...]
    right: bool | None
    trials: tuple[TrialRecord, ...]

    @property
    def address(self) -> str:
        """The page of its first attempt."""
        return trial_address(self.trials[0])


@dataclass(frozen=True, slots=True)
class PairRow:
    """An instance that both systems tried; ``effect`` is the difference of the primary measure."""

    instance: str
    first: PairSide
    second: PairSide
    agreement: PairVerdict | None
    effect: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of first - second by one measure, over the instances of both; ``test`` None is none made."""

    measure: Measure
    interval: Interval
    test: PairwiseTest | None


@dataclass(frozen=True, slots=True)
class PairComparison:
    """Two systems on the instances that both tried.

    Attributes:
        pair: the systems.
        rows: the instances, the largest effects first.
        counts: instances by agreement.
        differences: by measure.
    """

    pair: Pair
    rows: tuple[PairRow, ...]
    counts: Mapping[PairVerdict, int]
    differences: tuple[Difference, ...]


def systems_of(site: Site) -> list[System]:
    """Return all systems, by track and mode, then the best first."""
    view = site.views[Aggregation.STRICT]
    agents, settings = view.ranked_agents(), view.trials.track_modes
    return [System(agent, each) for each in settings for agent in agents if view.trials_of(agent, each)]


def tested_pairs(site: Site) -> Iterator[Pair]:
    """Yield the pairs that the comparison tests: in one track and mode, or of one agent."""
    for first, second in combinations(systems_of(site), 2):
        if (first.setting == second.setting) != (first.agent == second.agent):
            yield Pair(first, second)


def compare_pair(site: Site, pair: Pair) -> PairComparison:
    """Compare two systems, strict."""
    view = site.views[Aggregation.STRICT]
    first, second = (site.once(sides_of, system) for system in pair)
    primary = MEASURES.index(view.primary_measure)
    rows = [_row(name, first[name], second[name], primary) for name in first if name in second]
    rows.sort(key=lambda row: (-abs(row.effect or 0.0), row.instance))
    counts = Counter(row.agreement for row in rows if row.agreement is not None)
    differences = [
        _difference(site, pair, measure, rows, at)
        for at, measure in enumerate(MEASURES)
        if view.has_values(measure)
    ]
    return PairComparison(pair, tuple(rows), counts, tuple(differences))


def sides_of(site: Site, system: System) -> dict[str, PairSide]:
    """Return what a system did on each instance that it tried, strict."""
    view = site.views[Aggregation.STRICT]
    trials = view.trials_of(system.agent, system.setting)
    values = [view.sample(trials, measure).by_instance() for measure in MEASURES]
    found: dict[str, list[TrialRecord]] = {}
    for trial in sorted(trials, key=lambda each: (each.instance, each.attempt)):
        found.setdefault(trial.instance, []).append(trial)
    return {
        name: PairSide(
            tuple(each.get(name) for each in values),
            _is_right(map(site.facet, of_instance)),
            tuple(of_instance),
        )
        for name, of_instance in found.items()
    }


def _is_right(outcomes: Iterable[OutcomeFacet]) -> bool | None:
    right = [outcome in _RIGHT for outcome in outcomes if outcome not in _UNKNOWN]
    return 2 * sum(right) > len(right) if right else None


def _row(name: str, first: PairSide, second: PairSide, primary: int) -> PairRow:
    agreement = None
    if first.right is not None and second.right is not None:
        agreement = {
            (True, True): PairVerdict.BOTH,
            (True, False): PairVerdict.FIRST,
            (False, True): PairVerdict.SECOND,
            (False, False): PairVerdict.NONE,
        }[first.right, second.right]
    a, b = first.values[primary], second.values[primary]
    return PairRow(name, first, second, agreement, None if a is None or b is None else a - b)


def _difference(site: Site, pair: Pair, measure: Measure, rows: Sequence[PairRow], at: int) -> Difference:
    differences: list[float] = []
    clusters: list[str] = []
    for row in rows:
        a, b = row.first.values[at], row.second.values[at]
        if a is not None and b is not None:
            differences.append(a - b)
            clusters.append(row.first.trials[0].repository or row.instance)
    return Difference(
        measure, mean_interval(differences, clusters, fractions=False), _test(site, pair, measure)
    )


def _test(site: Site, pair: Pair, measure: Measure) -> PairwiseTest | None:
    """Return the test of this pair that the report makes, with first and second as in the pair."""
    first, second = pair
    if first.setting == second.setting:
        tests, names = site.comparisons[Aggregation.STRICT].tests, (first.agent, second.agent)
        setting = first.setting.title
    else:
        tests, names = site.mode_comparison.tests, (first.setting.title, second.setting.title)
        setting = first.agent
    return next(
        (
            each
            for each in tests
            if each.setting == setting and each.measure == measure and {each.first, each.second} == set(names)
        ),
        None,
    )
