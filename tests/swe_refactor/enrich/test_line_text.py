"""Lines as the published fields have them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.enrich.line_text import compare_lines, slice_lines, text_lines

TEXT = st.text(alphabet="ab \n\t", max_size=40)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [(1, 1, "one"), (2, 3, "two\n  three"), (3, 3, "three"), (3, 4, ""), (0, 1, ""), (3, 2, "")],
)
def test_a_slice_has_no_space_around_it_and_is_empty_beyond_the_end(start: int, end: int, found: str) -> None:
    assert slice_lines("one\n \x00 two\n  three\r\n\n\n", start, end) == found


@given(TEXT, st.integers(1, 6), st.integers(1, 6))
def test_a_slice_is_part_of_the_text(text: str, start: int, end: int) -> None:
    assert slice_lines(text, start, end) in text


def test_lines_of_equal_numbers_are_compared_deleted_before_added() -> None:
    before, after = "a\nb\nc\nd\n", "a\nB\nC\nd\ne\n"
    assert compare_lines(before, after, [4, 1, 2, 3, 5, 9]) == (
        "     1: a\n-    2: b\n-    3: c\n+    2: B\n+    3: C\n     4: d\n+    5: e\n"
    )


@given(TEXT, TEXT, st.sets(st.integers(1, 50)))
def test_the_comparison_has_each_line_of_both_texts(before: str, after: str, numbers: set[int]) -> None:
    lines = compare_lines(before, after, numbers).split("\n")[:-1]
    for text, sign in ((before, "- "), (after, "+ ")):
        found = {int(line[2:6]): line[8:] for line in lines if line[:2] in {"  ", sign}}
        wanted = {number: line for number, line in enumerate(text_lines(text), 1) if number in numbers}
        assert found == wanted
