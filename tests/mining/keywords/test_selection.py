"""The choice of keyword sets on made-up repositories whose words are known."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from support.mining.keywords.commits import Commit, read_commits
from support.mining.keywords.selection import (
    Setting,
    Table,
    choose,
    make_table,
    measure,
    passing_rows,
    read_pool,
    select_commits,
    split,
)

POOL = read_pool()
SETTING = Setting(general_lift=2.0, minus_lift=4)
CANDIDATE_TEXTS = ["Rename a", "Rename b, use c", "Refactor a (#3)\n\n* fix lint", "Move a"]
OTHER_TEXTS = ["Add a", "Use b", "Fix a", "Use c, update copyright", "Rename d, copyright", "Update b, use d"]


def commit(message: str, *, repository: str = "o/r", merge: bool = False, candidate: bool = False) -> Commit:
    return Commit(repository, "0" * 40, merge, "2020-01-01", 50, candidate, message)


def commits() -> list[Commit]:
    made = []
    for repository in range(20):
        for number, text in enumerate([*CANDIDATE_TEXTS, *OTHER_TEXTS]):
            candidate = number < len(CANDIDATE_TEXTS)
            made.append(commit(f"{text} {number}", repository=f"o/r{repository}", candidate=candidate))
    return made


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(commits(), POOL)


def test_words_that_candidates_have_more_often_are_chosen(table: Table) -> None:
    choice = choose(table, POOL, np.ones(len(table.candidate), bool), SETTING)
    strong = {POOL.plus[i].text for i in choice.strong_plus}
    weak = {POOL.plus[i].text for i in choice.weak_plus}
    assert {"rename~", "refactor*", "deduplicat*"} <= strong
    assert {"reorganiz*"} <= weak
    assert not {"use~", "add~"} & (strong | weak)
    assert [POOL.minus[i].text for i in choice.weak_minus] == ["copyright"]
    score = measure(table, passing_rows(table, POOL, choice), np.ones(len(table.candidate), bool))
    assert score == (1.0, 0.0, 0.0)


def test_the_choice_does_not_depend_on_rows_left_out(table: Table) -> None:
    train = ~split(table, np.ones(len(table.candidate), bool), 0)[0]
    changed = table.plus.copy()
    changed[~train] += 1
    assert choose(table, POOL, train, SETTING) == choose(table._replace(plus=changed), POOL, train, SETTING)


def test_each_repository_is_left_out_once(table: Table) -> None:
    folds = split(table, np.ones(len(table.candidate), bool), 3)
    assert sum(fold.astype(int) for fold in folds).tolist() == [1] * len(table.candidate)  # type: ignore[union-attr]
    for fold in folds:
        assert not set(table.repository[fold]) & set(table.repository[~fold])


def test_repeated_texts_are_left_out() -> None:
    pull_request = commit("Merge pull request #1 from a/b\n\nRename a", merge=True)
    selected = [commit("Rename b"), commit("Merge branch 'b'", merge=True, candidate=True), pull_request]
    left_out = [commit("Merge branch 'b'", merge=True), commit("Rename b"), commit("Rename a")]
    assert set(select_commits([*selected, *left_out])) == set(selected)


def test_large_commits_and_candidates_are_read_from_a_clone(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = ["git", *identity, "-C", str(tmp_path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    hashes = []
    for message, files in [("small", 1), ("odd \x01\x02\n\x01 lines", 45), ("candidate", 1), ("large", 46)]:
        for number in range(files):
            (tmp_path / f"{number}").write_text(f"{message}{number}")
        git("add", "-A")
        git("commit", "-qm", message)
        hashes.append(git("rev-parse", "HEAD"))
    found = list(read_commits("o/r", tmp_path, {hashes[2], "0" * 40}))
    assert [(each.hash, each.files, each.candidate, each.message.strip()) for each in found] == [
        (hashes[3], 46, False, "large"),
        (hashes[2], 1, True, "candidate"),
        (hashes[1], 45, False, "odd \x01\x02\n\x01 lines"),
    ]
