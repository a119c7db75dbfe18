"""The score of an answer by the functions that runs use, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.apply import apply_answer
from codetaste.swe_refactor.answers.parse import ParsedAnswer, parse_answer
from codetaste.swe_refactor.answers.problem import AnswerProblem
from codetaste.swe_refactor.score.answer_score import AnswerScore, score_code
from codetaste.swe_refactor.score.base_build import BaseFails
from codetaste.swe_refactor.score.check import check_refactoring
from codetaste.swe_refactor.score.compile_and_test import compile_and_test
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.refactorings.service import RefactoringService
    from codetaste.swe_refactor.answers.edit.tree import TreeReader
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.score.base_build import BaseBuild


async def score_answer(
    text: str,
    instance: RefactoringInstance,
    *,
    base: BaseBuild | BaseFails,
    tree: TreeReader,
    service: RefactoringService,
) -> AnswerScore:
    """Score the text of a model."""
    parsed = parse_answer(text, instance)
    edited = apply_answer(instance, parsed, tree) if isinstance(parsed, ParsedAnswer) else parsed
    if isinstance(edited, AnswerProblem):
        return AnswerScore(edited)
    return await score_files(edited.files, instance, base=base, tree=tree, service=service)


async def score_files(
    edited: Mapping[str, bytes | None],
    instance: RefactoringInstance,
    *,
    base: BaseBuild | BaseFails,
    tree: TreeReader,
    service: RefactoringService,
) -> AnswerScore:
    """Score edited files, such as those that an agent leaves."""
    before = {path: data for path in edited if (data := tree.read(path)) is not None}
    if isinstance(base, BaseFails):
        tested = TestedAnswer(TestOutcome.BASE_FAILS, str(base))
    else:
        tested = await compile_and_test(base, instance, before, edited)
    checked = await check_refactoring(instance, before, edited, service)
    return AnswerScore(None, tested, checked, score_code(instance, before, edited))
