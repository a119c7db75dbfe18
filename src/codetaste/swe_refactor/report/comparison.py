"""Which strategy and model has more successes: paired tests, ranks, and sets that no test tells apart."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import combinations
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

from codetaste.core.text import plural
from codetaste.report.statistics.comparison import ALPHA
from codetaste.report.statistics.intervals import benjamini_hochberg, paired_permutation
from codetaste.report.statistics.measures import Unit
from codetaste.report.statistics.power import POWER, describe_detectable, detectable_difference
from codetaste.report.table import Column, Row, Table
from codetaste.swe_refactor.report.models import SUCCESS, TRIALS, row_notes
from codetaste.swe_refactor.report.shares import count_cells, count_columns, legend
from codetaste.swe_refactor.report.trial_row import group_rows, success_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.swe_refactor.report.trial_row import StrategyModel, TrialRow

MIN_PROJECTS: Final = 6
"""From this number of projects on, whole projects are the clusters of a test: fewer give no p ≤ 0.05."""


@dataclass(frozen=True, slots=True)
class SuccessTest:
    """The paired test of two of them on the instances that both tried, with attempts averaged.

    Attributes:
        first: one of them.
        second: the other one.
        difference: the mean of ``first`` - ``second``.
        only_first: instances where the first has more successes, McNemar's b with one attempt.
        only_second: instances where the second has more, McNemar's c.
        pairs: instances that both tried.
        clusters: groups of instances whose signs were flipped together.
        detectable: the smallest difference that such pairs could show (``power.py``), None if it is unknown.
        p: two-sided p of the sign-flip test; with one attempt and single instances it is McNemar's exact p.
        q: ``p`` corrected for all tests (Benjamini-Hochberg).
    """

    first: StrategyModel
    second: StrategyModel
    difference: float
    only_first: int
    only_second: int
    pairs: int
    clusters: int
    p: float
    detectable: float | None = None
    q: float = 1.0

    @property
    def winner(self) -> StrategyModel | None:
        """The better one if the difference is significant."""
        if self.q > ALPHA:
            return None
        return self.first if self.difference > 0 else self.second


def compare_successes(rows: Sequence[TrialRow]) -> list[SuccessTest]:
    """Return the test of each pair, the better ones first; pairs without a common instance have none."""
    groups = _counted_groups(rows)
    means = {by: _by_instance(own) for by, own in groups.items()}
    project = {row.instance: row.project for own in groups.values() for row in own}
    by_project = len(set(project.values())) >= MIN_PROJECTS
    order = sorted(groups, key=lambda by: (-success_share(groups[by]), by))
    tests = []
    for first, second in combinations(order, 2):
        both = sorted(means[first].keys() & means[second].keys())
        if not both:
            continue
        a, b = ([means[by][instance] for instance in both] for by in (first, second))
        clusters = [project[instance] if by_project else instance for instance in both]
        differences = [x - y for x, y in zip(a, b, strict=True)]
        tests.append(
            SuccessTest(
                first,
                second,
                difference=math.fsum(differences) / len(both),
                only_first=sum(each > 0 for each in differences),
                only_second=sum(each < 0 for each in differences),
                pairs=len(both),
                clusters=len(set(clusters)),
                p=paired_permutation(a, b, clusters),
                detectable=detectable_difference(differences, clusters),
            )
        )
    qs = benjamini_hochberg([test.p for test in tests])
    return [replace(test, q=q) for test, q in zip(tests, qs, strict=True)]


def ranking_table(rows: Sequence[TrialRow]) -> Table:
    """Return all strategies and models, the best first, with those that each beats or is tied with.

    A rank is one more than the number of those that are significantly better: none is called better than
    another one without evidence.
    """
    groups = _counted_groups(rows)
    tests = compare_successes(rows)
    better = Counter(
        test.second if test.winner == test.first else test.first for test in tests if test.winner is not None
    )
    order = sorted(groups, key=lambda by: (better[by], -success_share(groups[by]), by))
    signs = dict(zip(order, _signs(len(order)), strict=True))
    beaten: defaultdict[StrategyModel, list[str]] = defaultdict(list)
    tied: defaultdict[StrategyModel, list[str]] = defaultdict(list)
    for test in tests:
        if test.winner is None:
            tied[test.first].append(signs[test.second])
            tied[test.second].append(signs[test.first])
        else:
            loser = test.second if test.winner == test.first else test.first
            beaten[test.winner].append(signs[loser])
    shown = tuple(
        Row(
            (
                by.strategy,
                by.model,
                signs[by],
                1 + better[by],
                *count_cells(groups[by], SUCCESS),
                len(groups[by]),
                " ".join(sorted(beaten[by])),
                " ".join(sorted(tied[by])),
            )
        )
        for by in order
    )
    columns = (
        Column("strategy", "Strategy"),
        Column("model", "Model"),
        Column("letter", ""),
        Column("rank", "Rank", Unit.COUNT),
        *count_columns("success", "Success"),
        TRIALS,
        Column("beats", "Beats"),
        Column("tied", "Tied"),
    )
    different = len({frozenset(row.instance for row in own) for own in groups.values()}) > 1
    ranks = ("shares are of each one's own instances, tests and ranks of common ones",)
    compared = (*_notes(rows, tests), *_detectable(tests))
    notes = (*compared, *(ranks if different else ()), *legend(columns, shown), *row_notes(rows))
    return Table("ranking", "strategies and models by successes", columns, shown, notes)


def tests_table(rows: Sequence[TrialRow]) -> Table:
    """Return a row for each paired test."""
    columns = (
        Column("first", "First"),
        Column("second", "Second"),
        Column("difference", "First - second", Unit.FRACTION),
        Column("detectable", "Detectable", Unit.FRACTION),
        Column("only_first", "first", Unit.COUNT, heading="Better at"),
        Column("only_second", "second", Unit.COUNT, heading="Better at"),
        Column("pairs", "Instances", Unit.COUNT),
        Column("clusters", "Clusters", Unit.COUNT),
        Column("p", "p", Unit.P),
        Column("q", "p corrected", Unit.P),
    )
    tests = compare_successes(rows)
    shown = tuple(
        Row(
            (
                *(test.first.title, test.second.title, test.difference, test.detectable),
                *(test.only_first, test.only_second, test.pairs, test.clusters, test.p, test.q),
            )
        )
        for test in tests
    )
    notes = (*_notes(rows, tests)[:1], *_detectable(tests))
    return Table("tests", "paired differences of successes", columns, shown, notes)


def _notes(rows: Sequence[TrialRow], tests: Sequence[SuccessTest]) -> tuple[str, ...]:
    if not tests:
        return ("no two of them can be compared",)
    projects = len({row.project for row in rows if row.counted})
    clusters = "whole projects"
    if projects < MIN_PROJECTS:
        clusters = f"single instances, because {plural(projects, 'project')} cannot show a difference"
    corrected = f"corrected for {plural(len(tests), 'test')} (Benjamini-Hochberg)"
    return (
        f"paired sign-flip tests over {clusters}, {corrected}",
        f"Beats: significantly better than these ({ALPHA:.0%} false discoveries); tied: no such difference",
        "Rank: one more than the number of those that beat it",
    )


def _detectable(tests: Sequence[SuccessTest]) -> tuple[str, ...]:
    effects = describe_detectable(test.detectable for test in tests)
    why = f"{POWER:.0%} power, before correction"
    return (f"smallest difference that so many instances would show ({why}): {effects}",) if effects else ()


def _by_instance(rows: Sequence[TrialRow]) -> dict[str, float]:
    values: defaultdict[str, list[bool]] = defaultdict(list)
    for row in rows:
        values[row.instance].append(row.success)
    return {instance: sum(each) / len(each) for instance, each in values.items()}


def _counted_groups(rows: Sequence[TrialRow]) -> dict[StrategyModel, list[TrialRow]]:
    return {by: own for by, own in group_rows(rows).items() if own}


def _signs(number: int) -> list[str]:
    """Return letters, or numbers if there are too many."""
    return [ascii_lowercase[at] if number <= len(ascii_lowercase) else str(at + 1) for at in range(number)]
