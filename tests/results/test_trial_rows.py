"""Rows of SWE-Refactor's trials, and of published outputs of CodeTaste."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from codetaste.codebleu.score import CodeBleu
from codetaste.results.load import load
from codetaste.swe_refactor.answers.problem import AnswerProblem, AnswerProblemKind
from codetaste.swe_refactor.report.outcome import NoScore
from codetaste.swe_refactor.report.trials_file import write_trials
from codetaste.swe_refactor.score.answer_score import AnswerScore
from codetaste.swe_refactor.score.check import CheckOutcome, RefactoringCheck
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome
from support.evaluation.published_outputs import ID, Outputs
from support.swe_refactor.trial_rows import trial_row

PASSED = TestedAnswer(TestOutcome.PASSED, compiles=True, passed=7, skipped=2)
BLEU = CodeBleu(0.5, 0.6, 0.7, None, 0.6)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a success, an answer that cannot be used, a refusal, a budget and a machine that failed."""
    unusable = AnswerScore(AnswerProblem(AnswerProblemKind.HTML, "it is HTML"))
    verified = AnswerScore(None, PASSED, RefactoringCheck(CheckOutcome.VERIFIED, published=True), BLEU)
    unscored = {"codebleu": None, "success": False}
    rows = [
        trial_row(instance="i1", run="r", success=False).with_score(verified),
        trial_row(instance="i2", run="r", success=False).with_score(unusable),
        trial_row(instance="i3", run="r", **unscored, outcome=AnswerProblemKind.REFUSED, cost_usd=None),
        trial_row(instance="i4", run="r", **unscored, outcome=NoScore.BUDGET, detail="$1 is spent"),
        trial_row(instance="i5", run="r", **unscored, outcome=NoScore.INFRASTRUCTURE, attempt=2),
    ]
    (tmp_path / "r/swe_refactor").mkdir(parents=True)
    write_trials(tmp_path / "r/swe_refactor/trials.jsonl", rows)
    return tmp_path / "r"


def test_each_answer_has_an_outcome_in_one_word(run: Path) -> None:
    rows = load(run).trials
    assert [(row.instance, row.outcome, row.status) for row in rows] == [
        ("i1", "success", "verified"),
        ("i2", "failure", "html"),
        ("i3", "refused", "refused"),
        ("i4", "budget_exceeded", "budget_exceeded"),
        ("i5", "infrastructure_error", "infrastructure_failure"),
    ]
    assert [row.reason for row in rows] == [None, "it is HTML", None, "$1 is spent", None]
    assert {(row.agent, row.benchmark, row.language, row.category) for row in rows} == {
        ("simple, m", "swe-refactor", "Java", "Extract Method")
    }


def test_the_metrics_of_an_answer_are_in_its_row_and_unknown_ones_are_none(run: Path) -> None:
    verified, unusable, refused, _, machine = load(run).trials
    assert (verified.tests_passed, verified.tests_failed, verified.tests_skipped) == (7, 0, 2)
    assert (verified.codebleu, verified.codebleu_syntax, verified.codebleu_data_flow) == (0.6, 0.7, None)
    assert (verified.compiles, verified.verified, verified.failure) == (True, True, None)
    assert (unusable.codebleu, unusable.compiles, unusable.verified, unusable.failure) == (
        *(0.0, None, False),
        "format",
    )
    assert (refused.cost_usd, refused.codebleu, refused.failure) == (None, 0.0, "no answer")
    assert (machine.verified, machine.codebleu, machine.failure, machine.attempt) == (None, None, None, 2)
    assert verified.cost_usd == float(Decimal("0.01"))


def test_published_outputs_give_rows_with_both_aggregations(tmp_path: Path) -> None:
    made = Outputs(tmp_path / "outputs")
    made.add_baselines((20, 1), (21, 0))
    made.add_null()
    made.add_trial("a")
    made.add_trial("b", at="instructed/plan", tests=None)
    lost = made.add_trial("c", metadata={"finish_reason": "timeout", "cost_usd": None})
    (lost / "prediction.diff").unlink()
    (lost / "evaluation/evaluation_result.json").unlink()
    rows = {row.agent: row for row in load(tmp_path).trials}
    first = rows["a"]
    assert (first.instance, first.source, first.outcome, first.ifr) == (
        ID,
        "published",
        "partial_success",
        0.7,
    )
    assert (first.additive_rules, first.reductive_rules) == (4, 6)
    assert (first.strict_alignment, first.published_ifr, first.cost_usd) == (0.7, 0.7, 1.25)
    assert (rows["b"].passed, rows["b"].tests_passed, rows["b"].published_ifr) == (None, None, 0.7)
    assert (rows["c"].outcome, rows["c"].strict_ifr, rows["c"].published_ifr) == ("timeout", 0.0, None)
    assert (rows["c"].cost_usd, rows["c"].ifr) == (None, None)
    assert (rows["null_agent"].pseudo, rows["null_agent"].track) == (True, None)
    assert {row.scripted for row in rows.values()} == {None}


@pytest.mark.parametrize(("provider", "scripted"), [("scripted", True), ("anthropic", False)])
def test_a_scripted_model_is_known_from_the_files_of_its_trial(
    tmp_path: Path, provider: str, *, scripted: bool
) -> None:
    made = Outputs(tmp_path / "outputs")
    folder = made.add_trial("a", metadata={"additional": {"codetaste_version": "0.1.0"}})
    config = json.loads((folder / "agent_config.json").read_text())
    config["model"]["provider"] = provider
    (folder / "agent_config.json").write_text(json.dumps(config))
    assert [row.scripted for row in load(tmp_path).trials] == [scripted]
