"""The config of retrieval."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from codetaste.retrieval.config import RetrievalConfig


def test_the_defaults_are_those_of_the_paper() -> None:
    config = RetrievalConfig.model_validate({"examples": "examples.jsonl"})
    assert (config.rrf_k, config.candidates, config.top) == (60, 10, 3)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"embeddings": {}}, "write either folder"),
        ({"embeddings": {"folder": "x", "model": "y"}}, "write either folder"),
        ({"rerank": {"by": "endpoint"}}, 'rerank by "endpoint" needs model'),
        ({"rerank": {"by": "late-interaction", "model": "m"}}, "needs no model"),
        ({"rerank": {"by": "late-interaction"}}, r'by "late-interaction" needs embeddings\.folder'),
        (
            {"rerank": {"by": "late-interaction"}, "embeddings": {"model": "m"}},
            r'by "late-interaction" needs embeddings\.folder',
        ),
        ({"top": 11}, r"top \(11\) must not exceed candidates \(10\)"),
        ({"rrf_k": 0}, "greater than or equal to 1"),
        ({"examples": ""}, "must not be empty"),
    ],
)
def test_a_wrong_combination_is_one_line(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem) as caught:
        RetrievalConfig.model_validate({"examples": "examples.jsonl", **values})
    assert caught.value.error_count() == 1
