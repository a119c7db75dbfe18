"""The file of rows: what is written is read again, and an unusable line is one clear error."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.codebleu.score import CodeBleu
from codetaste.errors import Cause, ConfigError
from codetaste.orchestration.job import Status
from codetaste.swe_refactor.answers.problem import AnswerProblem, AnswerProblemKind
from codetaste.swe_refactor.report.failures.category import FailureCategory
from codetaste.swe_refactor.report.outcome import NO_ANSWER, NOT_COUNTED, OUTCOMES, NoScore, outcome_of_job
from codetaste.swe_refactor.report.trial_row import TrialRow
from codetaste.swe_refactor.report.trials_file import read_trials, update_trials, write_trials
from codetaste.swe_refactor.score.answer_score import AnswerScore, ScoreOutcome
from codetaste.swe_refactor.score.check import CheckOutcome, RefactoringCheck
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome
from support.swe_refactor.trial_rows import trial_row

SIMILAR = CodeBleu(0.5, 0.5, 0.5, None, 0.5)
EMPTY = AnswerScore(AnswerProblem(AnswerProblemKind.EMPTY, "it is empty"))


def scored(
    tests: TestOutcome = TestOutcome.PASSED, check: CheckOutcome = CheckOutcome.VERIFIED, log: str = ""
) -> AnswerScore:
    return AnswerScore(
        None, TestedAnswer(tests, log=log), RefactoringCheck(check, published=True), codebleu=SIMILAR
    )


scores = st.one_of(
    st.builds(AnswerScore, st.builds(AnswerProblem, st.sampled_from(AnswerProblemKind), st.text())),
    st.builds(
        AnswerScore,
        st.none(),
        st.none() | st.builds(TestedAnswer, st.sampled_from(TestOutcome), st.text(), log=st.text()),
        st.none() | st.builds(RefactoringCheck, st.sampled_from(CheckOutcome), st.text(), st.booleans()),
        st.none() | st.just(SIMILAR),
    ),
)
rows = st.builds(
    trial_row,
    success=st.just(False),  # noqa: FBT003 - a strategy
    strategy=st.sampled_from(["simple", "rag"]),
    model=st.sampled_from(["m", "ü\n| &", "=1+1"]),
    instance=st.sampled_from("abc"),
    attempt=st.integers(1, 3),
    outcome=st.sampled_from(NoScore),
    codebleu=st.none(),
    published_check=st.just(False),  # noqa: FBT003 - a strategy
    cost_usd=st.none() | st.decimals(0, 10**6, places=9),
    turns=st.none() | st.integers(0, 10**6),
    wall_s=st.none() | st.floats(0, 1e9),
    run=st.sampled_from(["", "r"]),
    scripted=st.booleans(),
    detail=st.text(),
)


@given(st.lists(st.tuples(rows, st.none() | scores), unique_by=lambda pair: pair[0].key))
def test_rows_come_back_as_they_were(tmp_path_factory: Any, made: list[Any]) -> None:
    path = tmp_path_factory.mktemp("rows") / "trials.jsonl"
    written = [row if score is None else row.with_score(score) for row, score in made]
    write_trials(path, written)
    assert read_trials(path) == written
    costs = [json.loads(line)["cost_usd"] for line in path.read_text().splitlines()]
    assert costs == [None if row.cost_usd is None else f"{row.cost_usd:f}" for row in written]


@given(scores)
def test_a_row_says_what_its_score_says(score: AnswerScore) -> None:
    row = trial_row(success=False, outcome=NoScore.NOT_RUN).with_score(score)
    assert row.counted == (
        score.outcome is not ScoreOutcome.NOT_SCORED and row.outcome is not CheckOutcome.TOOL_FAILED
    )
    assert row.success == score.is_success
    assert row.outcome == ("verified" if score.is_success else score.reason)
    assert (row.failure is not None) == (row.counted and not row.success)


def test_a_score_says_why_its_trial_failed() -> None:
    missing = "A.java:1: error: cannot find symbol\n"
    row = trial_row(success=False)
    assert row.with_score(scored(TestOutcome.COMPILE_FAILS, log=missing)).failure == "missing symbol"
    found = row.with_score(scored(check=CheckOutcome.OTHER_TYPE), "void f() { }")
    assert (found.failure, found.codebleu, found.published_check) == ("empty or trivial method", 0.5, True)
    unusable = row.with_score(EMPTY)
    assert (unusable.failure, unusable.codebleu, unusable.detail) == (
        FailureCategory.FORMAT,
        0.0,
        "it is empty",
    )


def test_all_outcomes_differ_and_those_without_an_answer_are_failures() -> None:
    kinds = (AnswerProblemKind, TestOutcome, CheckOutcome, NoScore)
    assert len(OUTCOMES) == sum(map(len, kinds))
    assert not NO_ANSWER & NOT_COUNTED
    assert [each for each in NoScore if each not in NO_ANSWER | NOT_COUNTED] == []
    assert trial_row(success=False, outcome=NoScore.BUDGET, codebleu=None).similarity == 0.0


@pytest.mark.parametrize(
    ("status", "cause", "counted"),
    [
        (Status.BUDGET_EXCEEDED, Cause.BUDGET, True),
        (Status.TIMEOUT, Cause.DEADLINE, True),
        (Status.FAILED, Cause.REFUSED, True),
        (Status.FAILED, Cause.UNAVAILABLE, False),
        (Status.FAILED, Cause.MALFORMED, False),
        (Status.FAILED, Cause.SANDBOX, False),
        (Status.FAILED, Cause.FAULT, False),
        (Status.FAILED, None, False),
        (Status.CANCELLED, Cause.CANCELLED, False),
        (Status.SKIPPED, Cause.NEED, False),
        (Status.DONE, None, False),
    ],
)
def test_limits_and_refusals_are_failures_but_faults_are_not(
    status: Status, cause: Cause | None, counted: bool
) -> None:
    outcome = outcome_of_job(status, cause)
    assert trial_row(success=False, outcome=outcome).counted is counted


def test_every_cause_has_an_outcome() -> None:
    assert all(outcome_of_job(status, cause) for status in Status for cause in (*Cause, None))


BAD: dict[str, Any] = {
    "outcome": ["passed", "unknown", 1, None],
    "compiles_and_passes": [1, "true", None, False],
    "verified": [None],
    "codebleu": [1.5, "0.5", math.nan, 0.25],
    "cost_usd": [0.01, "-1", "NaN", "1e999", "x", "\u0661"],
    "turns": [1.5, True, -1, 10**40],
    "wall_s": [-1, math.inf, 10**400, "1"],
    "attempt": [0, "1"],
    "failure": ["unknown", 1, []],
    "model": ["", " ", 1, "x" * 2_000],
    "score": [1, [], {}, {"problem": None}, EMPTY.to_json()],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in BAD.items() for value in values])
def test_a_wrong_value_is_one_line_with_file_line_and_key(tmp_path: Path, key: str, value: Any) -> None:
    path = write(tmp_path, *[trial_row(instance=each).with_score(scored()) for each in "ab"])
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{json.dumps({**json.loads(second), key: value})}\n")
    with pytest.raises(ConfigError) as error:
        read_trials(path)
    [problem] = error.value.problems
    assert problem.startswith(f"{path}, line 2: ")
    assert key in problem or key == "score"
    assert "\n" not in problem
    assert len(problem) < 400


@pytest.mark.parametrize("key", ["strategy", "outcome", "cost_usd", "score", "run"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    path = write(tmp_path, trial_row())
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != key}))
    with pytest.raises(ConfigError, match=f"line 1: {key}: missing"):
        read_trials(path)


@pytest.mark.parametrize("line", ["", "{", "[]", "null", "[" * 10**5, '{"a": 1}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, trial_row())
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(ConfigError, match="line 2"):
        read_trials(path)


def test_the_same_trial_twice_names_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path, trial_row(), trial_row(attempt=2), trial_row(cost_usd=Decimal(3)))
    with pytest.raises(ConfigError, match=r"line 3: the same trial as line 1 \(simple, m, i1, attempt 1\)"):
        read_trials(path)


def test_other_keys_may_be_added(tmp_path: Path) -> None:
    path = write(tmp_path, trial_row())
    path.write_text(json.dumps({**json.loads(path.read_text()), "later": [1]}))
    assert read_trials(path) == [trial_row()]


def test_half_a_character_of_a_model_does_no_harm(tmp_path: Path) -> None:
    [row] = read_trials(write(tmp_path, trial_row(detail="\ud800")))
    assert row.detail == "\ufffd"


def test_no_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"trials\.jsonl: cannot be read: No such file"):
        read_trials(tmp_path / "trials.jsonl")


def write(folder: Path, *made: TrialRow) -> Path:
    write_trials(folder / "trials.jsonl", made)
    return folder / "trials.jsonl"


def made(instance: str, outcome: NoScore | None = None) -> TrialRow:
    row = TrialRow("simple", "m", instance, "p", "Extract Method", 1)
    return row.with_score(scored()) if outcome is None else TrialRow(**{**fields(row), "outcome": outcome})


def fields(row: TrialRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in TrialRow.__slots__}


def test_a_later_session_keeps_rows_of_other_trials_and_of_those_it_did_not_finish(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    update_trials(path, [made("a"), made("b"), made("c")], ())
    first = path.read_text().splitlines()
    stopped, timeout = made("b", NoScore.NOT_RUN), made("c", NoScore.TIME_LIMIT)
    update_trials(path, [stopped, timeout, made("d", NoScore.NOT_RUN)], {stopped.key})
    outcomes = {row.instance: row.outcome for row in read_trials(path)}
    verified = CheckOutcome.VERIFIED
    assert outcomes == {"a": verified, "b": verified, "c": NoScore.TIME_LIMIT, "d": NoScore.NOT_RUN}
    assert set(first[:2]) <= set(path.read_text().splitlines())


def test_a_damaged_line_of_an_earlier_session_goes(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text('{"strategy": 1}\n[]\n\x00\n')
    update_trials(path, [made("a")], ())
    assert [row.instance for row in read_trials(path)] == ["a"]
