"""The category of a failure, from the outcome that was recorded and the output of the compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Problem
from codetaste.swe_refactor.report.failures.category import FailureCategory as Category
from codetaste.swe_refactor.report.failures.compiler_errors import CompilerErrorKind, read_compiler_errors
from codetaste.swe_refactor.report.failures.trivial_method import has_trivial_method

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROBLEMS: Final[Mapping[Category, tuple[Problem, ...]]] = {
    Category.FORMAT: (
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
_TESTS: Final = {
    "edits_tests": Category.OTHER_CHANGES,
    "edits_build": Category.OTHER_CHANGES,
    "compile_fails": Category.COMPILATION,
    "tests_fail": Category.TESTS,
    "hangs": Category.TESTS,
    "out_of_memory": Category.TESTS,
    "build_ends": Category.TESTS,
}
_CHECKS: Final = {
    "none_found": Category.NO_REFACTORING,
    "other_type": Category.OTHER_REFACTORING,
    "other_method": Category.OTHER_REFACTORING,
    "other_class": Category.WRONG_PLACE,
    "impure": Category.OTHER_CHANGES,
    "extra_change": Category.OTHER_CHANGES,
}
"""Reasons why an answer that compiles and passes is not the refactoring."""
_CATEGORIES: Final[Mapping[str, Category]] = {
    **{problem.value: category for category, problems in _PROBLEMS.items() for problem in problems},
    **_TESTS,
    **_CHECKS,
}
_OF_ERRORS: Final = {
    CompilerErrorKind.SYNTAX: Category.SYNTAX,
    CompilerErrorKind.MISSING_SYMBOL: Category.MISSING_SYMBOL,
    CompilerErrorKind.TYPES: Category.TYPES,
    CompilerErrorKind.OTHER: Category.COMPILATION,
}


def classify_failure(outcome: str, compiler_output: str = "", code: str = "") -> Category:
    """Return why a trial is no success.

    Args:
        outcome: the recorded reason: a problem of the answer, how compilation and tests ended, or why the
            check of the refactoring failed.
        compiler_output: what javac, Maven or Gradle printed; of several kinds of errors the most basic one
            counts, since others follow from it.
        code: the methods that the answer has for the refactoring. If one of them does nothing, that is why
            the check failed.

    Returns:
        The category; OTHER for an unknown outcome.
    """
    if outcome == "compile_fails":
        kinds = {error.kind for error in read_compiler_errors(compiler_output)}
        return next((_OF_ERRORS[kind] for kind in CompilerErrorKind if kind in kinds), Category.COMPILATION)
    if outcome in _CHECKS and has_trivial_method(code):
        return Category.EMPTY_METHOD
    return _CATEGORIES.get(outcome, Category.OTHER)
