"""Scored commits: their ranks, the filters of stage 3, and the files of both."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.commit import CommitRecord
from codetaste.mining.funnel import Funnel
from codetaste.mining.scoring.candidate import (
    DiffFacts,
    ScoredCommit,
    ScoreResult,
    commit_id,
    rank_by_message,
    rank_by_total,
    score_result_from_json,
    scoring_results,
)
from codetaste.mining.scoring.category import Category
from codetaste.mining.scoring.output import format_candidates, format_scores
from codetaste.mining.scoring.reply import ScoredReply
from codetaste.mining.scoring.scores import DiffScores, MessageScores

FACTS = DiffFacts("b" * 40, "c" * 40, Category.API, "model", "go")
DROPPED: ScoreResult[Any] = ScoreResult(problem="no usable reply of 3; the last one: no <classification>")


def scored(name: str, message: float | None, diff: float | str | None = "not scored") -> ScoredCommit:
    """A commit whose scores are linear in ``message`` and ``diff``, 0 to 1; None: without usable scores."""
    record = CommitRecord(f"o/{name}", name * 40, stars=7, date=datetime(2024, 1, 2, tzinfo=UTC), source="x")
    first = DROPPED if message is None else ScoreResult(ScoredReply(_message(message), f"because {name}"))
    if isinstance(diff, str):
        return ScoredCommit(record, first)
    second = DROPPED if diff is None else ScoreResult(ScoredReply(_diff(diff), "so", (), Category.API))
    return ScoredCommit(record, first, second, None if diff is None else FACTS)


def _message(value: float) -> MessageScores:
    return MessageScores(value, value, value, 0, 0, 0)


def _diff(value: float) -> DiffScores:
    return DiffScores(value, 0, 0, 0, 0, value, 0)


def names(commits: list[ScoredCommit]) -> list[str]:
    return [each.record.golden[0] for each in commits]


def test_of_equal_scores_the_repository_decides_and_then_the_hash() -> None:
    places = [("a/b-c", "1"), ("a/b", "2"), ("a/b", "1"), ("a-b/c", "3")]
    commits = [
        replace(scored("x", 0.5), record=CommitRecord(repository, golden * 40))
        for repository, golden in places
    ]
    ranked = [(each.record.repository, each.record.golden[0]) for each in rank_by_message(commits)]
    assert ranked == sorted(places)


def test_highest_scores_come_first_and_ties_go_by_name() -> None:
    commits = [scored("b", 0.5), scored("a", 0.5), scored("c", 0.9), scored("d", None), scored("e", 0.1)]
    assert names(rank_by_message(commits)) == ["c", "a", "b", "e"]
    assert names(rank_by_message(commits[::-1])) == ["c", "a", "b", "e"]


def test_total_counts_the_diff_three_times() -> None:
    commits = [scored("a", 1.0, 0.5), scored("b", 0.4, 0.75), scored("c", 0.9, None), scored("d", 1.0)]
    assert names(rank_by_total(commits)) == ["b", "a"]
    assert commits[1].total_score == pytest.approx((0.4 + 3 * 0.75) / 4)


def test_scores_that_differ_in_rounding_alone_are_equal() -> None:
    values = MessageScores(0.1, 0.7, 0.2, 0.3, 0, 0), MessageScores(0.1, 0.7, 0.2, 0, 0.3, 0)
    first, second = (
        ScoredCommit(CommitRecord(f"o/{name}", "a" * 40), ScoreResult(ScoredReply(value, "r")))
        for name, value in zip("ba", values, strict=True)
    )
    assert [each.record.repository for each in rank_by_message([first, second])] == ["o/a", "o/b"]


COMMITS = st.lists(st.tuples(st.none() | st.integers(0, 100), st.none() | st.integers(0, 100)), max_size=20)


@given(COMMITS, st.integers(1, 12), st.integers(1, 12))
def test_filters_drop_what_the_ranks_drop(
    numbers: list[tuple[int | None, int | None]], top_by_message: int, top: int
) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    plain = {letters[at]: pair for at, pair in enumerate(numbers)}
    order = sorted(
        (name for name in plain if plain[name][0] is not None), key=lambda n: (-(plain[n][0] or 0), n)
    )
    first = order[:top_by_message]
    second = sorted(
        (name for name in first if plain[name][1] is not None),
        key=lambda n: (-((plain[n][0] or 0) + 3 * (plain[n][1] or 0)), n),
    )[:top]
    commits = [
        scored(
            name,
            None if message is None else message / 100,
            "not scored" if name not in first else None if diff is None else diff / 100,
        )
        for name, (message, diff) in plain.items()
    ]
    assert names(rank_by_total(commits)[:top]) == second
    funnel = Funnel()
    for commit, results in scoring_results(commits, top_by_message, top):
        passed_all = all(result.passed for result in results)
        assert passed_all == (commit.record.golden[0] in second)
        assert all(bool(result.reason) != result.passed for result in results)
        funnel.add(commit.record.name, results)
    if funnel.rows:
        assert [row.filter for row in funnel.rows] == [
            "message scores",
            "message rank",
            "diff scores",
            "total rank",
        ][: len(funnel.rows)]
        assert funnel.rows[0].entered == len(commits)
        if len(funnel.rows) == 4:
            assert funnel.rows[-1].passed == len(second)


def test_filters_show_their_numbers() -> None:
    commits = [scored("a", 1.0, 0.5), scored("b", 0.9, None), scored("c", 0.1), scored("d", None)]
    shown = {
        commit.record.golden[0]: [
            (result.filter, result.value, result.bound, result.reason) for result in results
        ]
        for commit, results in scoring_results(commits, 2, 1)
    }
    assert shown["a"] == [
        ("message scores", "1.0000", "a usable reply", ""),
        ("message rank", "1", "<= 2", ""),
        ("diff scores", "0.5000", "a usable reply", ""),
        ("total rank", "1 with 0.6250", "<= 1", ""),
    ]
    assert shown["b"][-1] == ("diff scores", "none", "a usable reply", DROPPED.problem)
    assert shown["c"][-1] == ("message rank", "3", "<= 2", "not among the first 2")
    assert shown["d"] == [("message scores", "none", "a usable reply", DROPPED.problem)]


def test_results_can_be_journalled() -> None:
    commit = scored("a", 0.5, 0.25)
    for result, kind in ((commit.message, MessageScores), (commit.diff, DiffScores), (DROPPED, DiffScores)):
        assert result is not None
        read: Any = score_result_from_json(json.loads(json.dumps(result.to_json())), kind)
        assert read == result
    assert DiffFacts.from_json(json.loads(json.dumps(FACTS.to_json()))) == FACTS


def test_files_have_candidates_and_all_scores() -> None:
    commits = [scored("a", 1.0, 0.5), scored("b", 0.9, None), scored("c", None)]
    (row,) = csv.DictReader(io.StringIO(format_candidates(commits[:1])))
    assert row == {
        "owner": "o",
        "repo": "a",
        "commit_hash": "b" * 40,
        "golden_commit_hash": "c" * 40,
        "combined_score": "0.625",
        "category": "api",
        "language": "go",
        "message_score": "1.0",
        "diff_score": "0.5",
        "stars": "7",
        "files": "",
        "date": "2024-01-02T00:00:00+00:00",
        "licence": "",
        "source": "x",
    }
    lines = [json.loads(line) for line in format_scores(commits, commits[:1]).splitlines()]
    assert [line["candidate"] for line in lines] == [True, False, False]
    assert lines[0]["message"]["reply"]["reasoning"] == "because a"
    assert lines[2]["message"]["problem"].startswith("no usable reply")
    assert commit_id(commits[0].record) == f"o/a@{'a' * 40}"
