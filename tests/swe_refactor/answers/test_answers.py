"""Answers of models to the six types: right ones are applied, hostile ones have a named outcome each."""

from __future__ import annotations

from typing import Any

import pytest

from codetaste.swe_refactor.answers.answer_format import MAX_ANSWER_CHARS, format_answer
from codetaste.swe_refactor.answers.apply import EditedFiles
from codetaste.swe_refactor.answers.java.syntax import parse_java
from codetaste.swe_refactor.answers.problem import AnswerProblem, AnswerProblemKind
from support.swe_refactor.shop import (
    CART,
    COUNT,
    DELEGATE,
    KINDS,
    LABEL,
    LABELS,
    PARTS,
    PRICES,
    SUM,
    SUMS,
    TILL,
    TOTAL,
    Files,
    answer,
    tree,
    use,
)

EXTRACT, INLINE, MOVE, RENAME, EXTRACT_MOVE, MOVE_INLINE = KINDS
UNCHANGED = "public int count() { return size(); }"
BOTH = f"{TOTAL}\n\n{SUM}"


def edited(text: str, kind: str, files: Files | None = None, **changes: Any) -> dict[str, str]:
    result = use(text, kind, files, **changes)
    assert isinstance(result, EditedFiles), result
    return {path: content.decode() for path, content in result.files.items()}


def problem(text: str, kind: str, files: Files | None = None, **changes: Any) -> str:
    result = use(text, kind, files, **changes)
    assert isinstance(result, AnswerProblem), result
    assert result.sentence.endswith((".", "}", ";", "{", "…")) or ": " in result.sentence
    assert "\n" not in result.sentence
    return str(result.kind)


@pytest.mark.parametrize("kind", KINDS)
def test_right_answer_gives_files_that_parse(kind: str) -> None:
    for text in edited(answer(kind), kind).values():
        unit = parse_java(text.encode())
        assert unit is not None
        assert unit.error_at is None


TOLERATED = {
    "fences around the code": f"#####\n```java\n{BOTH}\n```\n#####",
    "a fence without a language": f"#####\n```\n{BOTH}\n```\n#####",
    "fences around all of it": f"```java\n#####\n{BOTH}\n#####\n```",
    "a fence that opens inside and closes outside": f"#####\n```java\n{BOTH}\n#####\n```",
    "CRLF": f"#####\r\n{BOTH}\r\n#####\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
    "a preamble and an explanation": f"Sure! Here it is:\n\n#####\n{BOTH}\n#####\n\n1. I extracted it.",
    "longer lines of number signs": f"##########################\n{BOTH}\n##########",
    "no last line": f"#####\n{BOTH}",
    "the names of the parts repeated": f"#####\nrefactored_method_code\n#####\n{BOTH}\n#####",
    "prose around one fenced block": f"#####\nThe method:\n```java\n{BOTH}\n```\nDone.\n#####",
    "the whole class": f"#####\npublic class Cart {{\n{BOTH}\n{UNCHANGED}\n}}\n#####",
    "a class that elides members": f"#####\nclass Cart {{\n// ... the rest of the class\n{BOTH}\n}}\n#####",
    "a byte order mark": f"\ufeff#####\n{BOTH}\n#####",
    "the new method first": f"#####\n{SUM}\n\n{TOTAL}\n#####",
    "the package": f"#####\npackage shop;\n{BOTH}\n#####",
    "markdown headings": f"# Answer\n##### Code\n#####\n{BOTH}\n#####",
}


@pytest.mark.parametrize("text", TOLERATED.values(), ids=TOLERATED)
def test_other_ways_to_write_the_format_are_understood(text: str) -> None:
    assert edited(text, EXTRACT) == edited(answer(EXTRACT), EXTRACT)


@pytest.mark.parametrize(
    "path", [f"`{LABELS}`", f"./{LABELS}", f"```\n{LABELS}\n```", f'"{LABELS}"', f" {LABELS} "]
)
def test_path_may_be_quoted(path: str) -> None:
    assert edited(format_answer([path, *PARTS[MOVE][1:]]), MOVE) == edited(answer(MOVE), MOVE)


def one(code: str) -> str:
    return format_answer([code])


def move(path: str = LABELS, code: str = LABEL, left: str = DELEGATE) -> str:
    return format_answer([path, code, left])


NESTED = "int f() { return " + "(" * 50_000 + "1" + ")" * 50_000 + "; }"
HOSTILE: list[tuple[str, str, str]] = [
    # (type, answer, outcome); first what is no answer in the format
    (EXTRACT, "", "empty"),
    (EXTRACT, " \r\n\t", "empty"),
    (EXTRACT, "\ufeff", "empty"),
    (EXTRACT, "I cannot refactor this code.", "no_parts"),
    (EXTRACT, f"```java\n{BOTH}\n```", "no_parts"),
    (EXTRACT, BOTH, "no_parts"),
    (EXTRACT, f"#### \n{BOTH}\n####", "no_parts"),
    (EXTRACT, "#####", "wrong_parts"),
    (EXTRACT, "#####\n#####\n#####", "wrong_parts"),
    (EXTRACT, f"#####\n{BOTH}\n#####\n{BOTH}\n#####", "wrong_parts"),
    (EXTRACT, "#####\nrefactored_method_code\n#####", "wrong_parts"),
    (MOVE, one(LABEL), "wrong_parts"),
    (MOVE, format_answer([LABELS, LABEL]), "wrong_parts"),
    (MOVE, format_answer([LABELS, LABEL, DELEGATE, DELEGATE]), "wrong_parts"),
    (MOVE_INLINE, format_answer([PARTS[MOVE_INLINE][1]]), "wrong_parts"),
    (EXTRACT, "x" * (5 * 1024**2), "too_long"),
    (EXTRACT, f"#####\n{BOTH}\n{'/* pad */' * 600_000}\n#####", "too_long"),
    (EXTRACT, "#" * (MAX_ANSWER_CHARS + 1), "too_long"),
    # parts that are no Java with a method
    (EXTRACT, one(""), "no_code"),
    (EXTRACT, one("```java\n```"), "no_code"),
    (EXTRACT, one("// nothing to do"), "no_code"),
    (EXTRACT, one(f"```java\n{TOTAL}\n```\nand\n```java\n{SUM}\n```"), "several_blocks"),
    (EXTRACT, one("<html><body>502 Bad Gateway</body></html>"), "html"),
    (EXTRACT, one("<!DOCTYPE html>\n<p>x"), "html"),
    (EXTRACT, one("<pre>" + BOTH + "</pre>"), "html"),
    (EXTRACT, one("def total(self, tax):\n    return sum(self.prices)"), "other_language"),
    (EXTRACT, one("```python\nx = 1\n```"), "other_language"),
    (EXTRACT, one("```kotlin\n" + BOTH + "\n```"), "other_language"),
    (EXTRACT, one("fun total(tax: Int): Int {\n  return 1\n}"), "other_language"),
    (EXTRACT, one("const total = (tax) => {\n  return 1;\n};"), "other_language"),
    (EXTRACT, one("The method was extracted."), "syntax_error"),
    (EXTRACT, one('{"refactored_method_code": 1}'), "syntax_error"),
    (EXTRACT, one("@@ -1,2 +1,2 @@\n-int a;\n+int b;"), "syntax_error"),
    (EXTRACT, one(BOTH.replace("int sum = 0;", "int sum = ;")), "syntax_error"),
    (EXTRACT, one("int total(int tax) { return \x00; }"), "syntax_error"),
    (EXTRACT, one("\ud800\udfff int \udc00"), "syntax_error"),
    (EXTRACT, one(BOTH[:-1]), "unbalanced"),
    (EXTRACT, one(BOTH.partition("for (")[0]), "unbalanced"),
    (EXTRACT, one(BOTH + "}"), "unbalanced"),
    (EXTRACT, one(BOTH + "\n} class Evil {"), "unbalanced"),
    (EXTRACT, one("int total(int tax) { return sum(; }\n" + SUM), "unbalanced"),
    (EXTRACT, one(BOTH + "\n/* open"), "syntax_error"),
    (EXTRACT, one("List<" * 1_000), "too_complex"),
    (EXTRACT, one("return sum();"), "no_method"),
    (EXTRACT, one("int sum = sum();\nreturn sum;"), "no_method"),
    (EXTRACT, one("private int sum = 0;"), "no_method"),
    (EXTRACT, one("import java.util.List;"), "no_method"),
    (EXTRACT, one("class Cart {\n}"), "no_method"),
    (EXTRACT, one(f"class Cart {{\n{BOTH}\n}}\nclass Sums {{\n}}"), "two_classes"),
    (MOVE, move(code=f"class Labels {{\n{LABEL}\n}}\nclass Other {{\n}}"), "two_classes"),
    (EXTRACT, one(f"{BOTH}\n{SUM}"), "duplicate"),
    (EXTRACT, one(TOTAL.replace("int sum = sum();", "// ... existing code ...") + "\n" + SUM), "elided"),
    (EXTRACT, one(TOTAL.replace("int sum = sum();", "// rest of the method") + "\n" + SUM), "elided"),
    (EXTRACT, one(TOTAL.replace("int sum = sum();", "/* … */") + "\n" + SUM), "elided"),
    # other methods than required
    (EXTRACT, one(BOTH.replace("total", "totalOf")), "method_name"),
    (EXTRACT, one(SUM), "method_name"),
    (EXTRACT, one(BOTH.replace("total", "Total")), "method_name"),
    (INLINE, one(COUNT.replace("count", "size")), "method_name"),
    (INLINE, one("int other() {\n return prices.size();\n}"), "method_name"),
    (MOVE, move(code=LABEL.replace("label", "shout")), "method_name"),
    (MOVE, move(left="void other() {\n}"), "method_name"),
    (MOVE_INLINE, format_answer([TILL, "class Till {\n int cost(int n) { return 1; }\n}"]), "method_name"),
    (EXTRACT, one(f"class Cart {{\n static class In {{\n{BOTH}\n }}\n}}"), "method_name"),
    (EXTRACT, one(BOTH.replace("int tax)", "long tax)") + "\nint total(short n) { return 1; }"), "ambiguous"),
    (EXTRACT, one(TOTAL), "no_new_method"),
    (EXTRACT, one(f"{TOTAL}\nprivate int more;"), "no_new_method"),
    (EXTRACT, one(f"{TOTAL}\npublic int count() {{\n return size(); // same\n}}"), "no_new_method"),
    (INLINE, one(COUNT + "\nprivate int size() {\n    return prices.size();\n}"), "not_inlined"),
    (
        MOVE,
        move(code="public static String quote(String text) { return '\"' + text + '\"'; }"),
        "method_name",
    ),
    # code that the file has already, or that is no part of the refactoring
    (EXTRACT, one(f"{TOTAL}\nprivate int size() {{ return 1; }}"), "method_exists"),
    (EXTRACT, one(f"class Cart {{\n{BOTH}\npublic int count() {{ return 1; }}\n}}"), "changes_other_code"),
    (EXTRACT, one(f"{BOTH}\nprivate List<Integer> prices;"), "changes_other_code"),
    (EXTRACT, one(f"class Basket {{\n{BOTH}\n}}"), "wrong_class"),
    (MOVE, move(code=f"class Label {{\n{LABEL}\n}}"), "wrong_class"),
    (MOVE, move(code=f"{LABEL}\nstatic class Inner {{ int x; }}"), "class_exists"),
    (
        MOVE,
        move(CART, f"class Cart {{\n{LABEL.replace('String name', 'String n')}\n}}"),
        "changes_other_code",
    ),
    (MOVE, move(CART, LABEL.replace("String name)", "String name, int n)")), "same_class"),
    (RENAME, move(CART, LABEL.replace("label", "shout")), "same_class"),
    (EXTRACT_MOVE, move(CART, SUM, TOTAL), "same_class"),
    # paths
    (MOVE, move(""), "bad_path"),
    (MOVE, move(f"{LABELS}\n{CART}"), "bad_path"),
    (MOVE, move(f"The file is {LABELS}\nas before"), "bad_path"),
    (MOVE, move("src/main/java/shop/text/Labels"), "bad_path"),
    (MOVE, move("pom.xml"), "bad_path"),
    (MOVE, move("src//main/Labels.java"), "bad_path"),
    (MOVE, move("src/./Labels.java"), "bad_path"),
    (MOVE, move("src\\main\\java\\shop\\text\\Labels.java"), "bad_path"),
    (MOVE, move("a" * 600 + ".java"), "bad_path"),
    (MOVE, move("src/\x00Labels.java"), "bad_path"),
    (MOVE, move("src/\u202eLabels.java"), "bad_path"),
    (MOVE, move("../other/Labels.java"), "outside"),
    (MOVE, move("src/../../Labels.java"), "outside"),
    (MOVE, move("src\\..\\..\\Labels.java"), "outside"),
    (MOVE, move("/etc/Labels.java"), "outside"),
    (MOVE, move("~/Labels.java"), "outside"),
    (MOVE, move("C:\\Labels.java"), "outside"),
    (MOVE, move("file:///etc/Labels.java"), "outside"),
    (MOVE, move(".git/hooks/Labels.java"), "outside"),
    (MOVE, move("src/.GIT/Labels.java"), "outside"),
    (MOVE, move("src/git~1/Labels.java"), "outside"),
    (MOVE, move("src/main/java/shop/text/None.java"), "no_file"),
    (MOVE, move("src/main/java/shop/text/labels.java"), "no_file"),
    (MOVE, move("src/main/java/shop/text.java"), "no_file"),
    (EXTRACT_MOVE, move("src/main/java/shop/math/New.java", f"class New {{\n{SUM}\n}}", TOTAL), "no_file"),
    (MOVE_INLINE, format_answer([CART, PARTS[MOVE_INLINE][1]]), "wrong_file"),
    (MOVE_INLINE, format_answer(["src/None.java", PARTS[MOVE_INLINE][1]]), "wrong_file"),
]


@pytest.mark.parametrize(
    ("kind", "text", "outcome"), HOSTILE, ids=[f"{number}-{each[2]}" for number, each in enumerate(HOSTILE)]
)
def test_hostile_answer_has_its_outcome(kind: str, text: str, outcome: str) -> None:
    assert problem(text, kind) == outcome


def test_deep_nesting_is_read() -> None:
    assert problem(one(NESTED), EXTRACT) == "method_name"
    assert problem(one("class A {" * 5_000 + "}" * 5_000), EXTRACT) == "no_method"


def test_each_problem_occurs() -> None:
    seen = {outcome for _, _, outcome in HOSTILE}
    elsewhere = {"not_encodable", "wrong_tree"}
    elsewhere |= {
        "refused",
        "cut_off",
        "prompt_too_long",
        "no_answer",
        "no_change",
        "bad_patch",
    }  # no text is read
    assert seen | elsewhere == {str(each) for each in AnswerProblemKind}


def test_link_is_outside() -> None:
    files = tree()
    files.links = frozenset({LABELS})
    assert problem(answer(MOVE), MOVE, files) == "outside"


NEW = "src/main/java/shop/text/Texts.java"


def test_new_file_is_made_where_the_developers_made_one() -> None:
    files = edited(
        move(NEW, f"/** Texts. */\nfinal class Texts {{\n{LABEL}\n}}", DELEGATE.replace("Labels", "Texts")),
        MOVE,
        moveFileExist=False,
    )
    assert files[NEW] == (
        "package shop.text;\n\nimport java.util.Locale;\nimport shop.Prices;\n\n/** Texts. */\n"
        f"final class Texts {{\n{LABEL}\n}}\n"
    )
    assert "import shop.text.Texts;" in files[CART]


@pytest.mark.parametrize(
    ("path", "code", "outcome"),
    [
        (NEW, LABEL, "no_file"),
        (NEW, f"class Other {{\n{LABEL}\n}}", "wrong_class"),
        (NEW, f"package shop.other;\nclass Texts {{\n{LABEL}\n}}", "wrong_class"),
        ("elsewhere/Texts.java", f"class Texts {{\n{LABEL}\n}}", "wrong_class"),
        (
            "src/test/java/shop/text/Labels.java",
            f"package shop.text;\nclass Labels {{\n{LABEL}\n}}",
            "class_exists",
        ),
    ],
)
def test_new_file_must_fit(path: str, code: str, outcome: str) -> None:
    assert problem(move(path, code), MOVE, moveFileExist=False) == outcome


@pytest.mark.parametrize("kind", KINDS)
def test_other_tree_is_no_fault_of_the_answer(kind: str) -> None:
    assert problem(answer(kind), kind, Files({})) == "wrong_tree"
    other = tree(**{CART: b"class Cart {\n}\n", PRICES: b"class Prices {\n}\n"})
    assert problem(answer(kind), kind, other) == "wrong_tree"


@pytest.mark.parametrize("kind", KINDS)
def test_instance_without_places_is_no_fault_of_the_answer(kind: str) -> None:
    assert problem(answer(kind), kind, diffLocations=[]) == "wrong_tree"
    lines = {"startLine": 0, "endLine": 10**9, "startColumn": 0, "endColumn": 0}
    places = [{"filePath": path, **lines} for path in (CART, "../x.java", CART)]
    assert problem(answer(kind), kind, diffLocations=places) in {"wrong_tree", "wrong_file"}


def test_move_may_leave_nothing_behind() -> None:
    files = edited(move(left=""), MOVE)
    assert "label(String" not in files[CART]
    assert "label(String" in files[LABELS]
    assert files[CART].count("\n\n\n") == 0


def test_developers_new_name_of_the_method_is_accepted() -> None:
    renamed = COUNT.replace("count", "number")
    assert "int number()" in edited(one(renamed), INLINE, sourceCodeAfterRefactoring=renamed)[CART]


def test_answer_may_bring_imports() -> None:
    files = edited(
        format_answer([SUMS, f"import java.util.List;\n\n{PARTS[EXTRACT_MOVE][1]}", TOTAL]), EXTRACT_MOVE
    )
    assert files[SUMS].count("import java.util.List;") == 1
