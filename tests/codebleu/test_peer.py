"""Scores beside those of the package ``codebleu`` 0.7.0, on 1,000 pairs of real and mutated Java code."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path
from typing import Any

import pytest

from codetaste.codebleu.score import CodeBleu, codebleu
from codetaste.core.paths import cache_dir
from support.codebleu import peer
from support.codebleu.java_pairs import Pair, fetch_methods, make_pairs

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]

PACKAGE = "codebleu==0.7.0"
PUBLISHED = ("tree-sitter==0.22.3", "tree-sitter-java==0.21.0")
"""The releases that the package asks for."""
CURRENT = ("tree-sitter==0.26.1", "tree-sitter-java==0.23.5")
"""Ours: the package, installed without what it asks for, runs with them too."""
SEED = 20_261_125

Scores = list[list[float]]


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return make_pairs(fetch_methods(cache_dir(pytest.fail)), 1000, SEED)


@pytest.fixture(scope="module")
def published_scores(tmp_path_factory: pytest.TempPathFactory, pairs: list[Pair]) -> Scores:
    return peer_scores(tmp_path_factory.mktemp("published"), pairs, PUBLISHED)


@pytest.fixture(scope="module")
def current_scores(tmp_path_factory: pytest.TempPathFactory, pairs: list[Pair]) -> Scores:
    return peer_scores(tmp_path_factory.mktemp("current"), pairs, CURRENT)


def peer_scores(folder: Path, pairs: list[Pair], parsers: tuple[str, str]) -> Scores:
    """Return (ngram, weighted ngram, syntax, data flow, score) of each pair by the package."""
    venv.create(folder / "venv", with_pip=True)
    python = str(folder / "venv" / "bin" / "python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, PACKAGE, *parsers], check=True)
    (folder / "pairs.json").write_text(json.dumps(pairs), "utf-8")
    command = [python, "-W", "ignore", peer.__file__, str(folder / "pairs.json"), "ordered"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    scores: Scores = json.loads(done.stdout)["scores"]
    assert len(scores) == len(pairs)
    return scores


def row(score: CodeBleu) -> list[float]:
    assert score.data_flow is not None
    return [score.ngram, score.weighted_ngram, score.syntax, score.data_flow, score.score]


def near(left: list[float], right: list[float]) -> bool:
    return left == pytest.approx(right, abs=1e-12, rel=0)


def test_as_published_all_pairs_are_equal_with_the_same_parser(
    pairs: list[Pair], current_scores: Scores
) -> None:
    ours = [row(codebleu(candidate, reference, as_published=True)) for candidate, reference in pairs]
    assert [
        number for number, (a, b) in enumerate(zip(ours, current_scores, strict=True)) if not near(a, b)
    ] == []
    assert sum(each[4] < 0.9 for each in ours) > 500, "the pairs differ too little"


def test_as_published_only_pairs_that_the_old_grammar_reads_otherwise_differ(
    pairs: list[Pair], current_scores: Scores, published_scores: Scores
) -> None:
    ours = [row(codebleu(candidate, reference, as_published=True)) for candidate, reference in pairs]
    read_alike = [near(a, b) for a, b in zip(current_scores, published_scores, strict=True)]
    assert sum(read_alike) >= 980
    for mine, published, alike in zip(ours, published_scores, read_alike, strict=True):
        assert near(mine, published) == alike
        assert near(mine[:2], published[:2]), "words need no parser"


def test_the_score_differs_by_the_faults_alone(pairs: list[Pair], current_scores: Scores) -> None:
    differing: list[Any] = []
    for (candidate, reference), published in zip(pairs, current_scores, strict=True):
        score = codebleu(candidate, reference)
        has_fault = not published[3] or not (candidate + reference).isascii()
        if not has_fault:
            assert near(row(score), published), (candidate, reference)
        elif score.score != pytest.approx(published[4], abs=1e-12):
            differing.append((candidate, reference))
    assert len(differing) < 400
