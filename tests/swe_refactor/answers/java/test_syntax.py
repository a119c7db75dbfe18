"""Java texts are taken apart into types, members and imports, whatever their strings and comments hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.answers.java.syntax import SourceUnit, all_types, normal_code, parse_java


def unit(text: str) -> SourceUnit:
    found = parse_java(text.encode())
    assert found is not None
    return found


def test_package_imports_and_types_have_their_names() -> None:
    found = unit(
        "package p . q;\nimport a.B;\nimport static a.B./* x */c;\nimport x.*;\n"
        "class A { enum B { C } }\n@interface D {}"
    )
    assert found.package == "p.q"
    assert [each.line for each in found.imports] == ["import a.B;", "import static a.B.c;", "import x.*;"]
    assert [each.name for each in all_types(found.types)] == ["A", "B", "D"]
    assert found.error_at is None


def test_signature_has_the_erased_simple_types() -> None:
    (method,) = (
        unit(
            "class A { <T> void f(@X(1) int a, final java.util.List<Map<String[], T>>[] b, "
            "String... c, long d[]) {} }"
        )
        .types[0]
        .members
    )
    assert method.signature == "f(int, List[], String[], long[])"


def test_members_begin_with_their_javadoc() -> None:
    text = "class A { /** a */ int a; /* b */ int b; /** c */ // c\n @X int c() { return 0; } }"
    found = unit(text)
    parts = [found.text(each.start, each.end) for each in found.types[0].members]
    assert parts == ["/** a */ int a;", "int b;", "/** c */ // c\n @X int c() { return 0; }"]


def test_braces_in_strings_characters_comments_and_text_blocks_close_nothing() -> None:
    body = 'String s = "}" + \'}\' + """\n  } "x" \n"""; // }\n /* } */ char c = \'\\\'\';'
    found = unit(f"class A {{ void f() {{ {body} }} int g; }}")
    assert found.error_at is None
    assert [each.name for each in found.types[0].members] == ["f", "g"]


def test_kinds_of_members_and_modern_types() -> None:
    found = unit(
        "record R(int a) { R { } static int b; } sealed interface S permits T { } "
        "enum E { A { int x() { return 1; } }, B; E() { } { init(); } int x() { return 0; } }"
    )
    assert found.error_at is None
    record, _, enum = found.types
    assert [each.kind for each in record.members] == ["compact_constructor_declaration", "field_declaration"]
    assert [each.name for each in enum.members] == ["A", "B", "E", "", "x"]
    assert not enum.open_constants
    assert unit("enum E { A, B }").types[0].open_constants


def test_first_error_is_found() -> None:
    found = unit("class A {\n  int a = ;\n}")
    assert found.error_at is not None
    assert found.line_of(found.error_at) == 2


def test_what_would_take_the_parser_too_long_is_refused() -> None:
    assert parse_java(b"a<" * 300_000) is None
    assert parse_java(b"class A { " + b"List<String> a; " * 500 + b"}") is not None


TOKENS = st.sampled_from(["a", "b1", "1.5", '"x // y"', "'\"'", '"""\n z */ """', "{", "}", "+", "é"])
BLANKS = st.sampled_from([" ", "\n", "\r\n", "\t", " /* x */ ", " // y\n", "/**/", " /* ' \" */"])


@given(st.lists(st.tuples(TOKENS, BLANKS, BLANKS), max_size=12))
def test_code_is_equal_up_to_comments_and_white_space(pieces: list[tuple[str, str, str]]) -> None:
    one, other = ("".join(f"{each[0]} {each[at]}" for each in pieces) for at in (1, 2))
    assert normal_code(one.encode()) == normal_code(other.encode())


@given(st.lists(TOKENS, max_size=8), st.lists(TOKENS, max_size=8))
def test_other_tokens_are_other_code(one: list[str], other: list[str]) -> None:
    if one != other:
        assert normal_code(" ".join(one).encode()) != normal_code(" ".join(other).encode())


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes) -> None:
    found = parse_java(data)
    assert found is not None
    for each in all_types(found.types):
        assert 0 <= each.start <= each.code_start <= each.body_start <= each.body_end <= each.end <= len(data)
