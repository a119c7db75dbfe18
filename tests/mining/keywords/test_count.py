"""The conditions of stage 1 on the counts of a message."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.filter_result import FilterResult, Stage
from codetaste.mining.keywords.count import KeywordCounts, find_keywords, fold_case, keyword_results
from codetaste.mining.keywords.sets import load_keyword_sets

BOUND = "at least 2; at least 1 of K+"
COUNTS = st.integers(0, 12)


def passes(strong_plus: int, weak_plus: int, strong_minus: int, weak_minus: int) -> bool:
    """The conditions as the paper writes them; a ratio over zero is infinite, and zero over zero is none."""
    if strong_minus:
        return False
    plus = strong_plus + weak_plus
    return plus > 0 if weak_minus == 0 else Fraction(plus, weak_minus) >= 2


@given(COUNTS, COUNTS, st.integers(0, 2), COUNTS)
def test_the_conditions_are_those_of_the_paper(strong: int, weak: int, minus: int, weak_minus: int) -> None:
    results = keyword_results(KeywordCounts(strong, weak, minus, weak_minus))
    assert all(result.passed for result in results) == passes(strong, weak, minus, weak_minus)
    assert all(result.passed == (not result.reason) for result in results)
    assert all(result.stage is Stage.KEYWORDS for result in results)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (
            KeywordCounts(1, 2, 2, 2),
            [
                ("strong_minus", "2", "0", "2 of K- strong in the message"),
                ("ratio", "3 / 2", BOUND, "3 of K+ in the message are less than 2 times the 2 of K- weak"),
            ],
        ),
        (
            KeywordCounts(0, 0, 0, 0),
            [
                ("strong_minus", "0", "0", ""),
                ("ratio", "0 / 0", BOUND, "no keyword of K+ in the message"),
            ],
        ),
    ],
)  # fmt: skip
def test_a_result_shows_its_numbers(counts: KeywordCounts, expected: list[tuple[str, str, str, str]]) -> None:
    assert keyword_results(counts) == [
        FilterResult(Stage.KEYWORDS, name, not reason, value, bound, reason)
        for name, value, bound, reason in expected
    ]


def test_the_matched_words_are_listed_in_the_order_of_the_message() -> None:
    matches = find_keywords("Rename A, lint it, break up B\n\nRefactoring; a fix", load_keyword_sets())
    assert matches.strong_plus == ("rename", "break up", "refactoring")
    assert matches.strong_minus == ("lint",)
    assert matches.counts == KeywordCounts(3, 0, 1, 0)


def test_a_dotted_capital_i_becomes_one_small_letter_as_in_duckdb() -> None:
    assert fold_case("FİX Σ\u212a") == "fix σk"
