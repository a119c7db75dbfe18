"""Rankings and their fusion, beside a brute-force model with exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from codetaste.retrieval.fusion import fuse_rankings, rank_by_score

rankings_of_documents = st.lists(
    st.permutations(range(12)).flatmap(lambda order: st.integers(0, 12).map(lambda cut: order[:cut])),
    max_size=4,
)


def fuse_by_definition(rankings: list[list[int]], k: int) -> list[int]:
    documents = sorted({number for ranking in rankings for number in ranking})
    scores = {
        number: sum(
            (Fraction(1, k + ranking.index(number) + 1) for ranking in rankings if number in ranking),
            Fraction(0),
        )
        for number in documents
    }
    return sorted(documents, key=lambda number: (-scores[number], number))


# 3/4 + 1/10 and 3/5 + 1/4 are equal, but not as sums of rounded parts.
@example([[0, 1, 2, 4]] * 3 + [[0, 1, 4, 3, 5, 6, 7, 8, 2]], 1)
@given(rankings_of_documents, st.sampled_from([1, 10, 60]))
def test_the_fusion_equals_the_definition_in_exact_fractions(rankings: list[list[int]], k: int) -> None:
    assert [number for number, _ in fuse_rankings(rankings, k)] == fuse_by_definition(rankings, k)


@given(rankings_of_documents, st.randoms())
def test_the_order_of_the_rankings_does_not_matter(rankings: list[list[int]], chance: object) -> None:
    shuffled = [*rankings]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fuse_rankings(shuffled, 60) == fuse_rankings(rankings, 60)


def test_one_rank_at_the_top_of_both_lists_scores_two_sixty_firsts() -> None:
    assert fuse_rankings([[4, 2], [4, 3]], 60)[0] == (4, 2 / 61)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=30))
def test_documents_with_equal_scores_stay_in_their_order(scores: list[float]) -> None:
    ranking = rank_by_score(np.asarray(scores, np.float32))
    assert ranking == sorted(range(len(scores)), key=lambda number: (-scores[number], number))
