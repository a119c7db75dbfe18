"""JSON of pages' data: what ``json`` reads back, in ASCII, for every text and number."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from codetaste.site.html.compact_json import compact_json

TEXTS = st.text(st.characters(exclude_categories=()))  # lone surrogates, too
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@given(VALUES)
def test_values_are_read_back(value: object) -> None:
    content = compact_json(value)
    assert content.isascii()
    assert json.loads(content) == value
    assert content == compact_json(value)
