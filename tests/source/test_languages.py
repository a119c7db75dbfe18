"""The main language of a change, by the suffixes of its files."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.benchmark.instances_csv import LANGUAGES
from codetaste.source.languages import LANGUAGE_OF_SUFFIX, language_of, main_language


def test_every_language_is_one_that_instances_may_have() -> None:
    assert set(LANGUAGE_OF_SUFFIX.values()) <= LANGUAGES


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("src/a.py", "python"),
        ("src/A.PY", "python"),
        ("web/App.tsx", "typescript"),
        ("README.md", None),
        ("Makefile", None),
        (".py", None),
        ("", None),
    ],
)
def test_language_of_a_file(path: str, language: str | None) -> None:
    assert language_of(path) == language


@pytest.mark.parametrize(
    ("changes", "language"),
    [
        ([], None),
        ([("README.md", 900)], None),
        ([("a.go", 10), ("b.py", 4), ("c.py", 5), ("README.md", 900)], "go"),
        ([("a.go", 10), ("b.py", 10)], "go"),
        ([("a.h", 10), ("a.cpp", 3), ("b.go", 12)], "cpp"),
        ([("a.h", 10), ("a.c", 3), ("b.go", 12)], "c"),
        ([("a.h", 10), ("a.c", 3), ("a.cc", 4), ("b.go", 12)], "cpp"),
        ([("a.h", 10)], "c"),
    ],
)
def test_main_language(changes: list[tuple[str, int]], language: str | None) -> None:
    assert main_language(changes) == language


PATHS = st.sampled_from(["a.py", "d/b.py", "c.go", "x.h", "x.c", "x.cpp", "n.txt", "m.rs"])


@given(st.lists(st.tuples(PATHS, st.integers(0, 50))))
def test_no_other_language_has_more_changes(changes: list[tuple[str, int]]) -> None:
    names = {".py": "python", ".go": "go", ".c": "c", ".cpp": "cpp", ".rs": "rust"}
    counts: dict[str, int] = {}
    headers = 0
    for path, number in changes:
        suffix = PurePosixPath(path).suffix
        if suffix == ".h":
            headers += number
        elif suffix in names:
            counts[names[suffix]] = counts.get(names[suffix], 0) + number
    chosen = main_language(changes)
    if chosen is None:
        assert not counts
        assert not headers
        return
    if headers:
        family = "cpp" if counts.get("cpp", 0) > counts.get("c", 0) else "c"
        counts[family] = counts.get(family, 0) + headers
    assert counts[chosen] == max(counts.values())
