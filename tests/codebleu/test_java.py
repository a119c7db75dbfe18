"""Comments of Java are removed in linear time, whatever they contain."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.codebleu.java import remove_comments

pieces = st.sampled_from(["//", "/*", "*/", "/", "*", "'", '"', "\\", "\n", "a", " ", "\r\n", "é"])


def slow_without_comments(text: str) -> str:
    """Look for an end from each place at which a comment or literal may begin."""
    bare, place = "", 0
    while place < len(text):
        two = text[place : place + 2]
        end = None
        if two == "//":
            end = (text + "\n").index("\n", place)
        elif two == "/*":
            found = text.find("*/", place + 2)
            end = found + 2 if found >= 0 else None
        elif two[0] in "'\"":
            literal = re.compile(rf"{two[0]}([^\\{two[0]}]|\\[\s\S])*?{two[0]}").match(text, place)
            end = literal.end() if literal else None
        if end is None:
            bare, place = bare + text[place], place + 1
        else:
            bare, place = bare + (" " if two[0] == "/" else text[place:end]), end
    return "\n".join(line for line in bare.split("\n") if line.strip())


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("int a; // one\nint b;", "int a;  \nint b;"),
        ("a /* two\nlines */ b", "a   b"),
        ("/** doc */\n\nint a;", "int a;"),
        ('s = "// no comment"; // one', 's = "// no comment";  '),
        (r's = "\"//"; c = ' + "'\"'; // x", r's = "\"//"; c = ' + "'\"';  "),
        ("a; // one\r\nb;", "a;  \nb;"),
        ("a /* no end", "a /* no end"),
        ("a 'no end // one", "a 'no end  "),
        ("/* x", "/* x"),
        ("//", ""),
        ("", ""),
    ],
)
def test_comments_become_a_space_and_blank_lines_go(text: str, bare: str) -> None:
    assert remove_comments(text) == bare


@given(st.lists(pieces, max_size=30).map("".join))
def test_any_text_is_read_as_by_looking_from_each_place(text: str) -> None:
    assert remove_comments(text) == slow_without_comments(text)


@pytest.mark.parametrize("piece", ["/*", "\\'", '\\"', "'\\", "/*/"])
def test_time_is_linear_where_nothing_has_an_end(piece: str) -> None:
    text = "x" + piece * 100_001
    assert len(remove_comments(text)) <= len(text)
