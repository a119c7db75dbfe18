"""BM25, beside its formula computed without any library."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.retrieval.fusion import rank_by_score
from codetaste.retrieval.lexical import LexicalIndex

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
K1, B = 1.5, 0.75
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)


def bm25_by_formula(documents: list[list[str]], query: list[str]) -> list[float]:
    """Return the scores of Lucene's variant."""
    average = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for word in query:
            containing = sum(word in each for each in documents)
            if not containing:
                continue
            idf = math.log(1 + (len(documents) - containing + 0.5) / (containing + 0.5))
            count = document.count(word)
            score += idf * count / (count + K1 * (1 - B + B * len(document) / average))
        scores.append(score)
    return scores


@settings(max_examples=60)
@given(st.lists(words, min_size=1, max_size=12), st.lists(st.sampled_from([*WORDS, "other"]), max_size=8))
def test_scores_equal_the_formula(documents: list[list[str]], query: list[str]) -> None:
    index = LexicalIndex.build([" ".join(each) for each in documents])
    scores = index.scores(" ".join(query))
    wanted = bm25_by_formula(documents, query)
    assert scores == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    ranking = rank_by_score(scores)
    assert [round(wanted[number], 5) for number in ranking] == sorted(
        (round(each, 5) for each in wanted), reverse=True
    )


def test_documents_of_equal_text_have_equal_scores_in_their_order() -> None:
    index = LexicalIndex.build(["alpha beta", "gamma", "alpha beta", "beta alpha"])
    assert rank_by_score(index.scores("alpha"))[:3] == [0, 2, 3]


def test_a_query_without_a_known_token_scores_nothing() -> None:
    index = LexicalIndex.build(["alpha", "beta"])
    assert not index.scores("nothing of it").any()
    assert not index.scores("").any()


def test_a_stored_index_scores_the_same(tmp_path: Path) -> None:
    index = LexicalIndex.build(["alpha beta", "beta gamma gamma", "delta"])
    index.save(tmp_path / "bm25")
    assert np.array_equal(
        LexicalIndex.load(tmp_path / "bm25").scores("gamma beta"), index.scores("gamma beta")
    )
