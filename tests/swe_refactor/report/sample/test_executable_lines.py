"""What counts as an executable line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.report.sample.executable_lines import executable_lines

METHOD = """/** Javadoc
 * of two lines.
 */
@Deprecated
@SuppressWarnings({"a",
    "b"})
public int f(int a,
             int b)
    throws Exception
{
    // a comment

    int c = a /* inside */ + b;
    if (c > 0) {
        c = g(
            a
        );
    } else {
        return 1; /* begins here
        ends here */
    }
    ;
    return c;
}
"""


def test_comments_blank_lines_brackets_and_the_signature_do_not_count() -> None:
    assert executable_lines(METHOD) == 7  # int c, if, c = g(, a, else, return 1, return c


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("void f() { a(); b(); }", 1),
        ("void f() {\n}", 0),
        ("abstract void f();", 0),
        ("A(int a) {\n this.a = a;\n}", 1),
        ('String f() {\n return """\n  a\n\n  // b\n  """;\n}', 4),
        ('void f() {\n a("/* no comment", "// neither");\n}', 1),
        ("void f() {\n r = new R() {\n  public void run() {\n   a();\n  }\n };\n}", 3),
        ("void f() {\r\n a();\r\n\r\n b();\r\n}", 2),
        ("void f() {\n a(\n", 1),
        ("no method", None),
        ("", None),
    ],
)
def test_methods_of_all_kinds(code: str, lines: int | None) -> None:
    assert executable_lines(code) == lines


@given(st.lists(st.sampled_from(["a();", "", "// c", "/* c */", "}", "{", "if (a) b();"]), max_size=20))
def test_as_many_lines_as_have_code(lines: list[str]) -> None:
    opened = 0
    chosen = []
    for line in lines:
        opened += {"{": 1, "}": -1}.get(line, 0)
        if opened < 0:
            opened = 0
            continue
        chosen.append(line)
    method = "\n".join(["void f() {", *chosen, "}" * opened, "}"])
    assert executable_lines(method) == sum(line in {"a();", "if (a) b();"} for line in chosen)


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    found = executable_lines(text)
    assert found is None or 0 <= found <= text.count("\n") + text.count("\r") + 1
