"""Who is better, and is that more than chance: agents against each other in every track and mode.

Each pair of agents is tested on the instances that both were tried on, attempts averaged, by sign flips of
whole repositories; all p of one comparison are corrected together (Benjamini-Hochberg). The same is done for
tracks and modes of one agent (``by="lane"``): does planning help?
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from string import ascii_lowercase
from typing import TYPE_CHECKING, Literal

from codetaste.report import measures
from codetaste.report.aggregate import Aggregation, Grouping
from codetaste.report.statistics import Interval, benjamini_hochberg, paired_permutation
from codetaste.report.trials import REFERENCES, lane_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.report.aggregate import Sample
    from codetaste.report.measures import Measure
    from codetaste.report.view import View

ALPHA = 0.05
"""Of all differences that are called significant, at most this share is expected to be none."""
COMPARED = (measures.ALIGNMENT, measures.PASS, measures.IFR, measures.PREC)
By = Literal["agent", "lane"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How one contestant does in one place by one measure; ``rank`` is 1 for the best, None without one."""

    contestant: str
    place: str
    measure: Measure
    interval: Interval
    missing: int
    """Trials without a value."""
    rank: int | None = None
    beats: tuple[str, ...] = ()
    """The contestants that are significantly worse here."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Two contestants in one place by one measure.

    ``difference`` is the mean of ``first`` - ``second`` over ``pairs`` instances of ``clusters`` groups,
    ``q`` is ``p`` corrected for all contests of the comparison.
    """

    first: str
    second: str
    place: str
    measure: Measure
    difference: float
    pairs: int
    clusters: int
    p: float
    q: float = 1.0

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance, at a false discovery rate of ``ALPHA``."""
        return self.q <= ALPHA


@dataclass(frozen=True, slots=True)
class Reference:
    """What the human's patch, or none at all, is worth on the instances tried in one place."""

    name: str
    place: str
    measure: Measure
    mean: float
    n: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """All contestants, the best first, in all places, by all measures that were taken.

    ``contestants`` are agents and ``places`` tracks with modes, or the other way round (``by``). References
    are neither ranked nor tested.
    """

    by: By
    aggregation: Aggregation
    contestants: tuple[str, ...]
    places: tuple[str, ...]
    primary: Measure
    standings: tuple[Standing, ...]
    contests: tuple[Contest, ...]
    references: tuple[Reference, ...]
    trials: int
    instances: int
    repositories: int
    notes: tuple[str, ...] = ()
    published: Comparison | None = None
    """The same as the published harness aggregates, where this one is strict and both were asked for."""

    def standing(self, contestant: str, place: str, measure: Measure) -> Standing | None:
        """Return how a contestant does; None where it did not take part."""
        for each in self.standings:
            if (each.contestant, each.place, each.measure) == (contestant, place, measure):
                return each
        return None

    def letter(self, contestant: str) -> str:
        """Return the short sign of a contestant."""
        place = self.contestants.index(contestant)
        return ascii_lowercase[place] if len(self.contestants) <= len(ascii_lowercase) else str(place + 1)


def compare_view(look: View, by: By = "agent") -> Comparison:
    """Compare agents in every track and mode, or with ``by`` lane these of every agent.

    Intervals and tests take the instances of one repository together.
    """
    trials = look.trials
    agents, lanes = look.ranked(), [lane.title for lane in trials.lanes]
    contestants, places = (agents, lanes) if by == "agent" else (lanes, agents)
    taken = [measure for measure in COMPARED if look.measures_any(measure)]
    samples = _samples(look, taken, by)
    contests = _corrected(
        [
            contest
            for measure in taken
            for place in places
            for contest in _contests(samples, contestants, place, measure)
        ]
    )
    return Comparison(
        by,
        look.aggregation,
        tuple(contestants),
        tuple(places),
        look.primary,
        tuple(_standings(samples, contests)),
        tuple(contests),
        tuple(_references(look, taken)) if by == "agent" else (),
        len(trials.agents),
        len({record.instance for record in trials.agents}),
        len({record.repository or record.instance for record in trials.agents}),
        (*trials.notes, *_reservations(look, contests)),
    )


_Samples = dict[tuple[str, str, "Measure"], "Sample"]


def _samples(look: View, taken: Sequence[Measure], by: By) -> _Samples:
    found: _Samples = {}
    for (agent, lane), records in look.by_agent.items():
        contestant, place = (agent, lane.title) if by == "agent" else (lane.title, agent)
        for measure in taken:
            found[contestant, place, measure] = look.sample(records, measure)
    return found


def _contests(samples: _Samples, contestants: Sequence[str], place: str, measure: Measure) -> list[Contest]:
    present = [name for name in contestants if (name, place, measure) in samples]
    means = {name: samples[name, place, measure].by_instance() for name in present}
    repository = {
        record.instance: record.repository or record.instance
        for name in present
        for record in samples[name, place, measure].records
    }
    found = []
    for first, second in combinations(present, 2):
        both = [instance for instance in means[first] if instance in means[second]]
        if both:
            a, b = ([means[name][instance] for instance in both] for name in (first, second))
            clusters = [repository[instance] for instance in both]
            difference = math.fsum(x - y for x, y in zip(a, b, strict=True)) / len(both)
            p = paired_permutation(a, b, clusters)
            groups = len(set(clusters))
            found.append(Contest(first, second, place, measure, difference, len(both), groups, p))
    return found


def _corrected(contests: list[Contest]) -> list[Contest]:
    qs = benjamini_hochberg([contest.p for contest in contests])
    return [replace(contest, q=q) for contest, q in zip(contests, qs, strict=True)]


def _standings(samples: _Samples, contests: Sequence[Contest]) -> list[Standing]:
    better: dict[tuple[str, str, Measure], list[str]] = {}
    for each in contests:
        if each.significant:
            winner, loser = (each.first, each.second)[:: 1 if each.difference > 0 else -1]
            better.setdefault((winner, each.place, each.measure), []).append(loser)
    found = [
        Standing(
            contestant,
            place,
            measure,
            sample.interval(measure, Grouping.REPOSITORY),
            sample.missing,
            beats=tuple(better.get((contestant, place, measure), ())),
        )
        for (contestant, place, measure), sample in samples.items()
    ]
    return [replace(each, rank=_rank(each, found)) for each in found]


def _references(look: View, taken: Sequence[Measure]) -> Iterator[Reference]:
    for lane in look.trials.lanes:
        tried = {record.instance for record in look.trials.agents if lane_of(record) == lane}
        for agent, name in REFERENCES.items():
            records = [
                record for record in look.trials.pseudo if record.agent == agent and record.instance in tried
            ]
            for measure in taken:
                values = look.sample(records, measure).values
                if values:
                    mean = math.fsum(values) / len(values)
                    yield Reference(name, lane.title, measure, mean, len(values))


def _rank(standing: Standing, all_: Sequence[Standing]) -> int | None:
    """Count those with a greater mean, so that equals share a rank."""
    mean = standing.interval.mean
    if mean is None:
        return None
    others = [
        other.interval.mean
        for other in all_
        if (other.place, other.measure) == (standing.place, standing.measure)
        and other.interval.mean is not None
    ]
    return 1 + sum(1 for other in others if other > mean)


def _reservations(look: View, contests: Sequence[Contest]) -> list[str]:
    """Say what these numbers cannot tell."""
    said = []
    agents = look.trials.agents
    statuses = Counter(str(record.status).replace("_", " ") for record in agents)
    if set(statuses) - {"scored"}:
        became = ", ".join(f"{number:,} {status}" for status, number in statuses.most_common())
        dropped = sum(1 for record in agents if record.published is None)
        said.append(f"{counted(len(agents), 'trial')}: {became}; the published harness drops {dropped:,}")
    passed = look.sample(agents, measures.PASS)
    if agents and not passed.values and look.measures_any(measures.IFR):
        said.append("PASS was not measured in any trial, so that A is not known: ranked by IFR")
    elif passed.missing:
        said.append(f"PASS is not known of {passed.missing:,} of {len(agents):,} trials, which are not in A")
    most = max((contest.clusters for contest in contests), default=0)
    if contests and 2.0 ** (1 - most) > ALPHA:
        said.append(
            f"pairs share at most {counted(most, 'repository', 'repositories')}: no difference could be"
            f" significant (least possible p: {2.0 ** (1 - most):.2g})"
        )
    return said


def counted(count: int, one: str, many: str = "") -> str:
    """Say how many of something there are: "1 repository", "1,600 trials"."""
    many = many or f"{one}s"
    return f"{count:,} {one if count == 1 else many}"
