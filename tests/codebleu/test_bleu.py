"""BLEU and its weighted variant, against counts made one by one."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.codebleu.bleu import bleu, weighted_bleu
from codetaste.codebleu.java import KEYWORDS

words = st.lists(st.sampled_from(["if", "a", "b", "int"]), max_size=9)
references = st.lists(words.filter(bool), min_size=1, max_size=3)


def grams(text: list[str], n: int) -> list[list[str]]:
    return [text[i : i + n] for i in range(len(text) - n + 1)]


def mean_of(shares: list[tuple[float, float]]) -> float:
    if shares[0][0] == 0:
        return 0.0
    result = 1.0
    for matched, total in shares:
        result *= ((matched or 0.1) / total) ** 0.25
    return result


def slow_bleu(candidate: list[str], references: list[list[str]]) -> float:
    shares = []
    for n in range(1, 5):
        matched, left = 0, [grams(each, n) for each in references]
        for gram in grams(candidate, n):
            if any(gram in each for each in left):
                matched += 1
            for each in left:
                if gram in each:
                    each.remove(gram)
        shares.append((matched, max(1, len(grams(candidate, n)))))
    lengths = sorted(len(each) for each in references)
    nearest = min(lengths, key=lambda length: abs(length - len(candidate)))
    if not candidate:
        return 0.0
    return mean_of(shares) * (1 if len(candidate) > nearest else math.exp(1 - nearest / len(candidate)))


def slow_weighted_bleu(candidate: list[str], references: list[list[str]], keywords: set[str]) -> float:
    shares = []
    for n in range(1, 5):
        matched = total = 0.0
        for reference in references:
            left, sum_of_reference = grams(candidate, n), 0.0
            for gram in grams(reference, n):
                weight = 1.0 if n > 1 or gram[0] in keywords else 0.2
                sum_of_reference += weight
                if gram in left:
                    left.remove(gram)
                    matched += weight
            total += max(1.0, sum_of_reference)
        shares.append((matched, total))
    return mean_of(shares) * (math.exp(-1) if len(candidate) == 1 else 1.0)


@given(words, references)
def test_bleu_is_that_of_counts_made_one_by_one(candidate: list[str], references: list[list[str]]) -> None:
    assert bleu(candidate, references) == pytest.approx(slow_bleu(candidate, references), abs=1e-12)


@given(words, references)
def test_weighted_bleu_is_that_of_counts_made_one_by_one(
    candidate: list[str], references: list[list[str]]
) -> None:
    expected = slow_weighted_bleu(candidate, references, {"if", "int"})
    assert weighted_bleu(candidate, references, frozenset({"if", "int"})) == pytest.approx(
        expected, abs=1e-12
    )


def test_both_are_one_for_equal_texts_of_five_words() -> None:
    text = ["return", "a", "+", "b", ";"]
    assert bleu(text, [text]) == pytest.approx(1, abs=1e-15)
    assert weighted_bleu(text, [text], KEYWORDS) == pytest.approx(1, abs=1e-15)


def test_brevity_counts_for_bleu_alone() -> None:
    text = ["return", "a", "+", "b", ";", "}"]
    assert bleu(text[:5], [text]) == pytest.approx(math.exp(1 - 6 / 5))
    shares = [(1.8 / 2.0), 4 / 5, 3 / 4, 2 / 3]
    assert weighted_bleu(text[:5], [text], KEYWORDS) == pytest.approx(math.prod(shares) ** 0.25)


def test_a_lost_keyword_costs_more_than_another_lost_word() -> None:
    text = ["if", "a", "then", "b", "else", "c"]
    without = {word: [each for each in text if each != word] for word in ("if", "c")}
    scores = {word: weighted_bleu(each, [text], KEYWORDS) for word, each in without.items()}
    assert scores["if"] < scores["c"]


def test_nothing_in_common_is_zero() -> None:
    for candidate, reference in product(([], ["x"]), (["y"], ["y"] * 9)):
        assert bleu(candidate, [reference]) == weighted_bleu(candidate, [reference], KEYWORDS) == 0
