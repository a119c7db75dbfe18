"""Ignore files, compared with git."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.rules.scan.ignore import IgnoreFile

NAME = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name.strip("."))
PATHS = st.lists(st.lists(NAME, min_size=1, max_size=4).map("/".join), min_size=1, max_size=8)
SEGMENT = st.one_of(
    st.text("ab.*?", min_size=1, max_size=4), st.just("**"), st.sampled_from(["[ab]", "[!a]*", r"\a"])
)
PATTERN = st.builds(
    lambda bang, lead, segments, tail: bang + lead + "/".join(segments) + tail,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENT, min_size=1, max_size=3),
    st.sampled_from(["", "/", " "]),
)


def not_ignored_by_git(tree: Path, patterns: str) -> set[str]:
    """Return the files that git would track."""
    ignore = tree.parent / "ignore"
    ignore.write_text(patterns)
    command = ["git", "-c", f"core.excludesFile={ignore}", "ls-files", "-z", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=tree, capture_output=True, check=True)
    return {name.decode() for name in done.stdout.split(b"\0") if name}


def make_files(tree: Path, paths: list[str]) -> list[str]:
    """Make files, without those whose name conflicts with a folder, and return their names."""
    made = []
    for name in dict.fromkeys(paths):
        path = tree / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
        if path.is_file():
            made.append(name)
    return made


def check_agreement(paths: list[str], patterns: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
        made = make_files(tree, paths)
        assert set(IgnoreFile(patterns).not_ignored(made)) == not_ignored_by_git(tree, patterns), (
            patterns,
            made,
        )


@settings(max_examples=60, deadline=None)
@given(PATHS, st.lists(PATTERN, max_size=4))
def test_git_agrees_for_random_patterns(paths: list[str], patterns: list[str]) -> None:
    check_agreement(paths, "\n".join(patterns))


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(PATHS, st.lists(PATTERN, max_size=4))
def test_git_agrees_for_thousands_of_random_patterns(paths: list[str], patterns: list[str]) -> None:
    check_agreement(paths, "\n".join(patterns))


@pytest.mark.parametrize(
    "patterns",
    [
        "build/", "/build", "a/build/", "*.min.js", "**/x.js", "a/**", "a/**/x.js", "!a", "*\n!*/\n!x.js",
        "# c\n\n \nx.js", "x.js ", "x.js\\ ", "\\#x", "\\!x", "[!x].js", "a[", "**", "/**", "a/*", "**/a/",
        "a**b", "?", "a/b/..", "//", "/",
    ],
)  # fmt: skip
def test_git_agrees_for_unusual_patterns(patterns: str, require: Callable[..., None]) -> None:
    require("git")
    check_agreement(
        [
            "build",
            "a/build/x.js",
            "x.js",
            "a/x.js",
            "a/b/x.js",
            "b.min.js",
            "#x",
            "!x",
            "y.js",
            "x.js ",
            "aab",
        ],
        patterns,
    )


def test_git_agrees_for_the_published_ignore_file(published_data: Path, require: Callable[..., None]) -> None:
    require("git")
    patterns = (published_data / "assets" / "default.semgrepignore").read_text()
    names = [line.strip().strip("/").replace("*", "x") for line in patterns.splitlines()]
    names = [name for name in names if name and not name.startswith("#") and ".git" not in name]
    paths = [f"{above}{name}{below}" for name in names for above in ("", "a/") for below in ("", "/b.py")]
    check_agreement(paths, patterns)
