"""Readings of keywords, against words written out by hand and a matcher without regular expressions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.keywords.count import fold_case
from codetaste.mining.keywords.keyword import parse_keyword


def find(keyword: str, text: str) -> list[str]:
    return re.findall(parse_keyword(keyword).pattern, fold_case(text), re.ASCII)


@pytest.mark.parametrize(
    ("keyword", "text", "expected"),
    [
        ("fix", "Fix: FIX, a fix-up; fixes fixed prefix fix_it suffix fix2", ["fix", "fix", "fix"]),
        ("lint", "lint/linter eslint (lint)", ["lint", "lint"]),
        ("refactor*", "Refactoring refactor_io, unrefactored", ["refactoring", "refactor_io"]),
        ("rename~", "rename renames renamed renaming renamer", ["rename", "renames", "renamed", "renaming"]),
        ("strip~", "strip strips stripped stripping striper", ["strip", "strips", "stripped", "stripping"]),
        ("split~", "split splits splitting splitter", ["split", "splits", "splitting"]),
        ("tidy~", "tidy tidies tidied tidying tidyup", ["tidy", "tidies", "tidied", "tidying"]),
        ("deploy~", "deploy deploys deployed deploying", ["deploy", "deploys", "deployed", "deploying"]),
        ("polish~", "polish polishes polished polishs", ["polish", "polishes", "polished"]),
        ("clean~ up", "Cleaned-up, clean\n up cleanup clean.up", ["cleaned-up", "clean\n up"]),
        ("feat:", "feat(a b)!: feat: x", ["feat(a b)!:"]),
        ("feat:", "Feat! : x", ["feat! :"]),
        ("feat:", "a\nfeat: x", []),
        ("feat:", "feature: x", []),
        ("feat:", "feat(a\n): x", []),
        ("^fix", "Fix a, fix b\nfix c", ["fix"]),
        ("^fix", "a: fix_it, a fix-up", ["a: fix_it, a fix"]),
        ("^fix", "Move a\n\nfix b", []),
        ("^renam*", "a Renaming", ["a renaming"]),
    ],
)  # fmt: skip
def test_a_keyword_matches_what_its_reading_says(keyword: str, text: str, expected: list[str]) -> None:
    assert find(keyword, text) == expected


@pytest.mark.parametrize(
    ("keyword", "fault"),
    [
        ("Fix", "small letters: 'fix'"),
        ("", "a keyword is words"),
        ("clean  up", "one space"),
        ("a|b", "a keyword is words"),
        ("re~factor", "a keyword is words"),
        ("naïve", "letters a-z"),
        ("feat(x):", "a keyword is words"),
        ("^clean~ up", "a keyword is words"),
        ("x" * 81, "longer than 80"),
    ],
)
def test_a_wrong_keyword_is_refused_with_its_fault(keyword: str, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        parse_keyword(keyword)


def is_word_character(char: str) -> bool:
    return char in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"


def words_of(text: str) -> list[str]:
    words = [""]
    for char in text:
        if is_word_character(char):
            words[-1] += char
        elif words[-1]:
            words.append("")
    return [word.lower() for word in words]


@given(st.text("fixFIXé\u017f _-\n0重", max_size=40))
def test_whole_words_and_beginnings_are_those_of_a_matcher_without_expressions(text: str) -> None:
    words = words_of(text)
    assert find("fix", text) == [word for word in words if word == "fix"]
    assert find("fi*", text) == [word for word in words if word.startswith("fi")]
