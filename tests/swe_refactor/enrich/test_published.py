"""The published fields, made of a detection and of parsed sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codetaste.errors import SourceError
from codetaste.java.jdt.model import ParsedMethod, ParsedSources, ParsedType
from codetaste.refactorings.model import Refactoring
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.enrich.places import find_places
from codetaste.swe_refactor.enrich.published import published_fields
from codetaste.swe_refactor.enrich.sources import ChangedSources
from support.swe_refactor.documents import document
from support.swe_refactor.history import AFTER, BEFORE, UTIL, A, B, detections, method

COMMIT = "c" * 40
CHANGED = ChangedSources(COMMIT, "d" * 40, {path: BEFORE[path] for path in AFTER}, AFTER)
FOUND = detections()


def parsed_type(path: str, signature: str, *methods: tuple[str, str, list[str]]) -> ParsedType:
    name = f"p.{path.rpartition('/')[2].removesuffix('.java')}"
    made = []
    for simple_name, head, calls in methods:
        start, end = method(BEFORE[path], head)
        made.append(ParsedMethod(simple_name, f"{head}) {{", start, end, "\nbody();\n}", tuple(calls)))
    return ParsedType(path, name, "p", signature, 3, 99, tuple(made))


PARSED = ParsedSources(
    (
        parsed_type(
            A,
            "public class A extends Base ",
            ("sum", "int sum(int a, int b", ["twice", "unknown"]),
            ("sum", "int sum(int a)", []),
            ("show", "String show(String text", []),
            ("twice", "int twice(int n", []),
        ),
        parsed_type(
            B,
            "class B ",
            ("all", "int all(", ["one"]),
            ("one", "private int one(", []),
            ("helper", "int helper(", []),
        ),
        parsed_type(UTIL, "class Util "),
    ),
    (),
)


def fields(refactoring: Refactoring, files: frozenset[str] = frozenset(BEFORE)) -> dict[str, Any]:
    return published_fields(refactoring, find_places(refactoring), CHANGED, PARSED, files)


def test_an_extraction_has_the_new_method_behind_the_old_one() -> None:
    made = fields(FOUND["Extract Method"])
    assert made["sourceCodeBeforeRefactoring"].startswith("int sum(int a, int b) {")
    assert made["diffSourceCodeSet"] == ["private int add(int a, int b) {\n        return a + b;\n    }"]
    assert made["sourceCodeAfterRefactoring"] == (
        "int sum(int a, int b) {\n        return twice(add(a, b));\n    }\n" + made["diffSourceCodeSet"][0]
    )
    assert made["methodNameBefore"] == "p.A#sum"
    assert made["uniqueId"] == f"{COMMIT}_5_8_9_11_5_7"
    assert made["description"].startswith("Extract Method\tprivate add(")
    assert made["invokedMethodSet"] == [
        "methodSignature: p.A#twice\n methodBody: int twice(int n) {\nbody();\n}"
    ]
    assert made["invokedMethod"] == made["invokedMethodSet"][0]
    assert made["moveFileExist"] is True


def test_an_extraction_to_another_class_has_the_method_of_that_class() -> None:
    made = fields(FOUND["Extract And Move Method"])
    assert made["diffSourceCodeSet"] == [
        "static String show(String text) {\n        return text.trim() + text.length();\n    }"
    ]
    assert [each["filePath"] for each in made["diffLocations"]] == [A, A, UTIL]
    assert "invokedMethod" not in made
    assert "static" not in made["diffSourceCode"]


def test_an_inlining_has_the_method_that_goes_away_and_the_one_that_takes_its_code() -> None:
    made = fields(FOUND["Inline Method"])
    assert made["sourceCodeBeforeRefactoring"].startswith("private int one() {")
    assert made["sourceCodeAfterRefactoring"].startswith("int all() {")
    assert made["methodNameBefore"] == "p.B#one"
    assert made["uniqueId"] == f"{COMMIT}_4_6__4_6_8_10"
    assert made["diffSourceCodeSet"] == []


def test_a_move_has_both_files_and_whether_the_target_was_there() -> None:
    made = fields(FOUND["Move Method"])
    assert (made["filePathBefore"], made["filePathAfter"]) == (B, UTIL)
    assert made["sourceCodeAfterForWhole"] == AFTER[UTIL]
    assert made["uniqueId"] == f"{COMMIT}_12_14__8_10"
    assert made["moveFileExist"] is True
    assert fields(FOUND["Move Method"], frozenset())["moveFileExist"] is False


def test_the_fields_are_those_of_a_published_instance_in_their_order() -> None:
    verification = ["compileResultBefore", "compileResultCurrent", "compileJDK", "testResult", "coverageInfo"]
    made = fields(FOUND["Extract Method"])
    assert [*made, *verification] == list(document())
    assert RefactoringInstance.from_document(made).purity_check_result_list[0].purity_comment == ""


def test_without_a_verdict_a_refactoring_is_not_pure() -> None:
    made = fields(replace(FOUND["Move Method"], purity=None))
    assert (made["isPureRefactoring"], made["purityCheckResultList"]) == (False, [])


def test_what_a_detection_lacks_is_named() -> None:
    extract = FOUND["Extract Method"]
    for broken, message in (
        (replace(extract, type="Rename Method"), "'Rename Method' is none of the six types"),
        (replace(extract, right=()), "names no source method declaration after extraction"),
        (
            replace(extract, left=(replace(extract.left[0], start_line=6),)),
            "lines 6–8: no method of a named class",
        ),
        (replace(extract, left=(replace(extract.left[0], path="X.java"),)), "X.java"),
    ):
        with pytest.raises(SourceError, match=message):
            fields(broken)
    twice = replace(PARSED, types=PARSED.types * 2)
    with pytest.raises(SourceError, match="several methods"):
        published_fields(extract, find_places(extract), CHANGED, twice, frozenset())


@pytest.mark.parametrize("odd", ["// a\rb\n", "\r"])
def test_lines_that_end_without_a_line_feed_are_no_instance(odd: str) -> None:
    """Detections count such lines, texts do not: the fields would have other lines than the method's."""
    for side in ("before", "after"):
        texts = {path: odd + text for path, text in getattr(CHANGED, side).items()}
        changed = replace(CHANGED, **{side: texts})
        with pytest.raises(SourceError, match="end without a line feed"):
            published_fields(
                FOUND["Extract Method"],
                find_places(FOUND["Extract Method"]),
                changed,
                PARSED,
                frozenset(BEFORE),
            )
