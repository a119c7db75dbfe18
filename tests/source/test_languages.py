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
    ("paths", "language"),
    [
        ("", None),
        ("README.md docs/a.md", None),
        ("a.go b.py c.py README.md d.md e.md", "python"),
        ("a.go b.py", "go"),
        ("a.h b.h a.cpp b.go c.go", "cpp"),
        ("a.h b.h a.c b.go c.go", "c"),
        ("a.h a.c a.cc b.cc", "cpp"),
        ("a.h a.c a.cc", "c"),
        ("a.h", "c"),
        ("a.sh b.sh c.sh d.py", "python"),
        ("a.sh b.md", "bash"),
    ],
)
def test_main_language(paths: str, language: str | None) -> None:
    assert main_language(paths.split()) == language


PATHS = st.sampled_from(["a.py", "d/b.py", "c.go", "x.h", "x.c", "x.cpp", "n.txt", "m.rs", "r.sh"])


@given(st.lists(PATHS))
def test_no_other_language_has_more_files(paths: list[str]) -> None:
    names = {".py": "python", ".go": "go", ".c": "c", ".cpp": "cpp", ".rs": "rust"}
    counts: dict[str, int] = {}
    for path in paths:
        if (suffix := PurePosixPath(path).suffix) in names:
            counts[names[suffix]] = counts.get(names[suffix], 0) + 1
    if headers := paths.count("x.h"):
        family = "cpp" if counts.get("cpp", 0) > counts.get("c", 0) else "c"
        counts[family] = counts.get(family, 0) + headers
    chosen = main_language(paths)
    if counts:
        assert chosen == min(name for name in counts if counts[name] == max(counts.values()))
    else:
        assert chosen == ("bash" if "r.sh" in paths else None)
