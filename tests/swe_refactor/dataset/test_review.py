"""The manual check: which instances are in the subset, and how far reviewers agree."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.dataset.review import ReviewSample, cohen_kappa, usual_sample_size
from support.swe_refactor.documents import COMMIT, document

INSTANCES = [
    RefactoringInstance.from_document(document(uniqueId=f"{COMMIT}_{number}")) for number in range(60)
]
VERDICT = st.sampled_from(["correct", "wrong", "unsure"])


@given(st.integers(0, 2**40), st.integers(0, 70), st.randoms())
def test_a_seed_gives_the_same_subset_in_any_order_and_a_larger_one_adds_to_it(
    seed: int, size: int, random: object
) -> None:
    shuffled = list(INSTANCES)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    drawn = ReviewSample(seed, size).draw(INSTANCES)
    assert len(drawn) == min(size, 60)
    assert ReviewSample(seed, size).draw(shuffled) == drawn
    assert ReviewSample(seed, size + 1).draw(INSTANCES)[: len(drawn)] == drawn


def test_another_seed_gives_another_subset() -> None:
    drawn = [[each.unique_id for each in ReviewSample(seed, 10).draw(INSTANCES)] for seed in range(20)]
    assert len(set(map(tuple, drawn))) == 20


@given(st.lists(st.tuples(VERDICT, VERDICT), max_size=30))
def test_kappa_is_what_its_definition_says(pairs: list[tuple[str, str]]) -> None:
    kappa = cohen_kappa(pairs)
    chance = [one == other for (one, _), (_, other) in product(pairs, pairs)]
    if all(chance):
        assert kappa is None
        return
    by_chance = Fraction(sum(chance), len(chance))
    equal = Fraction(sum(one == other for one, other in pairs), len(pairs))
    assert kappa == pytest.approx(float((equal - by_chance) / (1 - by_chance)))


def test_usual_size_is_cochrans() -> None:
    assert [usual_sample_size(each) for each in (0, 1, 18, 355, 1099, 10**9)] == [0, 1, 16, 76, 89, 97]
