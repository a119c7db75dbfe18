"""The smallest difference that so many pairs would show: its formula, its power, and what has none."""

from __future__ import annotations

import math
import random
from itertools import product
from statistics import NormalDist, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.report.statistics.power import describe_detectable, detectable_difference

QUANTILES_OF_T = {9: 2.262157 + 0.883404, 99: 1.984217 + 0.845267}
"""t(0.975) + t(0.8) by degrees of freedom."""


def flip_p(differences: list[float]) -> float:
    """Two-sided p of the sign-flip test by enumeration: a model of its own."""
    observed = abs(sum(differences)) - 1e-9
    flips = [
        abs(sum(sign * each for sign, each in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    return sum(each >= observed for each in flips) / len(flips)


@pytest.mark.parametrize("number", [10, 100])
def test_it_is_the_formula_for_independent_pairs(number: int) -> None:
    draw = random.Random(number)
    differences = [draw.gauss(0.1, 0.3) for _ in range(number)]
    expected = QUANTILES_OF_T[number - 1] * stdev(differences) / math.sqrt(number)
    assert detectable_difference(differences) == pytest.approx(expected, rel=1e-4)


def test_with_many_pairs_it_is_the_formula_with_normal_quantiles() -> None:
    draw = random.Random(3)
    differences = [draw.gauss(0.0, 0.4) for _ in range(5_000)]
    normal = NormalDist()
    expected = (normal.inv_cdf(0.975) + normal.inv_cdf(0.8)) * stdev(differences) / math.sqrt(5_000)
    assert detectable_difference(differences) == pytest.approx(expected, rel=1e-3)


def test_pairs_that_repeat_their_cluster_show_no_more_than_one_of_each() -> None:
    draw = random.Random(4)
    once = [draw.gauss(0.0, 0.2) for _ in range(12)]
    thrice = [value for value in once for _ in range(3)]
    clusters = [number for number in range(12) for _ in range(3)]
    assert detectable_difference(thrice, clusters) == pytest.approx(detectable_difference(once))
    independent = detectable_difference(thrice)
    assert independent is not None
    assert independent < 0.65 * (detectable_difference(once) or 0)


def test_a_difference_of_that_size_is_found_four_times_in_five() -> None:
    draw = random.Random(5)
    pairs, samples = 10, 300
    planned = detectable_difference([-1.0, 1.0] * (pairs // 2))  # deviation √(10/9)
    assert planned is not None
    effect = planned / math.sqrt(10 / 9)
    found = sum(flip_p([draw.gauss(effect, 1.0) for _ in range(pairs)]) <= 0.05 for _ in range(samples))
    assert 0.72 <= found / samples <= 0.87


@given(st.lists(st.floats(-1, 1), max_size=5), st.floats(-1, 1))
def test_too_few_clusters_or_equal_differences_have_none(few: list[float], same: float) -> None:
    assert detectable_difference(few) is None
    assert detectable_difference(few * 4, list(range(len(few))) * 4) is None
    assert detectable_difference([same] * 20) is None


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=40), st.floats(0.01, 100))
def test_it_scales_with_the_differences_and_has_no_sign(differences: list[float], factor: float) -> None:
    one = detectable_difference(differences)
    if one is None or one < 1e-6:
        return
    assert one > 0
    assert detectable_difference([-factor * each for each in differences]) == pytest.approx(factor * one)


def test_the_range_is_in_points() -> None:
    assert describe_detectable([0.06, None, 0.041]) == "4.1 to 6.0 points"
    assert describe_detectable([0.05]) == "5.0 points"
    assert describe_detectable([None]) == ""
