"""Tokens of code and prose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.retrieval.code_tokens import code_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("getUserName()", ["getusername", "get", "user", "name"]),
        ("XMLParser", ["xmlparser", "xml", "parser"]),
        ("parseHTTP2Response", ["parsehttp2response", "parse", "http", "2", "response"]),
        ("MAX_SIZE", ["max_size", "max", "size"]),
        ("_name", ["name"]),
        ("this.total += 10;", ["this", "total", "10"]),
        ("the user's name", ["the", "user", "s", "name"]),
        ("größe_ändern", ["größe_ändern", "größe", "ändern"]),
        ("{ } ; __", []),
    ],
)
def test_an_identifier_gives_itself_and_its_parts(text: str, tokens: list[str]) -> None:
    assert code_tokens(text) == tokens


@given(st.lists(st.text(alphabet="abcdefghij", min_size=1, max_size=6), min_size=2, max_size=5))
def test_the_parts_of_a_camel_case_name_are_its_words(words: list[str]) -> None:
    name = words[0] + "".join(word.capitalize() for word in words[1:])
    whole, *parts = code_tokens(name)
    assert whole == "".join(words)
    assert "".join(parts) == whole


@given(st.text())
def test_any_text_has_lower_case_tokens(text: str) -> None:
    assert all(token and token == token.lower() for token in code_tokens(text))
