"""Hidden characters of untrusted text are shown by their numbers."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from codetaste.site.html.visible import visible


def test_escape_sequences_and_directions_are_shown() -> None:
    assert visible("\x1b[31mred\x1b[0m") == "⟨ESC[31m⟩red⟨ESC[0m⟩"
    assert visible("\x1b]8;;http://x\x07link\x1b]8;;\x07") == "⟨ESC]8;;http://x⟨U+0007⟩⟩link⟨ESC]8;;⟨U+0007⟩⟩"
    assert visible("a\u202eb") == "a⟨U+202E⟩b"
    assert visible("one\r\ntwo\tthree") == "one\ntwo\tthree"


@given(st.text())
def test_what_is_shown_has_no_control_or_direction_characters(text: str) -> None:
    shown = visible(text)
    kinds = {unicodedata.category(char) for char in shown if char not in "\n\t"}
    bidi = {chr(number) for number in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert not bidi & set(shown)


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
