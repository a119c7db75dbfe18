"""Strategies and models side by side with the real tools: killed, continued, reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.flows.tiny_benchmark import (
    assert_no_call_billed_twice,
    assert_no_finished_job_ran_twice,
    leftover_processes,
)
from support.swe_refactor.strategy_run import Journal, StrategyRun, count, make_run

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
OUTCOMES = {
    ("simple", "strong"): ["verified", "verified"],
    ("simple", "weak"): ["compile_fails", "verified"],
    ("rag", "strong"): ["verified", "verified"],
    ("rag", "weak"): ["compile_fails", "verified"],
    ("multi-agent", "strong"): ["verified", "verified"],
    ("multi-agent", "weak"): ["verified", "verified"],
    ("agent", "strong-agent"): ["verified", "verified"],
    ("agent", "weak-agent"): ["no_change", "verified"],
}
"""Of the instances in their order: an extraction and an inlining."""


def in_the_middle_of_a_round(journal: Journal) -> bool:
    return any(line["event"] == "effect" and line["name"].startswith("round-1/evidence") for line in journal)


def while_answers_are_scored(journal: Journal) -> bool:
    return count(journal, "started", "score/") >= 3


def after_most_scores(journal: Journal) -> bool:
    return count(journal, "ended", "score/") >= 8


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "wall_s": 0}


def test_strategies_killed_and_continued_give_the_same_rows(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    killed = make_run(tmp_path / "killed", cache)
    for moment in (in_the_middle_of_a_round, while_answers_are_scored, after_most_scores):
        killed.kill_when(moment)
    done = killed.run("--json")
    assert done.code == 0, done.err
    assert_no_finished_job_ran_twice(killed.workspace.journal())
    for model in ("strong", "weak"):
        assert_no_call_billed_twice(killed.workspace.ledger(model))

    assert_outcomes(killed)
    assert_strong_ranks_better(killed)

    whole = make_run(tmp_path / "whole", cache)  # what was built and tested is in the cache
    assert whole.run("--json").code == 0
    assert [without_times(row) for row in whole.rows] == [without_times(row) for row in killed.rows]
    assert not list(leftover_processes(str(tmp_path)))


def assert_outcomes(run: StrategyRun) -> None:
    found: dict[tuple[str, str], list[str]] = {}
    for row in run.rows:
        found.setdefault((row["strategy"], row["model"]), []).append(row["outcome"])
    assert found == OUTCOMES


def assert_strong_ranks_better(run: StrategyRun) -> None:
    report = run.workspace.cli("swe-refactor", "report", "strategies", "--table", "ranking", "--json")
    assert report.code == 0, report.err
    [table] = report.json["tables"]
    order = {tuple(row["cells"][:2]): (at, row["cells"][5]) for at, row in enumerate(table["rows"])}
    for strategy, by in (("simple", ""), ("rag", ""), ("agent", "-agent")):
        (better, share), (worse, other) = order[strategy, f"strong{by}"], order[strategy, f"weak{by}"]
        assert better < worse  # in the order of the table; so few instances prove no difference
        assert (share["mean"], other["mean"]) == (1, 0.5)
        assert other["low"] < 0.5 < other["high"]
        assert share["low"] < share["high"]
