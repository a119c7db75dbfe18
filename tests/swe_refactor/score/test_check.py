"""RefactoringMiner decides on answers: right ones pass, others have a named reason each."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.service import RefactoringService, refactoring_service
from codetaste.swe_refactor.answers.answer_format import format_answer
from codetaste.swe_refactor.answers.apply import EditedFiles
from codetaste.swe_refactor.score.check import RefactoringCheck, check_refactoring
from support.refactorings.java_tools import tools_in
from support.swe_refactor.shop import (
    CART,
    DELEGATE,
    FILES,
    LABEL,
    PARTS,
    SUM,
    SUMS,
    TOTAL,
    instance,
    use,
)

pytestmark = [pytest.mark.anyio, pytest.mark.heavy, pytest.mark.timeout(600)]
EXTRACT, MOVE, RENAME, EXTRACT_MOVE, MOVE_INLINE = (
    "Extract Method",
    "Move Method",
    "Move And Rename Method",
    "Extract And Move Method",
    "Move And Inline Method",
)
DESCRIPTIONS = {
    EXTRACT: "Extract Method\tprivate sum() : int extracted from public total(tax int) : int "
    "in class shop.Cart",
    MOVE: "Move Method\tpackage label(name String) : String from class shop.Cart to public "
    "label(name String) : String from class shop.text.Labels",
    RENAME: "Move And Rename Method\tpackage label(name String) : String from class shop.Cart to public "
    "shout(name String) : String from class shop.text.Labels",
    EXTRACT_MOVE: "Extract And Move Method\tpublic sum(prices List<Integer>) : int extracted from public "
    "total(tax int) : int in class shop.Cart & moved to class shop.math.Sums",
    MOVE_INLINE: "Move And Inline Method\tpackage doubled(price int) : int moved from class shop.Prices to "
    "class shop.Till & inlined to package price(n int) : int",
}
BASE = {path: text.encode() for path, text in FILES.items()}
ROUNDED = TOTAL.replace("tax / 100", "tax / 99")
NAMED = FILES[CART].replace(' label("{ cart }")', ' Labels.label("{ cart }")')


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RefactoringService]:
    cache = tools_in(tmp_path_factory.mktemp("checks") / "cache", "refactoring-miner-3.1.4")
    async with refactoring_service(RefactoringMinerConfig(workers=1), cache) as opened:
        yield opened


async def check(
    service: RefactoringService, kind: str, parts: list[str], **changes: str | None
) -> RefactoringCheck:
    """Check an answer; ``changes`` are replacements "old -> new" in files by the name of their class."""
    edited = use(format_answer(parts), kind)
    assert isinstance(edited, EditedFiles), edited
    files: dict[str, bytes | None] = dict(edited.files)
    for name, change in changes.items():
        path = next((each for each in BASE if each.endswith(f"/{name}.java")), f"{name}.txt")
        old, _, new = (change or "").partition(" -> ")
        files[path] = (
            None
            if change is None
            else (files.get(path) or BASE.get(path, b"")).replace(old.encode(), new.encode())
        )
    return await check_refactoring(instance(kind, description=DESCRIPTIONS[kind]), BASE, files, service)


@pytest.mark.parametrize("kind", DESCRIPTIONS)
async def test_right_answer_is_verified(service: RefactoringService, kind: str) -> None:
    result = await check(service, kind, PARTS[kind])
    assert (result.outcome, result.detail, result.extra) == ("verified", "", ())
    assert result.published
    assert RefactoringCheck.from_json(result.to_json()) == result


async def test_move_without_a_delegate_is_verified_with_its_callers(service: RefactoringService) -> None:
    result = await check(
        service, MOVE, [*PARTS[MOVE][:2], ""], Cart='label("{ cart }") -> Labels.label("{ cart }")'
    )
    assert (result.outcome, result.extra) == ("verified", ())


MUTANTS = {
    "nothing is refactored": (
        EXTRACT,
        [f"{TOTAL.replace('sum();', '0;')}\n\n{SUM.split('{')[0]} {{ return 0; }}"],
        {},
    ),
    "the extracted code does something else": (EXTRACT, [f"{TOTAL}\n\n{SUM.replace('+=', '-=')}"], {}),
    "the rest of the method does something else": (EXTRACT, [f"{ROUNDED}\n\n{SUM}"], {}),
    "another method changes": (EXTRACT, PARTS[EXTRACT], {"Cart": "return size(); -> return size() + 1;"}),
    "a field changes": (EXTRACT, PARTS[EXTRACT], {"Cart": "private final List -> public final List"}),
    "a class gets an interface": (
        EXTRACT,
        PARTS[EXTRACT],
        {"Cart": "class Cart -> class Cart implements Cloneable"},
    ),
    "a method is added": (EXTRACT, PARTS[EXTRACT], {"Sums": "Sums { -> Sums { void f() { }"}),
    "another method is renamed": (EXTRACT, PARTS[EXTRACT], {"Cart": " size() ->  length()"}),
    "a file is deleted": (EXTRACT, PARTS[EXTRACT], {"Till": None}),
    "a file is added": (EXTRACT, PARTS[EXTRACT], {"notes": ""}),
    "to another class": (
        MOVE,
        [SUMS, f"public class Sums {{\n{LABEL}\n}}", DELEGATE.replace("Labels", "Sums")],
        {},
    ),
    "renamed, too": (MOVE, PARTS[MOVE], {"Labels": " label( ->  shout("}),
    "not renamed": (RENAME, PARTS[MOVE], {}),
    "not moved": (EXTRACT_MOVE, PARTS[EXTRACT_MOVE], {"Sums": "Sums { -> Sums { static int other;"}),
    "what stays is more than a delegate": (MOVE, [*PARTS[MOVE][:2], LABEL.replace("public ", "")], {}),
    "another caller": (MOVE_INLINE, PARTS[MOVE_INLINE], {"Till": "+ 1 -> + 2"}),
}
OUTCOMES = {
    "nothing is refactored": {"none_found", "other_type", "impure"},
    "the extracted code does something else": {"impure"},
    "the rest of the method does something else": {"impure", "extra_change"},
    "to another class": {"other_class"},
    "renamed, too": {"other_type", "none_found"},
    "not renamed": {"other_type"},
    "what stays is more than a delegate": {"none_found", "other_type"},
    "another caller": {"none_found", "impure"},
}


@pytest.mark.parametrize("name", MUTANTS)
async def test_mutated_answer_is_rejected(service: RefactoringService, name: str) -> None:
    kind, parts, changes = MUTANTS[name]
    result = await check(service, kind, parts, **changes)  # type: ignore[arg-type]
    assert result.outcome in OUTCOMES.get(name, {"extra_change"}), result
    assert result.detail


async def test_another_method_is_named_and_the_published_check_accepts_it(
    service: RefactoringService,
) -> None:
    right = instance(EXTRACT, description=DESCRIPTIONS[EXTRACT])
    place = dict(right.document["diffLocations"][0])
    moved = {**place, "startLine": place["startLine"] + 20, "endLine": place["endLine"] + 20}
    other_instance = right.updated({"diffLocations": [moved, moved, moved]})
    edited = use(format_answer(PARTS[EXTRACT]), EXTRACT)
    assert isinstance(edited, EditedFiles)
    result = await check_refactoring(other_instance, BASE, edited.files, service)
    assert (result.outcome, result.published) == ("other_method", True)


async def test_unchanged_files_have_no_refactoring(service: RefactoringService) -> None:
    result = await check_refactoring(instance(EXTRACT), BASE, {CART: BASE[CART]}, service)
    assert (result.outcome, result.published) == ("none_found", False)
