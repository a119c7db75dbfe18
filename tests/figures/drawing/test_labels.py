"""Labels of untrusted names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.ft2font import FT2Font

from codetaste.figures.drawing.labels import MAX_CHARS, glyphs, make_labels, shorten_middle
from codetaste.figures.drawing.style import FONT_FILE


@given(st.lists(st.text(max_size=40) | st.sampled_from(["a" * 99, "a" * 98 + "b", "", " ", "(no name)"])))
def test_labels_are_unique_short_and_drawable(names: list[str]) -> None:
    labels = make_labels(names)
    assert list(labels) == list(dict.fromkeys(names))
    assert len(set(labels.values())) == len(labels)
    known = FT2Font(str(FONT_FILE)).get_charmap()
    for label in labels.values():
        assert label.isprintable()
        assert 0 < len(label) <= MAX_CHARS + 6
        assert all(ord(char) in known for char in label)


def test_a_long_name_keeps_its_ends() -> None:
    assert shorten_middle("claude-code-with-a-long-name-2026-10", 15) == "claude-…2026-10"


def test_long_names_that_differ_in_the_middle_show_where() -> None:
    names = [f"claude-code-opus-4.{version}-with-64k-tools-v1" for version in range(12)]
    labels = make_labels(names, 24)
    assert labels[names[3]] == "claude-c…4.3-with-64k-t…"
    assert labels[names[11]] == "claude-c…4.11-with-64k-…"


def test_a_character_without_a_glyph_is_its_code_point() -> None:
    assert glyphs("a漢\u202e") == "a[U+6F22]\\u202e"
