"""The baseline: thresholds, flaky tests, and crashes that make it unusable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.evaluation.metrics import TestCounts
from codetaste.evaluation.test_runs.baseline import make_baseline
from codetaste.evaluation.test_runs.cases import CaseStatus
from codetaste.evaluation.test_runs.gates import Side
from codetaste.evaluation.test_runs.problems import RunProblem
from codetaste.evaluation.test_runs.test_run import TestRun


def run(passed: int, failed: int, **cases: CaseStatus) -> TestRun:
    return TestRun(TestCounts(passed, failed, 0, passed + failed), cases=cases)


CRASH = TestRun(problem=RunProblem.NO_RESULT, message="run_tests printed nothing")
LOST = TestRun(problem=RunProblem.SANDBOX_LOST, message="the engine is gone")
RUNS = st.lists(st.tuples(st.integers(10, 50), st.integers(0, 23)), min_size=1, max_size=6)
"""Numbers of passed and failed tests; of all, at least three tenths pass."""


@given(RUNS, RUNS)
def test_thresholds_are_the_worst_of_all_runs(
    golden: list[tuple[int, int]], base: list[tuple[int, int]]
) -> None:
    made = make_baseline(
        {Side.GOLDEN: [run(*each) for each in golden], Side.BASE: [run(*each) for each in base]}
    )
    assert made.thresholds is not None
    assert made.thresholds.min_passed == min(passed for passed, _ in golden + base)
    assert made.thresholds.max_failed == max(failed for _, failed in golden + base)


def test_crashed_run_leaves_no_thresholds() -> None:
    made = make_baseline({Side.GOLDEN: [run(9, 1), CRASH], Side.BASE: [run(9, 1)]})
    assert made.thresholds is None
    assert made.problem == "1 of 2 baseline runs on R∘X* crashed: run_tests printed nothing"


@pytest.mark.parametrize("counts", [(0, 0), (9, 0), (3, 8)])
def test_run_that_would_make_pass_trivial_leaves_no_thresholds(counts: tuple[int, int]) -> None:
    made = make_baseline({Side.GOLDEN: [run(9, 1)], Side.BASE: [run(9, 1), run(*counts)]})
    assert made.thresholds is None
    assert made.problem == (
        f"1 of 2 baseline runs on R are not valid: {counts[0]} of {sum(counts)} tests passed, "
        "and at least 10 tests and a share of 0.3 are needed"
    )


def test_run_without_infrastructure_does_not_count_and_is_shown() -> None:
    made = make_baseline({Side.GOLDEN: [run(9, 1), LOST], Side.BASE: [run(8, 2)]})
    assert made.thresholds is not None
    assert (made.thresholds.min_passed, made.thresholds.max_failed) == (8, 2)
    assert made.notes == ("1 baseline run could not be made",)


def test_side_without_any_run_leaves_no_thresholds() -> None:
    made = make_baseline({Side.GOLDEN: [run(9, 1)], Side.BASE: [LOST]})
    assert (made.thresholds, made.problem) == (None, "no baseline run on R could be made")


def test_flaky_tests_are_named() -> None:
    good, bad = CaseStatus.PASSED, CaseStatus.FAILED
    made = make_baseline(
        {
            Side.GOLDEN: [run(2, 0, a=good, b=good), run(1, 1, a=good, b=bad)],
            Side.BASE: [run(1, 1, a=bad, b=good), run(1, 1, a=bad, b=good)],
        }
    )
    assert made.flaky == ("b",)
    assert made.notes == ("1 test is flaky: b",)


def test_varying_counts_without_reports_are_noted() -> None:
    made = make_baseline({Side.GOLDEN: [run(9, 1), run(10, 0)], Side.BASE: [run(9, 1)]})
    assert made.notes == ("the counts of the baseline vary, so that some tests are flaky",)
