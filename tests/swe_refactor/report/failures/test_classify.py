"""Failures get the category of the first thing that is wrong, and the table counts them."""

from __future__ import annotations

import pytest

from codetaste.swe_refactor.answers.problem import AnswerProblemKind
from codetaste.swe_refactor.report.failures.category import FailureCategory
from codetaste.swe_refactor.report.failures.classify import classify_failure
from codetaste.swe_refactor.report.failures.table import failure_table
from codetaste.swe_refactor.report.failures.trivial_method import has_trivial_method
from codetaste.swe_refactor.report.outcome import OUTCOMES
from codetaste.swe_refactor.score.check import CheckOutcome
from codetaste.swe_refactor.score.tested_answer import TestOutcome
from support.swe_refactor.trial_rows import trial_row

SYMBOL, TYPES, SYNTAX, RETURN = (
    f"A.java:1: error: {message}\n"
    for message in (
        *("cannot find symbol", "incompatible types: int cannot be converted to A", "';' expected"),
        "missing return statement",
    )
)


@pytest.mark.parametrize(
    ("outcome", "category"),
    [
        ("no_parts", "format"),
        ("two_classes", "format"),
        ("syntax_error", "syntax"),
        ("no_file", "wrong place"),
        ("wrong_class", "wrong place"),
        ("not_inlined", "no refactoring"),
        ("method_name", "other refactoring"),
        ("changes_other_code", "other changes"),
        ("wrong_tree", "other"),
        ("edits_tests", "other changes"),
        ("tests_fail", "tests"),
        ("hangs", "tests"),
        ("none_found", "no refactoring"),
        ("other_type", "other refactoring"),
        ("other_class", "wrong place"),
        ("impure", "other changes"),
        ("tool_failed", "other"),
        ("budget_exceeded", "no answer"),
        ("refused", "no answer"),
    ],
)
def test_outcomes_have_a_category(outcome: str, category: str) -> None:
    assert classify_failure(OUTCOMES[outcome]) == category


@pytest.mark.parametrize("problem", AnswerProblemKind)
def test_every_problem_of_an_answer_has_a_category(problem: AnswerProblemKind) -> None:
    found = classify_failure(problem)
    assert (found is FailureCategory.OTHER) == (problem is AnswerProblemKind.WRONG_TREE)


@pytest.mark.parametrize(
    ("output", "category"),
    [
        (RETURN, "compilation"),
        (RETURN + TYPES, "types"),
        (TYPES + SYMBOL, "missing symbol"),
        (SYMBOL + SYNTAX, "syntax"),
        ("BUILD FAILED", "compilation"),
        ("", "compilation"),
    ],
)
def test_the_most_basic_error_of_the_compiler_counts(output: str, category: str) -> None:
    assert classify_failure(TestOutcome.COMPILE_FAILS, output) == category


def test_an_empty_method_is_why_the_check_failed_but_not_why_tests_fail() -> None:
    assert classify_failure(CheckOutcome.NONE_FOUND, code="void f() { }") == "empty or trivial method"
    assert classify_failure(CheckOutcome.OTHER_TYPE, code="void f() { g(); }") == "other refactoring"
    assert classify_failure(TestOutcome.TESTS_FAIL, code="void f() { }") == "tests"


@pytest.mark.parametrize(
    ("code", "trivial"),
    [
        ("void f() { }", True),
        ("void f() { /* as before */ }", True),
        ("void f() { return; }", True),
        ("int f() { return 0; }", True),
        ("Object f() { return null; }", True),
        ("A f() { return this; }", True),
        ('void f() { throw new UnsupportedOperationException("later"); }', True),
        ("void f() { throw new IllegalStateException(); }", False),
        ("int f() { return a; }", False),
        ("int f() { return g(); }", False),
        ("abstract void f();", False),
        ("class A { int a; A() { a = 1; } void f() { } }", True),
        ("int f() { return 1; } int g() { return f() + 1; }", True),
        ("void f() { g(); } void g() { h(); }", False),
        ("void f() {", False),
        ("", False),
    ],
)
def test_methods_that_do_nothing(code: str, trivial: bool) -> None:
    assert has_trivial_method(code) is trivial


def test_the_table_has_a_column_for_each_category_that_occurs() -> None:
    rows = [
        trial_row(instance="a"),
        trial_row(instance="b", success=False, outcome=AnswerProblemKind.NO_PARTS),
        trial_row(instance="c", success=False, outcome=AnswerProblemKind.NO_PARTS),
        trial_row(instance="d", success=False, failure=FailureCategory.TYPES),
        trial_row(instance="a", model="n", success=False, outcome=TestOutcome.TESTS_FAIL),
    ]
    table = failure_table(rows)
    assert [column.title for column in table.columns] == [
        *("Model", "Trials", "Failures", "Format", "Types", "Tests", "Not counted")
    ]
    assert [row.cells for row in table.rows] == [("m", 4, 3, 2, 1, 0, 0), ("n", 1, 1, 0, 0, 1, 0)]
    assert failure_table([]).rows == ()
