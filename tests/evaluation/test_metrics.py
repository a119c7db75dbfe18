"""The formulas of the metrics, against the definitions in the paper."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.evaluation.metrics import (
    CRASHED_RUN,
    PassThresholds,
    PrecisionCounts,
    RuleCounts,
    TestCounts,
    alignment,
    f1,
    ifr,
    ifr_minus,
    ifr_plus,
    pass_thresholds,
    passes,
    strict_success,
)

sides = st.integers(0, 200).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


@given(sides, sides)
def test_ifr_is_the_mean_of_both_directions_weighted_by_their_rules(
    positive: tuple[int, int], negative: tuple[int, int]
) -> None:
    counts = RuleCounts(*positive, *negative)
    total = positive[1] + negative[1]
    weighted = Fraction(0)
    if positive[1]:
        weighted += Fraction(positive[1], total) * Fraction(positive[0], positive[1])
    if negative[1]:
        weighted += Fraction(negative[1], total) * (1 - Fraction(negative[0], negative[1]))
    rate = ifr(counts)
    assert (rate is None) == (total == 0)
    assert rate is None or (rate == float(weighted) and 0 <= rate <= 1)


def test_direction_without_rules_has_no_rate_and_does_not_count() -> None:
    counts = RuleCounts(1, 2, 0, 0)
    assert (ifr(counts), ifr_plus(counts), ifr_minus(counts)) == (0.5, 0.5, None)
    counts = RuleCounts(0, 0, 1, 4)
    assert (ifr(counts), ifr_plus(counts), ifr_minus(counts)) == (0.75, None, 0.75)
    assert ifr(RuleCounts(0, 0, 0, 0)) is None


def test_golden_patch_has_ifr_1_and_base_0() -> None:
    assert ifr(RuleCounts(18, 18, 0, 109)) == 1.0
    assert ifr(RuleCounts(0, 18, 109, 109)) == 0.0


@pytest.mark.parametrize(
    ("passed", "failed", "ok"),
    [(13, 1, True), (12, 1, False), (13, 2, False), (14, 0, True), (0, 0, False), (12, 0, False)],
)
def test_pass_thresholds_are_extremes_of_baseline_runs(passed: int, failed: int, ok: bool) -> None:
    thresholds = pass_thresholds([TestCounts(14, 0), TestCounts(13, 1), TestCounts(15, 0)])
    assert thresholds == PassThresholds(13, 1)
    assert passes(TestCounts(passed, failed), thresholds) is ok


def test_crashed_test_run_has_no_passed_and_no_failed_tests() -> None:
    assert (CRASHED_RUN.passed, CRASHED_RUN.failed) == (0, 0)
    assert not passes(CRASHED_RUN, PassThresholds(1, 0))


@pytest.mark.parametrize(
    ("passed", "rate", "aligned"),
    [(True, 0.25, 0.25), (False, 0.25, 0.0), (None, 0.25, None), (True, None, None), (False, None, None)],
)
def test_alignment_needs_both_factors(passed: bool | None, rate: float | None, aligned: float | None) -> None:
    assert alignment(passed, rate) == aligned


counts = st.integers(0, 10_000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


@given(counts, counts)
def test_precision_is_the_mean_of_both_sides_weighted_by_their_lines(
    added: tuple[int, int], removed: tuple[int, int]
) -> None:
    precision = PrecisionCounts(*added, *removed)
    total = added[1] + removed[1]
    if not total:
        assert (precision.prec, precision.prec_plus, precision.prec_minus) == (0, 0, 0)
        return
    weighted = (added[1] * precision.prec_plus + removed[1] * precision.prec_minus) / total
    assert precision.prec == pytest.approx(weighted)


def test_precision_matches_published_gradle_sample() -> None:
    precision = PrecisionCounts(202, 279, 102, 233)
    assert (precision.prec, precision.prec_plus, precision.prec_minus) == (304 / 512, 202 / 279, 102 / 233)


@pytest.mark.parametrize(
    ("passed", "total", "error", "valid"),
    [(3, 10, None, True), (2, 10, None, False), (9, 9, None, False), (10, 10, "x", False)],
)
def test_suite_is_valid_from_ten_tests_with_three_in_ten_passed(
    passed: int, total: int, error: str | None, valid: bool
) -> None:
    assert TestCounts(passed, total - passed, 0, total, error).is_valid is valid


rates = st.one_of(st.none(), st.integers(0, 20).map(lambda number: number / 20))


@given(st.one_of(st.none(), st.booleans()), rates, rates)
def test_strict_and_f1_are_those_of_the_published_analysis(
    passed: bool | None, precision: float | None, rate: float | None
) -> None:
    if passed is None or rate is None:
        assert strict_success(passed, rate) is None
    else:
        assert strict_success(passed, rate) == (1.0 if passed and rate == 1.0 else 0.0)
    value = f1(passed, precision, rate)
    if passed is None:
        assert value is None
    elif not passed:
        assert value == 0.0
    elif precision is None or rate is None:
        assert value is None
    elif precision + rate == 0:
        assert value == 0.0
    else:
        p, r = Fraction(precision), Fraction(rate)
        assert value == pytest.approx(float(2 * p * r / (p + r)))
