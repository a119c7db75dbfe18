"""Answers of a model to a real Maven project, from their text to their stored score: each end by its name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import RefactoringService, refactoring_service
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.answers.answer_format import format_answer
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.score.answer_score import AnswerScore
from codetaste.swe_refactor.score.base_build import BaseBuild, build_base
from codetaste.swe_refactor.verify.settings import VerifyContext, VerifyLimits
from support.refactorings.java_tools import tools_in
from support.swe_refactor.documents import document
from support.swe_refactor.score_answer import score_answer, score_files
from support.swe_refactor.shop import Files
from support.swe_refactor.tested_project import AFTER, BEFORE, FILES, POM, SHOP, TEST, History, method

pytestmark = [pytest.mark.anyio, pytest.mark.heavy, pytest.mark.timeout(1800)]
SUMS = "src/main/java/org/example/Sums.java"
TREE = Files({path: text.encode() for path, text in FILES.items()})


def lines(text: str, signature: str) -> dict[str, int | str]:
    found = method(text, signature)
    place = {"startLine": found.start_line, "endLine": found.end_line, "startColumn": 0, "endColumn": 0}
    return {"filePath": SHOP, **place}


def code(text: str, signature: str) -> str:
    found = method(text, signature)
    return "\n".join(text.splitlines()[found.start_line - 1 : found.end_line]).strip()


TOTAL, OF_LIST = "int total(int[] prices)", "int total(List<T> prices)"
WHOLE, SHORT, SUM = code(BEFORE, TOTAL), code(AFTER, TOTAL), code(AFTER, "int sum(int[] prices)")
MOVED = code(BEFORE, OF_LIST)
DELEGATE = f"{MOVED.partition('{')[0]}{{\n    return new Sums().total(prices);\n}}"
EXTRACT = RefactoringInstance.from_document(
    document(
        description="Extract Method\tprivate sum(prices int[]) : int extracted from public "
        "total(prices int[]) : int in class org.example.Shop",
        diffLocations=[lines(BEFORE, TOTAL), lines(AFTER, TOTAL), lines(AFTER, "int sum(int[] prices)")],
        sourceCodeBeforeRefactoring=WHOLE,
        filePathBefore=SHOP,
        filePathAfter=SHOP,
        classNameBefore="org.example.Shop",
        methodNameBefore="org.example.Shop#total",
        sourceCodeBeforeForWhole=BEFORE,
        sourceCodeAfterForWhole=AFTER,
        sourceCodeAfterRefactoring=f"{SHORT}\n\n{SUM}",
        compileJDK=17,
    )
)
NEW_FILE = f"package org.example;\n\nimport java.util.List;\n\npublic class Sums {{\n{MOVED}\n}}\n"
MOVE = EXTRACT.updated(
    {
        "type": "Move Method",
        "description": "Move Method\tpublic total(prices List<T>) : int from class org.example.Shop to "
        "public total(prices List<T>) : int from class org.example.Sums",
        "diffLocations": [lines(BEFORE, OF_LIST)] * 2,
        "sourceCodeBeforeRefactoring": MOVED,
        "filePathAfter": SUMS,
        "sourceCodeAfterForWhole": NEW_FILE,
        "sourceCodeAfterRefactoring": MOVED,
        "moveFileExist": False,
    }
)


@dataclass(frozen=True)
class Scoring:
    """What answers are scored with."""

    base: BaseBuild
    service: RefactoringService

    async def extract(self, *parts: str, limit_s: float | None = None) -> AnswerScore:
        """Score an answer to the extraction, with another time limit."""
        base = self.base
        if limit_s is not None:
            base = replace(base, context=replace(base.context, limits=VerifyLimits(tests_s=limit_s)))
        text = format_answer(["\n\n".join(parts)])
        return read_back(await score_answer(text, EXTRACT, base=base, tree=TREE, service=self.service))

    async def move(self, path: str, moved: str, rest: str = DELEGATE) -> AnswerScore:
        """Score an answer to the move."""
        text = format_answer([path, moved, rest])
        return read_back(await score_answer(text, MOVE, base=self.base, tree=TREE, service=self.service))

    async def files(self, files: dict[str, str]) -> AnswerScore:
        """Score edited files."""
        edited = {path: text.encode() for path, text in files.items()}
        return read_back(await score_files(edited, EXTRACT, base=self.base, tree=TREE, service=self.service))


def read_back(score: AnswerScore) -> AnswerScore:
    """Return the score as it comes back from a file."""
    stored = AnswerScore.from_json(json.loads(json.dumps(score.to_json())))
    assert stored == score
    return stored


@pytest.fixture
async def scoring(context: VerifyContext, shared: Path, tmp_path: Path) -> AsyncIterator[Scoring]:
    history = History(tmp_path / "clone")
    repository = await open_repository(history.folder)
    cache = tools_in(tmp_path / "tools", "refactoring-miner-3.1.4")
    base = await build_base(context, repository, history.first, EXTRACT, shared / "store")
    async with refactoring_service(RefactoringMinerConfig(workers=1), cache) as service:
        yield Scoring(base, service)


async def test_answers_to_an_extraction(scoring: Scoring) -> None:
    right = await scoring.extract(SHORT, SUM)
    assert (right.outcome, right.reason, right.codebleu_score) == ("success", "success", 1.0), right
    assert (right.compiles, right.passes, right.is_verified, right.published_check) == (True,) * 4

    typo = await scoring.extract(SHORT.replace("sum(", "summ("), SUM)
    assert (typo.outcome, typo.reason, typo.compiles) == ("not_compiled_or_tested", "compile_fails", False)
    wrong = await scoring.extract(SHORT, SUM.replace("+=", "-="))
    assert (wrong.outcome, wrong.reason, wrong.compiles) == ("not_compiled_or_tested", "tests_fail", True)
    waits = "while (price > 0) { java.util.concurrent.locks.LockSupport.park(); }"
    loop = await scoring.extract(SHORT, SUM.replace("sum += price;", waits), limit_s=25)
    assert (loop.outcome, loop.reason, loop.compiles) == ("not_compiled_or_tested", "hangs", False)

    empty = "private void nothing() {\n}"
    none = await scoring.extract(WHOLE, empty)
    assert (none.outcome, none.reason, none.passes) == ("not_verified", "none_found", True)
    other = await scoring.extract(WHOLE.replace("sum", "all"), empty)
    assert (other.outcome, other.reason, other.passes) == ("not_verified", "other_type", True)
    more = await scoring.extract(SHORT, SUM, "private int more() {\n    return 1;\n}")
    assert (more.outcome, more.reason, more.passes) == ("not_verified", "extra_change", True)
    assert more.published_check
    assert 0 < none.codebleu_score < more.codebleu_score < 1


async def test_answers_that_are_not_built(scoring: Scoring) -> None:
    for text, reason in (
        ("", "empty"),
        (format_answer([WHOLE]), "no_new_method"),
        ("It cannot be extracted.", "no_parts"),
    ):
        score = read_back(
            await score_answer(text, EXTRACT, base=scoring.base, tree=TREE, service=scoring.service)
        )
        assert (score.outcome, score.reason, score.codebleu_score) == ("unusable", reason, 0), score
    pom = await scoring.files({SHOP: AFTER, "pom.xml": POM.replace("4.13.2", "4.13")})
    assert (pom.outcome, pom.reason) == ("not_compiled_or_tested", "edits_build")
    tests = await scoring.move(TEST, f"public class ShopTest {{\n{MOVED}\n}}")
    assert (tests.outcome, tests.reason) == ("not_compiled_or_tested", "edits_tests")
    unchanged = await scoring.files({SHOP: BEFORE})
    assert (unchanged.outcome, unchanged.reason) == ("not_verified", "none_found")
    assert unchanged.codebleu_score == 0


async def test_new_class_of_a_move_is_judged(scoring: Scoring) -> None:
    right = await scoring.move(SUMS, f"public class Sums {{\n{MOVED}\n}}")
    assert (right.outcome, right.codebleu_score) == ("success", 1.0), right
    more = await scoring.move(SUMS, f"public class Sums {{\nint more = 1;\n{MOVED}\n}}")
    assert (more.outcome, more.reason) == ("not_verified", "extra_change")
    assert more.check is not None
    assert more.check.extra == ("Sums.more is new",)
    other = f"class CornerShop {{\n{MOVED}\n}}"
    rest = DELEGATE.replace("Sums", "CornerShop")
    heir = await scoring.move("src/main/java/org/example/CornerShop.java", other, rest)
    assert (heir.outcome, heir.reason) == ("not_verified", "other_type"), "it is pushed down"
