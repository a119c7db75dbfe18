"""What became of a trial, in one word: machines, refusals, limits and wrong answers are told apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codetaste.evaluation.trials.records import TrialMetadata, TrialRecord, TrialScores, TrialStatus
from codetaste.results.outcome import OutcomeFacet, facet_of_answer, facet_of_record, reason_of_record
from codetaste.swe_refactor.report.outcome import NOT_COUNTED, OUTCOMES

F = OutcomeFacet
S = TrialStatus


def record(
    status: TrialStatus, finish: str = "success", *, interruption: str = "", **values: float | bool | None
) -> TrialRecord:
    metadata = TrialMetadata(finish_reason=finish, interruption=interruption)
    scores = TrialScores(status, **values)  # type: ignore[arg-type]
    return TrialRecord("r", "a", "open", "direct", "o__r-1", "o/r", "", "", 1, Path(), metadata, scores)


@pytest.mark.parametrize(
    ("passed", "ifr", "expected"),
    [
        (True, 1.0, F.SUCCESS),
        (None, 1.0, F.SUCCESS),
        (True, 0.5, F.PARTIAL_SUCCESS),
        (True, 0.0, F.FAILURE),
        (False, 1.0, F.FAILURE),
        (True, None, F.NOT_SCORED),
    ],
)
def test_the_verdict_on_a_patch_is_its_facet(passed: bool | None, ifr: float | None, expected: F) -> None:
    assert facet_of_record(record(S.SCORED, passed=passed, ifr=ifr)) is expected


@pytest.mark.parametrize(
    ("status", "finish", "end", "expected"),
    [
        (S.FAILED, "timeout", "", F.TIMEOUT),
        (S.FAILED, "budget_exceeded", "", F.BUDGET_EXCEEDED),
        (S.FAILED, "execution_error", "", F.FAILURE),
        (S.FAILED, "execution_error", "malformed", F.FAILURE),
        (S.FAILED, "execution_error", "max_turns", F.MAX_TURNS),
        (S.FAILED, "execution_error", "refused", F.REFUSED),
        (S.FAILED, "error", "", F.INFRASTRUCTURE_ERROR),
        (S.FAILED, "error", "refused", F.REFUSED),
        (S.FAILED, "error", "rate_limit", F.INFRASTRUCTURE_ERROR),
        (S.FAILED, "error_planmode", "", F.FAILURE),
        (S.FAILED, "", "", F.FAILURE),
        (S.REFUSED, "budget_exceeded", "budget", F.BUDGET_EXCEEDED),
        (S.REFUSED, "", "", F.REFUSED),
        (S.DOES_NOT_APPLY, "success", "", F.FAILURE),
        (S.NOT_SCORED, "success", "", F.NOT_SCORED),
        (S.PARTIAL, "success", "", F.NOT_SCORED),
        (S.NOT_SCORED, "", "running", F.NOT_ENDED),
        (S.NOT_SCORED, "", "interrupted", F.NOT_ENDED),
        (S.UNREADABLE, "error", "", F.UNREADABLE),
    ],
)
def test_a_trial_without_a_success_has_the_facet_of_its_cause(
    status: TrialStatus, finish: str, end: str, expected: F
) -> None:
    assert facet_of_record(record(status, finish), end) is expected


@pytest.mark.parametrize(
    ("passed", "ifr", "missing", "expected"),
    [
        (None, 0.0, "no test results are recorded", "no rule is satisfied; no test results are recorded"),
        (False, 1.0, "", "the tests do not pass"),
        (False, 0.0, "", "the tests do not pass; no rule is satisfied"),
        (None, 1.0, "no test results are recorded", "no test results are recorded"),
        (True, 0.5, "", ""),
    ],
)
def test_the_reason_of_a_failure_is_its_verdict_before_what_is_missing(
    passed: bool | None, ifr: float, missing: str, expected: str
) -> None:
    scored = record(S.SCORED, passed=passed, ifr=ifr)
    assert reason_of_record(replace(scored, scores=replace(scored.scores, reason=missing))) == expected


def test_a_limit_explains_a_patch_without_success_but_takes_no_success_away() -> None:
    assert facet_of_record(record(S.SCORED, "timeout", passed=False, ifr=0.5)) is F.TIMEOUT
    assert facet_of_record(record(S.SCORED, "timeout", passed=True, ifr=0.5)) is F.PARTIAL_SUCCESS


def test_an_interrupted_trial_has_not_ended() -> None:
    assert facet_of_record(record(S.NOT_SCORED, interruption="the run was stopped")) is F.NOT_ENDED


def test_answers_that_count_are_never_the_fault_of_a_machine() -> None:
    facets = {name: facet_of_answer(outcome) for name, outcome in OUTCOMES.items()}
    assert [name for name, facet in facets.items() if facet is F.SUCCESS] == ["verified"]
    assert facets["budget_exceeded"] is F.BUDGET_EXCEEDED
    assert facets["timeout"] is F.TIMEOUT
    assert facets["max_turns"] is F.MAX_TURNS
    assert facets["refused"] is F.REFUSED
    assert facets["tests_fail"] is F.FAILURE
    assert facets["not_run"] is F.NOT_ENDED
    blameless = {F.INFRASTRUCTURE_ERROR, F.NOT_SCORED, F.NOT_ENDED}
    found = {name for name, facet in facets.items() if facet in blameless}
    assert found == {each.value for each in NOT_COUNTED}


def test_every_facet_has_a_label_of_its_own() -> None:
    assert len({facet.label for facet in F}) == len(F)
