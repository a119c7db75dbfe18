"""Whatever a model writes: no exception, and no byte outside of the reported ranges is another one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.swe_refactor.answers.answer_format import format_answer
from codetaste.swe_refactor.answers.apply import EditedFiles
from codetaste.swe_refactor.answers.java.syntax import parse_java
from codetaste.swe_refactor.answers.problem import AnswerProblem
from support.swe_refactor.shop import CART, FILES, KINDS, LABELS, PARTS, PRICES, TILL, Files, answer, use

PIECES = st.sampled_from(
    [
        "#####\n",
        "```java\n",
        "```\n",
        *FILES,
        "../x.java",
        *(part for parts in PARTS.values() for part in parts),
        "class Cart {\n",
        "enum Cart { A }\n",
        "}\n",
        "{",
        '"""',
        "/*",
        "//",
        "*/",
        "import a.B;\n",
        "import static a.B.*;\n",
        "package shop;\n",
        "int total(int tax);\n",
        "\r\n",
        "\x00",
        "\ud800",
        "é∑",
        "ªb",
        "@A ",
        "total",
        ";",
    ]
)
SOUP = st.lists(PIECES, max_size=14).map("".join)


@st.composite
def damaged(draw: st.DrawFn, kind: str) -> str:
    """Return a right answer with some of its text cut out, doubled or replaced."""
    text = answer(kind)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 60)))
        text = text[:start] + draw(st.one_of(PIECES, st.text(max_size=5), st.just(""))) + text[end:]
    return text


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, str]:
    kind = draw(st.sampled_from(KINDS))
    parts = st.lists(SOUP, min_size=len(PARTS[kind]), max_size=len(PARTS[kind])).map(format_answer)
    return kind, draw(st.one_of(damaged(kind), parts, SOUP, st.text()))


def check(result: EditedFiles | AnswerProblem, base: Mapping[str, bytes]) -> None:
    if isinstance(result, AnswerProblem):
        assert result.sentence
        assert "\n" not in result.sentence
        return
    assert set(result.files) <= {*base, *result.created}
    assert not set(result.created) & set(base)
    for path, content in result.files.items():
        before, rest = base.get(path, b""), content
        end = 0
        for edit in [each for each in result.edits if each.path == path]:
            assert end <= edit.start <= edit.end <= len(before)
            same = before[end : edit.start] + edit.content
            assert rest.startswith(same)
            rest, end = rest[len(same) :], edit.end
        assert rest == before[end:]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(answers())
def test_any_answer_is_a_problem_or_edits_of_the_reported_ranges(case: tuple[str, str]) -> None:
    kind, text = case
    check(use(text, kind), {path: content.encode() for path, content in FILES.items()})


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(
    newline=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    encoding=st.sampled_from(["utf-8", "latin-1"]),
    comment=st.sampled_from(["", "é", "ÿ\t", "//"]),
    tail=st.sampled_from(["", "\n", "\n\n\n"]),
)
def test_files_keep_encoding_line_ends_and_marks(
    kind: str, newline: str, mark: bool, encoding: str, comment: str, tail: str
) -> None:
    base = {
        path: b"\xef\xbb\xbf" * (mark and encoding == "utf-8")
        + (text.rstrip() + f" // {comment}" + tail).replace("\n", newline).encode(encoding)
        for path, text in FILES.items()
    }
    result = use(answer(kind), kind, Files(base))
    assert isinstance(result, EditedFiles)
    check(result, base)
    for path, content in result.files.items():
        assert content.count(b"\r\n") == (content.count(b"\n") if newline == "\r\n" else 0)
        assert content.startswith(b"\xef\xbb\xbf") == base[path].startswith(b"\xef\xbb\xbf")
        text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
        unit = parse_java(text.encode())
        assert unit is not None
        assert unit.error_at is None


def test_character_that_a_file_cannot_have_is_named() -> None:
    base = {path: (text + "// é\n").encode("latin-1") for path, text in FILES.items()}
    result = use(answer("Inline Method").replace("return", "/* ∑ */ return"), "Inline Method", Files(base))
    assert isinstance(result, AnswerProblem)
    assert (result.kind, result.sentence) == (
        "not_encodable",
        f"{CART} is no UTF-8, and U+2211 is not in Latin-1.",
    )


def test_each_type_edits_the_files_that_it_must() -> None:
    edited = {kind: use(answer(kind), kind) for kind in KINDS}
    paths = {kind: set(each.files) for kind, each in edited.items() if isinstance(each, EditedFiles)}
    assert paths["Extract Method"] == paths["Inline Method"] == {CART}
    assert paths["Move Method"] == paths["Move And Rename Method"] == {CART, LABELS}
    assert paths["Move And Inline Method"] == {PRICES, TILL}
