"""Members are replaced, removed and added, and imports added, as a person would."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codetaste.swe_refactor.answers.edit.imports import add_imports, imports_of_moved_code, used_words
from codetaste.swe_refactor.answers.edit.members import add_members, remove_member, replace_member
from codetaste.swe_refactor.answers.edit.source_file import SourceFile, apply_edits, open_source
from codetaste.swe_refactor.answers.java.syntax import SourceImport, all_types
from support.swe_refactor.shop import Files


def edit(text: str, change: Callable[[SourceFile], None]) -> str:
    file = open_source("A.java", text.encode())
    change(file)
    return apply_edits(file.raw, file.byte_edits()).decode()


def added(text: str, *members: str, to: str = "A") -> str:
    return edit(
        text,
        lambda file: add_members(file, next(t for t in all_types(file.unit.types) if t.name == to), members),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("class A {}", "class A {\n    int f();\n}"),
        ("class A {\n}\n", "class A {\n    int f();\n}\n"),
        ("class A {\n\n}\n", "class A {\n    int f();\n\n}\n"),
        ("class A { int a; }", "class A { int a;\n\n    int f();\n}"),
        ("class A {\n  int a; // x\n}", "class A {\n  int a; // x\n\n  int f();\n}"),
        ("class A {\n\tint a;\n}", "class A {\n\tint a;\n\n\tint f();\n}"),
        ("class A {\n    int a;\n    // end\n}", "class A {\n    int a;\n    // end\n\n    int f();\n}"),
        ("enum A { X, Y }", "enum A { X, Y;\n\n    int f();\n}"),
        ("enum A {\n    X, Y,\n}", "enum A {\n    X, Y,;\n\n    int f();\n}"),
        ("enum A {\n    X // x\n}", "enum A {\n    X // x\n    ;\n\n    int f();\n}"),
        ("enum A {\n    X;\n}", "enum A {\n    X;\n\n    int f();\n}"),
        ("interface A {\n    int a();\n}", "interface A {\n    int a();\n\n    int f();\n}"),
        ("record A(int x) {}", "record A(int x) {\n    int f();\n}"),
        ("class B {\n    class A {\n    }\n}", "class B {\n    class A {\n        int f();\n    }\n}"),
    ],
)
def test_member_is_added_at_the_end_of_its_type(before: str, after: str) -> None:
    assert added(before, "int f();") == after


def test_several_members_are_apart_by_a_line() -> None:
    assert added("class A {\n}", "int f();", "int g();") == "class A {\n    int f();\n\n    int g();\n}"


def removed(text: str, name: str) -> str:
    def change(file: SourceFile) -> None:
        members = [each for kind in all_types(file.unit.types) for each in kind.members]
        remove_member(file, next(each for each in members if each.name == name))

    return edit(text, change)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("class A {\n    int a;\n\n    /** F. */\n    @B\n    int f();\n}", "class A {\n    int a;\n}"),
        ("class A {\n    int f();\n\n    int g();\n}", "class A {\n    int g();\n}"),
        (
            "class A {\n    int a;\n\n    int f();\n\n    int g();\n}",
            "class A {\n    int a;\n\n    int g();\n}",
        ),
        ("class A {\n    int f();\n    int g();\n}", "class A {\n    int g();\n}"),
        ("class A { int f(); int g(); }", "class A {  int g(); }"),
        ("class A {\n    int f(); // of f\n}", "class A {\n     // of f\n}"),
        ("class A {\r\n    int f();\r\n}", "class A {\r\n}"),
    ],
)
def test_member_is_removed_with_its_lines(before: str, after: str) -> None:
    assert removed(before, "f") == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("int f() { return 1; }", "class A {\n  /** F. */\n  int f() { return 1; }\n}"),
        ("/** G. */ int f();", "class A {\n  /** G. */ int f();\n}"),
    ],
)
def test_replaced_member_keeps_its_javadoc_if_there_is_no_other(text: str, after: str) -> None:
    def change(file: SourceFile) -> None:
        replace_member(file, file.unit.types[0].members[0], text, [])

    assert edit("class A {\n  /** F. */\n  int f();\n}", change) == after


def imported(text: str, *names: str) -> str:
    found = [SourceImport(name.removeprefix("static "), name.startswith("static "), 0, 0) for name in names]
    return edit(text, lambda file: add_imports(file, found))


@pytest.mark.parametrize(
    ("before", "names", "after"),
    [
        ("import a.A;\n\nclass X {}", ("c.C", "b.B"), "import a.A;\nimport b.B;\nimport c.C;\n\nclass X {}"),
        ("import a.A;\nclass X {}", ("a.A",), "import a.A;\nclass X {}"),
        ("import a.*;\nclass X {}", ("a.A", "static a.B.c"), "import a.*;\nimport static a.B.c;\nclass X {}"),
        ("import static a.B.*;\nclass X {}", ("static a.B.c",), "import static a.B.*;\nclass X {}"),
        ("import a.A;\nclass X {}", ("b.A",), "import a.A;\nclass X {}"),
        ("class X {}", ("b.A", "c.A"), "import b.A;\n\nclass X {}"),
        ("package p;\n\nclass X {}", ("p.A", "java.lang.Long"), "package p;\n\nclass X {}"),
        ("package p;\nclass X {}", ("a.A",), "package p;\n\nimport a.A;\nclass X {}"),
        ("/* (c) */\n/** X. */\nclass X {}", ("a.A",), "/* (c) */\nimport a.A;\n\n/** X. */\nclass X {}"),
    ],
)
def test_imports_are_added_once_behind_the_last_one(before: str, names: tuple[str, ...], after: str) -> None:
    assert imported(before, *names) == after


def test_words_of_strings_comments_and_behind_dots_need_no_import() -> None:
    assert used_words("a(ªb, é1)") == {"a", "ªb", "é1"}
    assert used_words("A.b(c) + \"D\" + 'E' /* F */ // G\n + H.I . J") == {"A", "c", "H", "b"} - {"b"}


def test_moved_code_brings_the_imports_that_it_uses() -> None:
    source = open_source(
        "p/S.java", b"package p;\nimport a.A;\nimport a.B;\nimport static x.Y.z;\nclass S {}"
    )
    files = Files({"p/Near.java": b""})
    code = "A f(Near n) { return z(n, Known.x, S.y, far.Near2.q); }"
    found = imports_of_moved_code(code, source, "q", {"Known"}, files)
    assert sorted(each.line for each in found) == [
        "import a.A;",
        "import p.Near;",
        "import p.S;",
        "import static x.Y.z;",
    ]
    assert sorted(each.name for each in imports_of_moved_code(code, source, "p", set(), files)) == [
        "a.A",
        "x.Y.z",
    ]
