"""The category of a failure, from the outcome that was recorded and the output of the compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Problem
from codetaste.swe_refactor.report.failures.category import FailureCategory as Category
from codetaste.swe_refactor.report.failures.compiler_errors import CompilerErrorKind, read_compiler_errors
from codetaste.swe_refactor.report.failures.trivial_method import has_trivial_method
from codetaste.swe_refactor.report.outcome import NO_ANSWER
from codetaste.swe_refactor.score.check import CheckOutcome
from codetaste.swe_refactor.score.tested_answer import TestOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.swe_refactor.report.outcome import TrialOutcome

_PROBLEMS: Final[Mapping[Category, tuple[Problem, ...]]] = {
    Category.NO_ANSWER: (Problem.REFUSED, Problem.PROMPT_TOO_LONG, Problem.NO_ANSWER, Problem.NO_CHANGE),
    Category.FORMAT: (
        *(Problem.CUT_OFF, Problem.BAD_PATCH),
        *(Problem.EMPTY, Problem.TOO_LONG, Problem.NO_PARTS, Problem.WRONG_PARTS, Problem.NO_CODE),
        *(Problem.SEVERAL_BLOCKS, Problem.HTML, Problem.OTHER_LANGUAGE, Problem.NO_METHOD),
        *(Problem.TWO_CLASSES, Problem.ELIDED, Problem.AMBIGUOUS, Problem.NOT_ENCODABLE),
    ),
    Category.SYNTAX: (Problem.UNBALANCED, Problem.SYNTAX_ERROR, Problem.TOO_COMPLEX),
    Category.COMPILATION: (Problem.DUPLICATE, Problem.METHOD_EXISTS),
    Category.WRONG_PLACE: (
        *(Problem.BAD_PATH, Problem.OUTSIDE, Problem.WRONG_FILE, Problem.NO_FILE, Problem.CLASS_EXISTS),
        *(Problem.WRONG_CLASS, Problem.SAME_CLASS),
    ),
    Category.NO_REFACTORING: (Problem.NOT_INLINED, Problem.NO_NEW_METHOD),
    Category.OTHER_REFACTORING: (Problem.METHOD_NAME,),
    Category.OTHER_CHANGES: (Problem.CHANGES_OTHER_CODE,),
    Category.OTHER: (Problem.WRONG_TREE,),
}
_TESTS: Final[Mapping[TrialOutcome, Category]] = {
    TestOutcome.EDITS_TESTS: Category.OTHER_CHANGES,
    TestOutcome.EDITS_BUILD: Category.OTHER_CHANGES,
    TestOutcome.COMPILE_FAILS: Category.COMPILATION,
    TestOutcome.TESTS_FAIL: Category.TESTS,
    TestOutcome.HANGS: Category.TESTS,
    TestOutcome.OUT_OF_MEMORY: Category.TESTS,
    TestOutcome.BUILD_ENDS: Category.TESTS,
}
_CHECKS: Final[Mapping[TrialOutcome, Category]] = {
    CheckOutcome.NONE_FOUND: Category.NO_REFACTORING,
    CheckOutcome.OTHER_TYPE: Category.OTHER_REFACTORING,
    CheckOutcome.OTHER_METHOD: Category.OTHER_REFACTORING,
    CheckOutcome.OTHER_CLASS: Category.WRONG_PLACE,
    CheckOutcome.IMPURE: Category.OTHER_CHANGES,
    CheckOutcome.EXTRA_CHANGE: Category.OTHER_CHANGES,
}
"""Reasons why an answer that compiles and passes is not the refactoring."""
_CATEGORIES: Final[Mapping[TrialOutcome, Category]] = {
    **{problem: category for category, problems in _PROBLEMS.items() for problem in problems},
    **_TESTS,
    **_CHECKS,
    **dict.fromkeys(NO_ANSWER, Category.NO_ANSWER),
}
_OF_ERRORS: Final = {
    CompilerErrorKind.SYNTAX: Category.SYNTAX,
    CompilerErrorKind.MISSING_SYMBOL: Category.MISSING_SYMBOL,
    CompilerErrorKind.TYPES: Category.TYPES,
    CompilerErrorKind.OTHER: Category.COMPILATION,
}


def classify_failure(outcome: TrialOutcome, compiler_output: str = "", code: str = "") -> Category:
    """Return why a trial is no success.

    Args:
        outcome: how it ended: a problem of the answer, how compilation and tests ended, why the check of the
            refactoring failed, or why there is no answer.
        compiler_output: what javac, Maven or Gradle printed; of several kinds of errors the most basic one
            counts, since others follow from it.
        code: the methods that the answer has for the refactoring. If one of them does nothing, that is why
            the check failed.

    Returns:
        The category; OTHER for an outcome that is no failure.
    """
    if outcome is TestOutcome.COMPILE_FAILS:
        kinds = {error.kind for error in read_compiler_errors(compiler_output)}
        return next((_OF_ERRORS[kind] for kind in CompilerErrorKind if kind in kinds), Category.COMPILATION)
    if outcome in _CHECKS and has_trivial_method(code):
        return Category.EMPTY_METHOD
    return _CATEGORIES.get(outcome, Category.OTHER)
