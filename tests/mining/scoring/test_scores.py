"""The formulas of CodeTaste A.1, with the answers of Figures 9 and 10 computed by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.scoring.scores import (
    DiffScores,
    MessageScores,
    diff_score,
    message_score,
    total_score,
)

FIGURE_9 = MessageScores(
    large_scale_refactor_score=0.88,
    true_refactor_score=0.82,
    message_cohesion_score=0.72,
    length_penalty=0.12,
    trivial_score=0.08,
    uncertainty=0.12,
)
FIGURE_10 = DiffScores(
    refactor_likelihood=0.92,
    mixed_change_penalty=0.05,
    risky_change_score=0.25,
    automated_pattern_score=0.75,
    uncertainty=0.08,
    complexity=0.85,
    trivial_score=0.12,
)
ONE = st.decimals(0, 1, places=2, allow_nan=False)


def test_message_of_figure_9() -> None:
    # 0.308 + 0.369 + 0.144 = 0.821; 0.024 + 0.016 + 0.024 = 0.064
    assert message_score(FIGURE_9) == pytest.approx(0.757)


def test_diff_of_figure_10() -> None:
    # 0.736 + 0.17 = 0.906; 1.5 * (0.02 + 0.05 + 0.008 + 0.018 + 0.1125) = 1.5 * 0.2085 = 0.31275
    assert diff_score(FIGURE_10) == pytest.approx(0.59325)


def test_total_of_both_figures() -> None:
    # (0.757 + 3 * 0.59325) / 4 = 2.53675 / 4
    assert total_score(message_score(FIGURE_9), diff_score(FIGURE_10)) == pytest.approx(0.6341875)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((1, 1, 1, 0, 0, 0), 1),
        ((0, 0, 0, 1, 1, 1), -0.6),
        ((1, 0, 0, 0, 0, 0), 0.35),
        ((0, 1, 0, 0, 0, 0), 0.45),
        ((0, 0, 1, 0, 0, 0), 0.2),
        ((0, 0, 0, 1, 0, 0), -0.2),
        ((0, 0, 0, 0, 1, 0), -0.2),
        ((0, 0, 0, 0, 0, 1), -0.2),
    ],
)
def test_weights_of_a_message(numbers: tuple[float, ...], expected: float) -> None:
    assert message_score(MessageScores(*numbers)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("refactor_likelihood", 0.8),
        ("complexity", 0.2),
        ("mixed_change_penalty", -0.6),
        ("risky_change_score", -0.3),
        ("uncertainty", -0.15),
        ("trivial_score", -0.225),
        ("automated_pattern_score", -0.225),
    ],
)
def test_weights_of_a_diff(name: str, expected: float) -> None:
    names = DiffScores.__dataclass_fields__
    scores = DiffScores(**{each: float(each == name) for each in names})
    assert diff_score(scores) == pytest.approx(expected)


@given(st.tuples(*[ONE] * 6), st.tuples(*[ONE] * 7))
def test_scores_are_those_of_exact_arithmetic(message: tuple, diff: tuple) -> None:  # type: ignore[type-arg]
    large, true, cohesion, length, trivial, unsure = map(Fraction, message)
    s_msg = Fraction("0.35") * large + Fraction("0.45") * true + cohesion / 5
    s_msg -= (length + trivial + unsure) / 5
    likely, mixed, risky, auto, unsure, complexity, trivial = map(Fraction, diff)
    penalty = (40 * mixed + 20 * risky + 10 * unsure + 15 * trivial + 15 * auto) / 100
    s_diff = (4 * likely + complexity) / 5 - Fraction("1.5") * penalty
    made = message_score(MessageScores(*map(float, message))), diff_score(DiffScores(*map(float, diff)))
    assert made == pytest.approx((float(s_msg), float(s_diff)), abs=1e-12)
    assert total_score(*made) == pytest.approx(float((s_msg + 3 * s_diff) / 4), abs=1e-12)
    assert -0.6 - 1e-12 <= made[0] <= 1 + 1e-12
    assert -1.5 - 1e-12 <= made[1] <= 1 + 1e-12


@pytest.mark.parametrize("wrong", [-0.01, 1.01, float("nan"), float("inf")])
def test_score_outside_of_its_range_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"true_refactor_score: .* is outside of"):
        MessageScores(0, wrong, 0, 0, 0, 0)
