"""Intervals, tests of differences and pass@k, compared with independent computations and the paper."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.report.statistics.intervals import (
    Method,
    benjamini_hochberg,
    mean_interval,
    paired_permutation,
    pass_at_k,
)
from codetaste.report.statistics.numerics import FLIPS, MAX_EXACT_PAIRS

VALUES = st.lists(st.floats(0, 1, allow_nan=False), min_size=1, max_size=70)


@pytest.mark.parametrize(("passed", "margin"), [(76, 8.5), (47, 10.0), (30, 9.1)])
def test_intervals_equal_those_of_table_4(passed: int, margin: float) -> None:
    interval = mean_interval([1.0] * passed + [0.0] * (100 - passed))
    assert interval.method is Method.T
    assert interval.margin is not None
    assert interval.mean == passed / 100
    assert round(100 * interval.margin, 1) == margin


def test_t_interval_equals_scipy() -> None:
    from scipy import stats

    draw = random.Random(1)
    values = [draw.gauss(5, 2) for _ in range(60)]
    interval = mean_interval(values, fractions=False)
    error = np.std(values, ddof=1) / math.sqrt(60)
    low, high = stats.t.interval(0.95, 59, loc=np.mean(values), scale=error)
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_clusters_of_one_value_change_nothing() -> None:
    draw = random.Random(2)
    values = [draw.random() for _ in range(60)]
    assert mean_interval(values, list(range(60))) == mean_interval(values)


def test_interval_of_duplicated_values_in_clusters_equals_that_of_single_values() -> None:
    """Each value twice has no more information than each once."""
    draw = random.Random(3)
    values = [draw.random() for _ in range(60)]
    once = mean_interval(values)
    twice = mean_interval([*values, *values], [*range(60), *range(60)])
    assert (twice.n, twice.clusters, twice.method) == (120, 60, Method.CLUSTER_T)
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))


def test_cluster_interval_equals_its_formula() -> None:
    draw = random.Random(4)
    clusters = [draw.randrange(55) for _ in range(200)]
    values = [min(1.0, max(0.0, 0.5 + cluster / 500 + draw.gauss(0, 0.1))) for cluster in clusters]
    mean = sum(values) / 200
    groups = sorted(set(clusters))
    sums = [
        sum(value - mean for value, own in zip(values, clusters, strict=True) if own == group)
        for group in groups
    ]
    size = len(groups)
    error = math.sqrt(size / (size - 1) * sum(each**2 for each in sums)) / 200
    from scipy import stats

    interval = mean_interval(values, clusters)
    assert interval.margin == pytest.approx(stats.t.ppf(0.975, size - 1) * error)


def test_interval_of_equal_values_is_wilson() -> None:
    from scipy import stats

    for passed, n in ((10, 10), (0, 3), (1, 1)):
        interval = mean_interval([float(passed > 0)] * n)
        expected = stats.binomtest(passed, n).proportion_ci(method="wilson")
        assert interval.method is Method.WILSON
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_single_value_fraction_has_interval_and_dollars_have_none() -> None:
    one = mean_interval([0.5])
    assert one.method is Method.WILSON
    assert one.low is not None
    assert one.low < 0.1
    many = mean_interval([0.2, 0.8, 0.5], ["a", "a", "a"])
    assert (many.low, many.high) == (one.low, one.high)
    dollars = mean_interval([3.5], fractions=False)
    assert (dollars.mean, dollars.low, dollars.high, dollars.method) == (3.5, None, None, Method.NONE)


def test_statistics_of_no_values_are_empty() -> None:
    nothing = mean_interval([])
    assert (nothing.mean, nothing.low, nothing.n, nothing.method) == (None, None, 0, Method.NONE)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1.5])
def test_invalid_value_is_refused_with_its_position(bad: float) -> None:
    with pytest.raises(ValueError, match=r"value 2 of 3 is"):
        mean_interval([0.5, bad, 0.5])


@given(VALUES, st.data())
@settings(max_examples=60, deadline=None)
def test_interval_contains_its_mean(values: list[float], data: st.DataObject) -> None:
    clusters = data.draw(st.lists(st.integers(0, 40), min_size=len(values), max_size=len(values)))
    interval = mean_interval(values, clusters)
    assert interval.mean == pytest.approx(sum(values) / len(values))
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low - 1e-9 <= interval.mean <= interval.high + 1e-9
    if interval.method in {Method.WILSON, Method.BOOTSTRAP}:
        assert interval.low >= 0
        assert interval.high <= 1


def test_only_few_skewed_values_are_bootstrapped() -> None:
    skewed = [0.0] * 9 + [0.02, 0.9]
    assert mean_interval(skewed).method is Method.BOOTSTRAP
    assert mean_interval(skewed[-6:]).method is Method.WILSON
    assert mean_interval(skewed * 5).method is Method.T
    assert mean_interval([0.4, 0.5, 0.6, 0.45, 0.55, 0.5, 0.62, 0.38]).method is Method.T
    assert mean_interval([0.0, 0.0, 1.0, 0.0] * 3).method is Method.WILSON


def test_bootstrap_agrees_with_scipy_bca() -> None:
    from scipy import stats

    values = [0.0] * 12 + [0.1, 0.2, 0.02, 0.7]
    interval = mean_interval(values)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=9999, rng=np.random.default_rng(1)
    ).confidence_interval
    assert interval.method is Method.BOOTSTRAP
    assert interval.low == pytest.approx(theirs.low, abs=0.006)
    assert interval.high == pytest.approx(theirs.high, abs=0.03)


@pytest.mark.parametrize("n", [4, 10, 20])
def test_intervals_contain_the_true_mean_about_as_often_as_stated(n: int) -> None:
    """Many zeros and a tail, as open-track scores are: 0.15 x 0.5 on average."""
    draw = random.Random(5)
    hits = 0
    for _ in range(150):
        values = [draw.betavariate(2, 2) if draw.random() < 0.15 else 0.0 for _ in range(n)]
        interval = mean_interval(values)
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= 0.075 <= interval.high
    assert hits >= 0.85 * 150


def all_flips(differences: list[float]) -> float:
    """Try all signs in exact arithmetic."""
    exact = [Fraction(each) for each in differences]
    seen = abs(sum(exact))
    signs = list(itertools.product((1, -1), repeat=len(exact)))
    sums = [abs(sum(sign * each for sign, each in zip(row, exact, strict=True))) for row in signs]
    return sum(each >= seen for each in sums) / len(sums)


QUARTERS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda pair: (pair[0] / 4, pair[1] / 4)),
    min_size=1,
    max_size=8,
)


@given(QUARTERS)
@settings(max_examples=60, deadline=None)
def test_sign_flip_test_equals_the_enumeration_with_ties_and_zeros(
    pairs: list[tuple[float, float]],
) -> None:
    a, b = [one for one, _ in pairs], [other for _, other in pairs]
    expected = all_flips([one - other for one, other in pairs])
    assert paired_permutation(a, b) == pytest.approx(expected)
    assert paired_permutation(b, a) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3)), min_size=2, max_size=12))
@settings(max_examples=40, deadline=None)
def test_differences_of_one_cluster_are_flipped_together(rows: list[tuple[int, int]]) -> None:
    a = [value / 8 for value, _ in rows]
    sums: dict[int, float] = {}
    for value, cluster in rows:
        sums[cluster] = sums.get(cluster, 0.0) + value / 8
    p = paired_permutation(a, [0.0] * len(a), [cluster for _, cluster in rows])
    assert p == pytest.approx(all_flips(list(sums.values())))


def test_sampled_sign_flips_agree_with_the_enumeration() -> None:
    draw = random.Random(6)
    differences = [draw.randrange(-3, 5) / 4 for _ in range(MAX_EXACT_PAIRS + 6)]
    expected = all_flips_of_many(differences)
    p = paired_permutation(differences, [0.0] * len(differences))
    assert p == pytest.approx(expected, abs=0.012)
    assert paired_permutation(differences, [0.0] * len(differences)) == p


def all_flips_of_many(differences: list[float]) -> float:
    """Compute the distribution of the sum one difference at a time; quarters are exact."""
    counts: dict[int, int] = {0: 1}
    for each in differences:
        step, after = round(each * 4), {}
        for total, count in counts.items():
            for other in (total + step, total - step):
                after[other] = after.get(other, 0) + count
        counts = after
    seen = abs(round(sum(differences) * 4))
    return sum(count for total, count in counts.items() if abs(total) >= seen) / 2 ** len(differences)


def test_sampled_p_is_never_0() -> None:
    assert paired_permutation([1.0] * 40, [0.0] * 40) == 1 / (FLIPS + 1)


def test_equal_agents_do_not_differ() -> None:
    assert paired_permutation([0.3, 0.7], [0.3, 0.7]) == 1
    with pytest.raises(ValueError, match="cannot be paired"):
        paired_permutation([], [])
    with pytest.raises(ValueError, match="value 1 of 1 is nan"):
        paired_permutation([math.nan], [0.0])


@given(st.lists(st.integers(0, 64).map(lambda sixtyfourths: sixtyfourths / 64), max_size=12))
@settings(max_examples=80, deadline=None)
def test_correction_equals_benjamini_hochberg(ps: list[float]) -> None:
    """q ≤ α exactly where the step-up rule rejects at α; no p here lies on a limit of these α."""
    qs = benjamini_hochberg(ps)
    for alpha in (0.0101, 0.0503, 0.1013, 0.2999, 0.7001):
        limits = [p for rank, p in enumerate(sorted(ps), 1) if p <= alpha * rank / len(ps)]
        rejected = [bool(limits) and p <= limits[-1] for p in ps]
        assert [q <= alpha for q in qs] == rejected


@given(st.integers(1, 9), st.data())
@settings(max_examples=60, deadline=None)
def test_pass_at_k_is_the_share_of_choices_with_a_pass(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    choices = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_undefined_pass_at_k_is_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="is undefined"):
        pass_at_k(n, c, k)
