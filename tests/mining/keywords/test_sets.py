"""The sets of the package and of a user's file; the same counts in Python and in DuckDB."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.mining.keywords.count import count_keywords, find_keywords
from codetaste.mining.keywords.sets import SET_NAMES, KeywordSets, load_keyword_sets

EMPTY = dict.fromkeys(SET_NAMES, "[]")
CONNECTION = duckdb.connect()
HARD = [*"\n -\v\0_:!İ\u212a\u017fé\u0301重\U0001f600\u2028ßΣ", "(a)"]
PAPER = {
    "deduplicate": "strong_plus",
    "reorganize": "weak_plus",
    "fix": "strong_minus",
    "lint": "strong_minus",
}


def write(folder: Path, **lists: str) -> Path:
    path = folder / "sets.toml"
    path.write_text("".join(f"{name} = {text}\n" for name, text in {**EMPTY, **lists}.items()), "utf-8")
    return path


def duckdb_counts(text: str, sets: KeywordSets) -> tuple[int, ...]:
    patterns = [getattr(sets, name).pattern for name in SET_NAMES]
    columns = ", ".join(f"len(regexp_extract_all(lower($1), ${number}))" for number in range(2, 6))
    row = CONNECTION.execute(f"SELECT {columns}", [text, *patterns]).fetchone()
    assert row is not None
    return row


def python_counts(text: str, sets: KeywordSets) -> tuple[int, ...]:
    counts = count_keywords(text, sets)
    return tuple(getattr(counts, name) for name in SET_NAMES)


@pytest.mark.parametrize("word", PAPER)
def test_a_word_that_the_paper_names_is_in_its_set_alone(word: str) -> None:
    matches = find_keywords(f"We {word} it", load_keyword_sets())
    expected = {name: (word,) if name == PAPER[word] else () for name in SET_NAMES}
    assert {name: getattr(matches, name) for name in SET_NAMES} == expected


PIECES = [
    each.text.rstrip("~*:") for name in SET_NAMES for each in getattr(load_keyword_sets(), name).keywords
]
TEXTS = st.lists(
    st.sampled_from(PIECES).flatmap(lambda word: st.sampled_from([word, word.upper(), word.title()]))
    | st.sampled_from(["s", "ed", "ing", "up", "x", *HARD])
    | st.text(max_size=3),
    max_size=20,
).map("".join)


@given(TEXTS)
def test_duckdb_counts_the_same_as_python(text: str) -> None:
    sets = load_keyword_sets()
    assert duckdb_counts(text, sets) == python_counts(text, sets)


def test_overlapping_keywords_count_once_and_the_longest_phrase_wins(tmp_path: Path) -> None:
    path = write(
        tmp_path, strong_plus='["clean*", "clean~ up", "clean~ up the code", "refactor*", "refactor:"]'
    )
    sets = load_keyword_sets(path)
    text = "Refactor: cleaning up the code, clean up"
    assert find_keywords(text, sets).strong_plus == ("refactor:", "cleaning up the code", "clean up")
    assert duckdb_counts(text, sets) == (3, 0, 0, 0)


def test_of_a_word_in_the_title_the_word_alone_is_found(tmp_path: Path) -> None:
    path = write(tmp_path, strong_plus='["rename~", "^fix~", "lint"]')
    sets = load_keyword_sets(path)
    for text, found in {
        "api: Fixes a fix\nfix": ("fixes",),
        "a\nfix lint": ("lint",),
        "Rename a, lint\nrename": ("rename", "lint", "rename"),
    }.items():
        assert find_keywords(text, sets).strong_plus == found
        assert duckdb_counts(text, sets) == (len(found), 0, 0, 0)


def test_an_empty_set_matches_nothing(tmp_path: Path) -> None:
    sets = load_keyword_sets(write(tmp_path, weak_plus='["move~"]'))
    text = "move a\n\nb"
    assert python_counts(text, sets) == duckdb_counts(text, sets) == (0, 1, 0, 0)


def test_a_set_of_many_keywords_is_counted_in_duckdb(tmp_path: Path) -> None:
    words = ", ".join(f'"keyword{number}~ of the~ longest* kind{number}*"' for number in range(500))
    sets = load_keyword_sets(write(tmp_path, weak_minus=f"[{words}]", weak_plus='["a"]'))
    text = "keyword7 of the longest kind7 keyword499s of the longest kind499"
    assert python_counts(text, sets) == duckdb_counts(text, sets) == (0, 0, 0, 2)


def test_all_problems_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "sets.toml"
    path.write_text(
        'strong_pls = []\nweak_plus = ["Move", 3, "fix"]\nstrong_minus = ["fix"]\nweak_minus = "add"\n'
    )
    lists = ", ".join(SET_NAMES)
    with pytest.raises(ConfigError) as error:
        load_keyword_sets(path)
    assert list(error.value.problems) == [
        f"{path}: unknown key 'strong_pls' (did you mean 'strong_plus'?); the lists are {lists}",
        f"{path}: strong_plus: is missing; an empty list is []",
        f"{path}: weak_plus: 'Move': write it in small letters: 'move' (case does not count)",
        f"{path}: weak_plus: item 2 must be a keyword in quotes",
        f"{path}: weak_minus: must be a list of keywords",
        f"{path}: 'fix' is there 2 times (weak_plus, strong_minus): keep one",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("strong_plus = [", "not valid TOML"),
        ("strong_plus = []\nweak_plus = []\nstrong_minus = []\nweak_minus = []", "no commit would be kept"),
        (
            f"strong_plus = {['a'] * 501}\nweak_plus = ['b']\nstrong_minus = []\nweak_minus = []",
            "501 keywords",
        ),
    ],
)
def test_a_useless_file_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "sets.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(fault)):
        load_keyword_sets(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file of keyword sets"):
        load_keyword_sets(tmp_path / "none.toml")
