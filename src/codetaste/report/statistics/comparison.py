"""Pairwise significance tests and ranking of agents in each track and mode.

Each pair of agents is compared on the instances that both have trials of, with attempts averaged, by a
sign-flip test over whole repositories. All p values of a comparison are corrected together
(Benjamini-Hochberg). With ``by="track_mode"`` the tracks and modes of each agent are compared instead: does
planning help?
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import combinations
from string import ascii_lowercase
from typing import TYPE_CHECKING, Literal

from codetaste.core.text import plural
from codetaste.report.statistics import measures
from codetaste.report.statistics.aggregate import Aggregation, Grouping
from codetaste.report.statistics.flagged import flagged_notes
from codetaste.report.statistics.intervals import Interval, benjamini_hochberg, paired_permutation
from codetaste.report.statistics.merge import REFERENCE_TITLES, track_mode_of
from codetaste.report.statistics.power import detectable_difference
from codetaste.report.statistics.scripted import scripted_notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.report.statistics.aggregate import Sample
    from codetaste.report.statistics.measures import Measure
    from codetaste.report.statistics.view import AggregatedTrials

ALPHA = 0.05
"""False discovery rate: the expected share of wrong ones among all differences called significant."""
COMPARED_MEASURES = (measures.ALIGNMENT, measures.PASS, measures.IFR, measures.PREC)
ComparisonAxis = Literal["agent", "track_mode"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of one measure for one system in one setting; ``rank`` 1 is best, None without a mean."""

    system: str
    setting: str
    measure: Measure
    interval: Interval
    missing: int
    """Trials without a value."""
    rank: int | None = None
    beats: tuple[str, ...] = ()
    """The systems that are significantly worse in this setting."""


@dataclass(frozen=True, slots=True)
class PairwiseTest:
    """The test of two systems in one setting by one measure.

    ``difference`` is the mean of ``first`` - ``second`` over ``pairs`` instances of ``clusters`` groups;
    ``detectable`` is the smallest one that such pairs could show (``power.py``), None if it is unknown; ``q``
    is ``p`` corrected for all tests of the comparison.
    """

    first: str
    second: str
    setting: str
    measure: Measure
    difference: float
    pairs: int
    clusters: int
    p: float
    detectable: float | None = None
    q: float = 1.0

    @property
    def significant(self) -> bool:
        """Whether the difference is significant at a false discovery rate of ``ALPHA``."""
        return self.q <= ALPHA


@dataclass(frozen=True, slots=True)
class ReferenceMean:
    """The mean of the golden patch, or of no patch, on the instances that have trials in one setting."""

    name: str
    setting: str
    measure: Measure
    mean: float
    n: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """All systems, the best first, in all settings, by all measures that have values.

    ``systems`` are agents and ``settings`` are tracks with modes, or the other way round (``by``). References
    are neither ranked nor tested.
    """

    by: ComparisonAxis
    aggregation: Aggregation
    systems: tuple[str, ...]
    settings: tuple[str, ...]
    primary: Measure
    estimates: tuple[Estimate, ...]
    tests: tuple[PairwiseTest, ...]
    references: tuple[ReferenceMean, ...]
    trials: int
    instances: int
    repositories: int
    notes: tuple[str, ...] = ()
    published: Comparison | None = None
    """The same comparison as the published harness aggregates it, if both were requested."""

    def estimate(self, system: str, setting: str, measure: Measure) -> Estimate | None:
        """Return the estimate of a system; None where it has no trials in this setting."""
        for each in self.estimates:
            if (each.system, each.setting, each.measure) == (system, setting, measure):
                return each
        return None

    def letter(self, system: str) -> str:
        """Return the letter (or number) of a system."""
        position = self.systems.index(system)
        return ascii_lowercase[position] if len(self.systems) <= len(ascii_lowercase) else str(position + 1)


def compare_systems(view: AggregatedTrials, by: ComparisonAxis = "agent") -> Comparison:
    """Compare agents in each track and mode, or with ``by="track_mode"`` the tracks and modes of each agent.

    Intervals and tests treat the instances of one repository as a cluster.
    """
    trials = view.trials
    agents, track_modes = view.ranked_agents(), [track_mode.title for track_mode in trials.track_modes]
    systems, settings = (agents, track_modes) if by == "agent" else (track_modes, agents)
    measured = [measure for measure in COMPARED_MEASURES if view.has_values(measure)]
    samples: _Samples = {}
    for (agent, track_mode), records in view.by_agent.items():
        system, setting = (agent, track_mode.title) if by == "agent" else (track_mode.title, agent)
        for measure in measured:
            samples[system, setting, measure] = view.sample(records, measure)
    tests = [
        test
        for measure in measured
        for setting in settings
        for test in _pairwise_tests(samples, systems, setting, measure)
    ]
    qs = benjamini_hochberg([test.p for test in tests])
    tests = [replace(test, q=q) for test, q in zip(tests, qs, strict=True)]
    return Comparison(
        by,
        view.aggregation,
        tuple(systems),
        tuple(settings),
        view.primary_measure,
        tuple(_estimates(samples, tests)),
        tuple(tests),
        tuple(_references(view, COMPARED_MEASURES)) if by == "agent" else (),
        len(trials.agents),
        len({record.instance for record in trials.agents}),
        len({record.repository or record.instance for record in trials.agents}),
        (*trials.notes, *_caveats(view, tests), *_untested(samples, systems, settings, view.primary_measure)),
    )


_MAX_UNTESTED = 3
"""Pairs without a common instance that a note names."""
_Samples = dict[tuple[str, str, "Measure"], "Sample"]


def _pairwise_tests(
    samples: _Samples, systems: Sequence[str], setting: str, measure: Measure
) -> list[PairwiseTest]:
    present = [name for name in systems if (name, setting, measure) in samples]
    means = {name: samples[name, setting, measure].by_instance() for name in present}
    repository = {
        record.instance: record.repository or record.instance
        for name in present
        for record in samples[name, setting, measure].records
    }
    tests = []
    for first, second in combinations(present, 2):
        both = [instance for instance in means[first] if instance in means[second]]
        if both:
            a, b = ([means[name][instance] for instance in both] for name in (first, second))
            clusters = [repository[instance] for instance in both]
            differences = [x - y for x, y in zip(a, b, strict=True)]
            tests.append(
                PairwiseTest(
                    first,
                    second,
                    setting,
                    measure,
                    difference=math.fsum(differences) / len(both),
                    pairs=len(both),
                    clusters=len(set(clusters)),
                    p=paired_permutation(a, b, clusters),
                    detectable=detectable_difference(differences, clusters),
                )
            )
    return tests


def _estimates(samples: _Samples, tests: Sequence[PairwiseTest]) -> list[Estimate]:
    better: dict[tuple[str, str, Measure], list[str]] = {}
    for test in tests:
        if test.significant:
            winner, loser = (test.first, test.second)[:: 1 if test.difference > 0 else -1]
            better.setdefault((winner, test.setting, test.measure), []).append(loser)
    estimates = [
        Estimate(
            system,
            setting,
            measure,
            sample.interval(measure, Grouping.REPOSITORY),
            sample.missing,
            beats=tuple(better.get((system, setting, measure), ())),
        )
        for (system, setting, measure), sample in samples.items()
    ]
    means: defaultdict[tuple[str, Measure], list[float]] = defaultdict(list)
    for each in estimates:
        if each.interval.mean is not None:
            means[each.setting, each.measure].append(each.interval.mean)
    return [
        replace(each, rank=_rank(each.interval.mean, means[each.setting, each.measure])) for each in estimates
    ]


def _references(view: AggregatedTrials, measured: Sequence[Measure]) -> Iterator[ReferenceMean]:
    for track_mode in view.trials.track_modes:
        tried = {record.instance for record in view.trials.agents if track_mode_of(record) == track_mode}
        for agent, name in REFERENCE_TITLES.items():
            records = [
                record for record in view.trials.pseudo if record.agent == agent and record.instance in tried
            ]
            for measure in measured:
                values = view.sample(records, measure).values
                if values:
                    mean = math.fsum(values) / len(values)
                    yield ReferenceMean(name, track_mode.title, measure, mean, len(values))


def _rank(mean: float | None, means: Sequence[float]) -> int | None:
    """Return 1 + the number of greater means, so that equal means share a rank."""
    return None if mean is None else 1 + sum(other > mean for other in means)


def _untested(
    samples: _Samples, systems: Sequence[str], settings: Sequence[str], measure: Measure
) -> Iterator[str]:
    """Yield a note for each setting in which two systems have values, but of no instance in common."""
    for setting in settings:
        tried = {
            system: sample.by_instance().keys()
            for system in systems
            if (sample := samples.get((system, setting, measure)))
        }
        pairs = [
            f"{first} and {second}"
            for (first, own), (second, other) in combinations(tried.items(), 2)
            if own and other and own.isdisjoint(other)
        ]
        if pairs:
            more = f", and {plural(len(pairs) - _MAX_UNTESTED, 'more pair')}" if pairs[_MAX_UNTESTED:] else ""
            listed = "; ".join(pairs[:_MAX_UNTESTED])
            yield f"{setting}: not compared, since they share no instance: {listed}{more}"


def _caveats(view: AggregatedTrials, tests: Sequence[PairwiseTest]) -> list[str]:
    agents = view.trials.agents
    notes = [*scripted_notes(agents), *flagged_notes(view)]
    statuses = Counter(str(record.scores.status).replace("_", " ") for record in agents)
    if set(statuses) - {"scored"}:
        by_status = ", ".join(f"{number:,} {status}" for status, number in statuses.most_common())
        dropped = sum(1 for record in agents if record.published is None)
        notes.append(f"{plural(len(agents), 'trial')}: {by_status}; the published harness drops {dropped:,}")
    passed = view.sample(agents, measures.PASS)
    if agents and not passed.values and view.has_values(measures.IFR):
        notes.append("PASS was not measured in any trial, so A is unknown: ranked by IFR")
    elif passed.missing:
        notes.append(f"PASS is unknown in {passed.missing:,} of {len(agents):,} trials, which are not in A")
    most = max((test.clusters for test in tests), default=0)
    if tests and 2.0 ** (1 - most) > ALPHA:
        notes.append(
            f"pairs share at most {plural(most, 'repository', 'repositories')}: no difference could be"
            f" significant (least possible p: {2.0 ** (1 - most):.2g})"
        )
    return notes
