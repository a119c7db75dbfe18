"""Scores of answers: CodeBLEU beside the developers' code, success, averages, JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from codetaste.refactorings.model import CodeRange
from codetaste.swe_refactor.answers.apply import EditedFiles
from codetaste.swe_refactor.answers.problem import AnswerProblem, AnswerProblemKind
from codetaste.swe_refactor.enrich.places import RefactoringPlaces
from codetaste.swe_refactor.score.answer_score import AnswerScore, average_scores, score_code
from codetaste.swe_refactor.score.changes.extra_changes import find_extra_changes
from codetaste.swe_refactor.score.check import CheckOutcome, RefactoringCheck
from codetaste.swe_refactor.score.delegate import without_delegate
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome
from support.swe_refactor.shop import (
    CART,
    FILES,
    KINDS,
    PARTS,
    PRICES,
    SUM,
    TOTAL,
    answer,
    instance,
    place,
    use,
)

BASE = {path: text.encode() for path, text in FILES.items()}
EXTRACT, MOVE = "Extract Method", "Move Method"
REFERENCES = {
    "Move And Rename Method": PARTS["Move And Rename Method"][1],
    "Extract And Move Method": "\n\n".join(reversed(PARTS["Extract And Move Method"][1:])),
}


def edit(kind: str) -> dict[str, bytes]:
    edited = use(answer(kind), kind)
    assert isinstance(edited, EditedFiles)
    return dict(edited.files)


@pytest.mark.parametrize("kind", KINDS)
def test_developers_code_has_codebleu_1(kind: str) -> None:
    changes = {"sourceCodeAfterRefactoring": REFERENCES[kind]} if kind in REFERENCES else {}
    found = score_code(instance(kind, **changes), BASE, edit(kind))
    assert found is not None
    assert found.score == 1.0


def test_no_edit_has_codebleu_0_and_another_edit_less_than_1() -> None:
    for files in ({}, {CART: BASE[CART]}, {CART: None}):
        nothing = score_code(instance(EXTRACT), BASE, files)
        assert nothing is not None
        assert nothing.score == 0
    other = score_code(instance(EXTRACT), BASE, {CART: edit(EXTRACT)[CART].replace(b"sum", b"all")})
    assert other is not None
    assert 0.2 < other.score < 1


CHECKED = RefactoringCheck(CheckOutcome.VERIFIED, published=True)
PASSED = TestedAnswer(TestOutcome.PASSED, compiles=True, passed=3)
IMPURE = RefactoringCheck(CheckOutcome.IMPURE, "x", published=True)
NO_TOOL = RefactoringCheck(CheckOutcome.TOOL_FAILED, "x")
BLEU = score_code(instance(EXTRACT), BASE, edit(EXTRACT))


@pytest.mark.parametrize(
    ("score", "outcome", "reason"),
    [
        (AnswerScore(None, PASSED, CHECKED, BLEU), "success", "success"),
        (AnswerScore(None, PASSED, IMPURE, BLEU), "not_verified", "impure"),
        (AnswerScore(None, PASSED, NO_TOOL), "not_scored", "tool_failed"),
        (AnswerScore(None, PASSED), "not_scored", "not_scored"),
        (AnswerScore(None, TestedAnswer(TestOutcome.HANGS, "x"), IMPURE), "not_compiled_or_tested", "hangs"),
        (AnswerScore(None, TestedAnswer(TestOutcome.BASE_FAILS, "x"), CHECKED), "not_scored", "base_fails"),
        (AnswerScore(None, None, CHECKED, BLEU), "not_scored", "not_scored"),
        (AnswerScore(AnswerProblem(AnswerProblemKind.EMPTY, "It is empty.")), "unusable", "empty"),
        (AnswerScore(AnswerProblem(AnswerProblemKind.WRONG_TREE, "No file.")), "not_scored", "wrong_tree"),
    ],
)
def test_success_is_compiled_tested_and_verified(score: AnswerScore, outcome: str, reason: str) -> None:
    assert (score.outcome, score.reason) == (outcome, reason)
    assert score.is_success == (outcome == "success") == (score.passes and score.is_verified)
    data = json.loads(json.dumps(score.to_json()))
    assert AnswerScore.from_json(data) == score
    assert (data["outcome"], data["reason"], data["success"]) == (outcome, reason, score.is_success)


def test_published_check_is_beside_ours() -> None:
    score = AnswerScore(None, PASSED, IMPURE)
    assert (score.compiles, score.published_check, score.is_verified) == (True, True, False)


def test_averages_are_over_all_and_over_successes() -> None:
    empty = AnswerScore(AnswerProblem(AnswerProblemKind.EMPTY, "It is empty."))
    failed = AnswerScore(None, TestedAnswer(TestOutcome.COMPILE_FAILS), CHECKED, BLEU)
    found = average_scores([AnswerScore(None, PASSED, CHECKED, BLEU), empty, failed, failed])
    assert (found.of_all, found.of_successes, found.answers, found.successes) == (0.75, 1.0, 4, 1)


def left_out(files: Mapping[str, bytes], *, anything: bool = False) -> bool:
    return b"label(String" not in without_delegate(instance(MOVE), BASE, files, anything=anything)[CART]


def test_delegate_is_left_out_and_other_rests_only_as_published() -> None:
    files = edit(MOVE)
    assert left_out(files)
    assert without_delegate(instance(EXTRACT), BASE, edit(EXTRACT)) == edit(EXTRACT)
    more = {**files, CART: files[CART].replace(b"return Labels", b"int n = 1; return Labels")}
    assert not left_out(more)
    assert left_out(more, anything=True)


@pytest.mark.parametrize(
    "call",
    [
        "Prices.mark(name.trim().toUpperCase(Locale.ROOT))",
        "Prices.mark(name)",
        "Labels.label(null)",
        "Labels.label(show)",
        'Labels.label(name + "")',
        "Prices.mark(Labels.label(name))",
    ],
)
def test_method_that_does_anything_but_call_the_moved_one_is_no_delegate(call: str) -> None:
    files = edit(MOVE)
    assert not left_out({**files, CART: files[CART].replace(b"Labels.label(name)", call.encode())})


@pytest.mark.parametrize("call", ["new Labels().label(name)", "shop.text.Labels.label(name)"])
def test_delegate_may_make_or_name_the_class(call: str) -> None:
    files = edit(MOVE)
    assert left_out({**files, CART: files[CART].replace(b"Labels.label(name)", call.encode())})


@pytest.mark.parametrize("head", ["public static", "static synchronized", "@SafeVarargs static"])
def test_delegate_has_the_head_of_the_method(head: str) -> None:
    files = edit(MOVE)
    other = files[CART].replace(b"static String label(", f"{head} String label(".encode())
    assert other != files[CART]
    assert not left_out({**files, CART: other})


def test_delegate_may_be_marked_as_one_that_is_not_to_be_called() -> None:
    files = edit(MOVE)
    assert left_out(
        {**files, CART: files[CART].replace(b"static String label(", b"@Deprecated static String label(")}
    )


def range_of(path: str, head: str, text: str) -> CodeRange:
    lines = place(path, head, text)
    name = head.partition("(")[0].split()[-1]
    return CodeRange(
        path, lines["startLine"], lines["endLine"], 1, 1, "METHOD_DECLARATION", "", f"x {name}() : int"
    )


PLACES = RefactoringPlaces(
    range_of(CART, "public int total(", FILES[CART]),
    range_of(CART, "public int total(", edit(EXTRACT)[CART].decode()),
    extracted=range_of(CART, "private int sum(", edit(EXTRACT)[CART].decode()),
)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", []),
        ("return size();", "return size() ; // as it is", []),
        ("import java.util.Locale;", "import java.util.Locale;\nimport java.util.Map;", []),
        ("return size();", "return size() + 0;", ["Cart.count() is changed"]),
        ("private final List", "final List", ["Cart.prices is changed"]),
        ("    String show()", "    int n;\n    String show()", ["Cart.n is new"]),
        ("class Cart", "final class Cart", ["code outside of its methods and fields is changed"]),
        ("package shop;", "package shop.x;", ["code outside of its methods and fields is changed"]),
        ("count()", "number()", ["Cart.count() is removed", "Cart.number() is new"]),
    ],
)
def test_changes_beside_the_refactoring_are_named(old: str, new: str, found: list[str]) -> None:
    edited = edit(EXTRACT)[CART].decode()
    shift = "import java.util.Map" in new
    places = PLACES
    if shift:
        text = edited.replace(old, new)
        places = RefactoringPlaces(
            PLACES.before,
            range_of(CART, "public int total(", text),
            extracted=range_of(CART, "private int sum(", text),
        )
    after = {CART: edited.replace(old, new).encode() if old else edited.encode()}
    lines = find_extra_changes(instance(EXTRACT), {CART: BASE[CART]}, after, [places])
    assert sorted(lines) == sorted(f"{CART}: {each}" for each in found)


def test_files_beside_the_refactoring_are_named() -> None:
    before = {CART: BASE[CART], PRICES: BASE[PRICES], "a.txt": b"1"}
    after = {CART: edit(EXTRACT)[CART], "b.txt": b"", "a.txt": b"2"}
    lines = find_extra_changes(instance(EXTRACT), before, after, [PLACES])
    assert lines == ["a.txt is changed", "b.txt is new", f"{PRICES} is deleted"]
    assert SUM.split("(")[0].encode() in after[CART]
    assert TOTAL
