"""The check for reviews does not know the developers' commit: right answers pass, and none of it is said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import RefactoringService, refactoring_service
from codetaste.swe_refactor.answers.answer_format import format_answer
from codetaste.swe_refactor.answers.apply import EditedFiles
from codetaste.swe_refactor.score.check import RefactoringCheck, check_refactoring
from codetaste.swe_refactor.trials.pair.evidence import without_golden
from support.refactorings.java_tools import tools_in
from support.swe_refactor.shop import DELEGATE, FILES, KINDS, LABEL, PARTS, PRICES, SUM, TOTAL, instance, use

pytestmark = pytest.mark.anyio
BASE = {path: text.encode() for path, text in FILES.items()}
EXTRACT, INLINE, MOVE = "Extract Method", "Inline Method", "Move Method"
GOLDEN = {
    "description": f"{MOVE}\tpackage label(name String) : String from class shop.Cart to public "
    "label(name String) : String from class shop.secret.Golden",
    "filePathAfter": "src/main/java/shop/secret/Golden.java",
    "sourceCodeAfterRefactoring": "static String golden() { return secret(); }",
    "sourceCodeAfterForWhole": "class Golden { int secret; }",
    "diffSourceCodeSet": ["int secret() { return 1; }"],
    "diffSourceCode": "+ secret",
}
"""What only the developers' commit has."""
WRONG = {
    "another type": (EXTRACT, [f"{TOTAL}\n\nprivate int sum() {{ return 0; }}"]),
    "more in the rest": (EXTRACT, [f"{TOTAL.replace('/ 100', '/ 99')}\n\n{SUM}"]),
    "other code inside": (EXTRACT, [f"{TOTAL}\n\n{SUM.replace('+=', '-=')}"]),
    "a statement more": (INLINE, ["public int count() {\n    prices.clear();\n    return prices.size();\n}"]),
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RefactoringService]:
    cache = tools_in(tmp_path_factory.mktemp("checks") / "cache", "refactoring-miner-3.1.4")
    async with refactoring_service(RefactoringMinerConfig(workers=1), cache) as opened:
        yield opened


async def check(service: RefactoringService, kind: str, parts: list[str], **golden: Any) -> RefactoringCheck:
    edited = use(format_answer(parts), kind)
    assert isinstance(edited, EditedFiles), edited
    return await check_refactoring(without_golden(instance(kind, **golden)), BASE, edited.files, service)


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != INLINE])  # too short for RefactoringMiner
async def test_right_answers_pass(service: RefactoringService, kind: str) -> None:
    found = await check(service, kind, PARTS[kind])
    assert (found.outcome, found.detail, found.extra) == ("verified", "", ())


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("reason", WRONG)
async def test_wrong_answers_do_not(service: RefactoringService, reason: str) -> None:
    kind, parts = WRONG[reason]
    assert not (await check(service, kind, parts)).is_verified


@pytest.mark.heavy
@pytest.mark.timeout(600)
async def test_any_class_is_right_for_a_move(service: RefactoringService) -> None:
    parts = [PRICES, f"public class Prices {{\n{LABEL}\n}}", DELEGATE.replace("Labels", "Prices")]
    found = await check(service, MOVE, parts, **GOLDEN)
    assert (found.outcome, found.detail, found.extra) == ("verified", "", ())
    answer = use(format_answer(parts), MOVE)
    assert isinstance(answer, EditedFiles)
    scored = await check_refactoring(instance(MOVE, **GOLDEN), BASE, answer.files, service)
    assert (scored.outcome, "Golden" in scored.detail) == ("other_class", True)


def moved(kind: str) -> list[dict[str, Any]]:
    """Other places after."""
    places = [each.model_dump(by_alias=True) for each in instance(kind).diff_locations]
    last = places[2] if "Inline" in kind else {**places[2], "filePath": "Golden.java"}
    return [places[0], {**places[1], "filePath": "Golden.java"}, last]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_the_developers_commit_is_left(kind: str) -> None:
    one, other = (
        without_golden(instance(kind)),
        without_golden(instance(kind, **GOLDEN, diffLocations=moved(kind))),
    )
    assert one.document == other.document
    text = str(other.document)
    assert "secret" not in text
    assert "olden" not in text
    assert not other.source_code_after_for_whole
