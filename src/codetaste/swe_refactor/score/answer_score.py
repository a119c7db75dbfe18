"""``AnswerScore``: the metrics of one answer to one instance, as stored data (SWE-Refactor §3.2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from codetaste.codebleu.average import CodeBleuAverages, average_codebleu
from codetaste.codebleu.limits import CodeTooLarge
from codetaste.codebleu.score import CodeBleu, codebleu
from codetaste.swe_refactor.answers.problem import AnswerProblem, AnswerProblemKind
from codetaste.swe_refactor.score.check import CheckOutcome, RefactoringCheck
from codetaste.swe_refactor.score.code_text import refactored_code, reference_code
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance


class ScoreOutcome(StrEnum):
    """What became of an answer, in the order in which it is looked for."""

    UNUSABLE = "unusable"
    """It could not be read or applied; ``AnswerScore.problem`` says why."""
    NOT_SCORED = "not_scored"
    """A tool failed, or the files before do not build: no fault of the answer."""
    NOT_COMPILED_OR_TESTED = "not_compiled_or_tested"
    """It fails to compile or fails tests; ``AnswerScore.tests`` says which."""
    NOT_VERIFIED = "not_verified"
    """It compiles and passes; ``AnswerScore.check`` says why it is not the refactoring."""
    SUCCESS = "success"


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """The metrics of one answer.

    Attributes:
        problem: why it could not be read or applied; None if it could.
        tests: compilation and tests; None if they were not tried.
        check: the intended refactoring and nothing else; None if that was not looked for.
        codebleu: beside the developers' code; None without code, or of code that is too large.
    """

    problem: AnswerProblem | None = None
    tests: TestedAnswer | None = None
    check: RefactoringCheck | None = None
    codebleu: CodeBleu | None = None

    @property
    def outcome(self) -> ScoreOutcome:
        """What became of the answer."""
        if self.problem is not None:
            wrong_tree = self.problem.kind is AnswerProblemKind.WRONG_TREE
            return ScoreOutcome.NOT_SCORED if wrong_tree else ScoreOutcome.UNUSABLE
        tests, check = self.tests, self.check
        if tests is None or tests.outcome is TestOutcome.BASE_FAILS:
            return ScoreOutcome.NOT_SCORED
        if not tests.is_passed:
            return ScoreOutcome.NOT_COMPILED_OR_TESTED
        if check is None or check.outcome is CheckOutcome.TOOL_FAILED:
            return ScoreOutcome.NOT_SCORED
        return ScoreOutcome.SUCCESS if check.is_verified else ScoreOutcome.NOT_VERIFIED

    @property
    def reason(self) -> str:
        """The most specific name of what became of it: a problem, or an outcome of tests or check."""
        if self.problem is not None:
            return self.problem.kind.value
        if self.tests is not None and not self.tests.is_passed:
            return self.tests.outcome.value
        if self.tests is not None and self.check is not None and not self.check.is_verified:
            return self.check.outcome.value
        return self.outcome.value

    @property
    def compiles(self) -> bool:
        """Whether it compiles."""
        return self.tests is not None and bool(self.tests.compiles)

    @property
    def passes(self) -> bool:
        """Whether it compiles, and no test fails because of it (§3.2, 1)."""
        return self.tests is not None and self.tests.is_passed

    @property
    def is_verified(self) -> bool:
        """Whether it is the intended refactoring alone (§3.2, 2)."""
        return self.check is not None and self.check.is_verified

    @property
    def published_check(self) -> bool:
        """Whether the type occurs in the edited files, which is all that the published check asks."""
        return self.check is not None and self.check.published

    @property
    def is_success(self) -> bool:
        """Whether it compiles, passes all tests, and is the intended refactoring alone."""
        return self.outcome is ScoreOutcome.SUCCESS

    @property
    def codebleu_score(self) -> float:
        """CodeBLEU, 0 to 1; 0 without code."""
        return self.codebleu.score if self.codebleu else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as JSON data; ``outcome``, ``reason`` and ``success`` are for readers."""
        return {
            "outcome": self.outcome.value,
            "reason": self.reason,
            "success": self.is_success,
            "problem": asdict(self.problem) if self.problem else None,
            "tests": self.tests.to_json() if self.tests else None,
            "check": self.check.to_json() if self.check else None,
            "codebleu": asdict(self.codebleu) if self.codebleu else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returned."""
        problem, tests, check, bleu = (data[name] for name in ("problem", "tests", "check", "codebleu"))
        return cls(
            AnswerProblem(AnswerProblemKind(problem["kind"]), problem["sentence"]) if problem else None,
            TestedAnswer.from_json(tests) if tests else None,
            RefactoringCheck.from_json(check) if check else None,
            CodeBleu(**bleu) if bleu else None,
        )


def score_code(
    instance: RefactoringInstance, base: Mapping[str, bytes], edited: Mapping[str, bytes | None]
) -> CodeBleu | None:
    """Return CodeBLEU of an answer beside the developers' code; None if its code is too large. Blocking.

    Args:
        instance: the instance.
        base: files before, by path; at least those of ``edited`` that exist.
        edited: the whole new content of the changed files; None for a deleted one.
    """
    try:
        return codebleu(refactored_code(instance, base, edited), reference_code(instance))
    except CodeTooLarge:
        return None


def average_scores(scores: Iterable[AnswerScore]) -> CodeBleuAverages:
    """Return both averages of CodeBLEU: over all answers, and over the successful ones as published."""
    return average_codebleu((each.codebleu_score, each.is_success) for each in scores)
