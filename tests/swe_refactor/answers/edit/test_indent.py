"""Members are indented like what is around them, and keep their shape."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.answers.edit.indent import fit_indent


@pytest.mark.parametrize(
    "text",
    [
        "void f() {\n    a();\n}",
        "    void f() {\n        a();\n    }",
        "void f() {\n        a();\n    }",  # as instances have it: the first line begins at the method
        "\n\tvoid f() {\n\t    a();\n\t}\n",
    ],
)
def test_text_from_any_place_fits(text: str) -> None:
    assert fit_indent(text, "  ") == "void f() {\n      a();\n  }"


def test_javadoc_keeps_its_stars_in_a_column() -> None:
    text = "/**\n     * Adds.\n     */\n    void f() {\n    }"
    assert fit_indent(text, "  ") == "/**\n   * Adds.\n   */\n  void f() {\n  }"


def test_blank_lines_stay_empty() -> None:
    assert fit_indent("void f() {\n    a();\n   \n    b();\n}", "    ").split("\n")[2] == ""


def test_text_block_keeps_its_content() -> None:
    text = 'String f() {\n    return """\n        a\n          b\n        """;\n}'
    fitted = fit_indent(text, "        ")
    block = fitted.partition('"""\n')[2].partition('"""')[0]
    assert textwrap.dedent(block) == "a\n  b\n"


def test_spaces_become_tabs_where_the_file_has_tabs() -> None:
    assert fit_indent("void f() {\n    if (a) {\n        b();\n    }\n}", "\t") == (
        "void f() {\n\t\tif (a) {\n\t\t\tb();\n\t\t}\n\t}"
    )


LINES = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["a();", "}", "x", ""])), min_size=1, max_size=8
)


@given(LINES, st.integers(0, 8))
def test_lines_keep_their_places_to_each_other(lines: list[tuple[int, str]], width: int) -> None:
    text = "\n".join(["void f() {", *(" " * blank + code for blank, code in lines), "}"])
    indent = " " * width
    fitted = fit_indent(text, indent)
    assert [line.strip() for line in fitted.split("\n")] == [line.strip() for line in text.split("\n")]
    assert fit_indent(fitted, indent) == fitted
    before = [len(line) - len(line.lstrip()) for line in text.split("\n")[1:] if line.strip()]
    after = [len(line) - len(line.lstrip()) for line in fitted.split("\n")[1:] if line.strip()]
    assert {new - old for old, new in zip(before, after, strict=True)} == {width - min(before)}
