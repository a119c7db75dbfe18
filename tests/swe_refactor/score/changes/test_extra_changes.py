"""New members beside an extraction: those of the developers that the refactored code needs, and no others."""

from __future__ import annotations

import pytest

from codetaste.refactorings.model import CodeRange
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.enrich.places import RefactoringPlaces
from codetaste.swe_refactor.score.changes.extra_changes import find_extra_changes
from support.swe_refactor.documents import document

PATH = "src/A.java"
HEAD = "package p;\n\nclass A {\n"
LONG = "  int all(int a) {\n    int sum = a * 2 + 1;\n    return sum;\n  }\n"
SHORT = "  int all(int a) {\n    return sum(a);\n  }\n"
SUM = "  private int sum(int a) {\n    int sum = a * Kind.TWO + ONE;\n    return sum;\n  }\n"
KIND = "  static class Kind {\n    static final int TWO = 2;\n  }\n"
ONE = "  /** As it is. */\n  static final int ONE = Ones.first();\n"
ONES = "  static class Ones {\n    static int first() { return 1; }\n  }\n"
MORE = "  static int more() { return 1; }\n"
DEVELOPERS = f"{HEAD}{SHORT}{SUM}{KIND}{ONE}{ONES}{MORE}}}\n"


def place(text: str, head: str) -> CodeRange:
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines, 1) if head in line)
    end = next(number for number, line in enumerate(lines, 1) if number > start and line == "  }")
    name = head.partition("(")[0]
    return CodeRange(PATH, start, end, 1, 1, "METHOD_DECLARATION", "", f"package {name}(a int) : int")


def faults(members: str) -> list[str]:
    before, after = f"{HEAD}{LONG}}}\n", f"{HEAD}{SHORT}{SUM}{members}}}\n"
    instance = RefactoringInstance.from_document(
        document(
            filePathBefore=PATH,
            filePathAfter=PATH,
            sourceCodeAfterForWhole=DEVELOPERS,
            sourceCodeAfterRefactoring=SHORT + SUM,
        )
    )
    places = RefactoringPlaces(
        place(before, "all(int"), place(after, "all(int"), extracted=place(after, "sum(int")
    )
    return find_extra_changes(instance, {PATH: before.encode()}, {PATH: after.encode()}, [places])


@pytest.mark.parametrize("members", ["", KIND, ONE + ONES, ONE + KIND + ONES])
def test_what_the_developers_have_and_the_code_names_may_be_new(members: str) -> None:
    assert faults(members) == []


@pytest.mark.parametrize(
    ("members", "line"),
    [
        (MORE, "A.more() is new"),  # of the developers, but not needed
        (ONES, "Ones.first() is new"),  # needed by what is not there
        (KIND.replace("2", "3"), "Kind.TWO is new"),  # needed, but not that of the developers
        ("  int ONE = 1;\n", "A.ONE is new"),
    ],
)
def test_other_new_members_are_named(members: str, line: str) -> None:
    assert faults(members) == [f"{PATH}: {line}"]


@pytest.mark.parametrize("escape", ["*\\u002f static int hidden = 42; /*", "\\uuu000a int hidden;"])
def test_code_cannot_hide_behind_a_unicode_escape(escape: str) -> None:
    (fault,) = faults(f"  /** {escape} */\n")
    assert "Unicode escape" in fault


def test_an_escape_of_another_character_is_a_comment() -> None:
    assert faults("  /** Caf\\u00e9 */\n") == []
