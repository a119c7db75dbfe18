"""What the answer of a trial is worth: compiled and tested, checked, and compared (SWE-Refactor §3.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.swe_refactor.answers.edit.tree import read_files
from codetaste.swe_refactor.score.answer_score import AnswerScore, score_code
from codetaste.swe_refactor.score.check import check_refactoring
from codetaste.swe_refactor.score.compile_and_test import compile_and_test

if TYPE_CHECKING:
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.trials.answer import TrialAnswer
    from codetaste.swe_refactor.trials.context import TrialContext


async def score_answer(
    answer: TrialAnswer, instance: RefactoringInstance, context: TrialContext
) -> AnswerScore:
    """Return the metrics of an answer; only one with files is compiled, tested and checked.

    Raises:
        BaseFails: the files before cannot be built.
        SourceError: they cannot be read.
        SandboxError: no sandbox can be opened, or the engine failed.
        StorageFull: no space left.
    """
    if answer.problem is not None:
        return AnswerScore(answer.problem)
    base = await to_thread.run_sync(read_files, context.source(instance).tree, answer.files)
    build = await context.bases.open(instance)
    tests = await compile_and_test(build, instance, base, answer.files)
    check = await check_refactoring(instance, base, answer.files, context.miner)
    similarity = await to_thread.run_sync(partial(score_code, instance, base, answer.files))
    return AnswerScore(None, tests, check, similarity)
