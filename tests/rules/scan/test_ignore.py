"""Ignore files, compared with git."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codetaste.rules.scan.ignore import IgnoreFile

NAME = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name.strip("."))
PATHS = st.lists(st.lists(NAME, min_size=1, max_size=4).map("/".join), min_size=1, max_size=8)
SEGMENT = st.one_of(
    # Git reads "***" as "**", the engine as "*".
    st.text("ab.*?", min_size=1, max_size=4).filter(lambda segment: "***" not in segment),
    st.just("**"),
    st.sampled_from(["[ab]", "[!a]*", r"\a"]),
)
PATTERN = st.builds(
    lambda bang, lead, segments, tail: bang + lead + "/".join(segments) + tail,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENT, min_size=1, max_size=3),
    st.sampled_from(["", "/", " "]),
)


def vary_path(path: str, choices: list[str]) -> str:
    """Return a pattern that resembles ``path``: some of its segments are replaced, and it may be cut."""
    segments = [choice or segment for segment, choice in zip(path.split("/"), choices, strict=False)]
    return "/".join(segments)


@st.composite
def trees_with_patterns(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Files, and patterns that match many of them: random ones would match few, and re-include fewer."""
    paths = draw(PATHS)
    choice = st.sampled_from(["", "", "", "*", "*", "**", "?", "a*", "[ab]*"])
    pattern = st.builds(
        lambda bang, lead, path, choices, tail: bang + lead + vary_path(path, choices) + tail,
        st.sampled_from(["", "", "!"]),
        st.sampled_from(["", "/", "**/"]),
        st.sampled_from(paths),
        st.lists(choice, min_size=1, max_size=4),
        st.sampled_from(["", "", "/", "/*", "/**"]),
    )
    return paths, draw(st.lists(pattern, min_size=1, max_size=5))


def not_ignored_by_git(paths: list[str], patterns: str) -> set[str]:
    """Return the paths that git does not ignore; it needs no files to decide."""
    ignore = empty_repository() / "ignore"
    ignore.write_text(patterns)
    command = ["git", "-c", f"core.excludesFile={ignore}", "check-ignore", "--no-index", "-z", "--stdin"]
    done = subprocess.run(
        command, cwd=ignore.parent, input="\0".join(paths).encode(), capture_output=True, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    return set(paths) - {name.decode() for name in done.stdout.split(b"\0")}


@cache
def empty_repository() -> Path:
    """Return a repository without files, made once in this process."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def check_agreement(paths: list[str], patterns: str) -> None:
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    files = [path for path in dict.fromkeys(paths) if path not in folders]
    assert set(IgnoreFile(patterns).not_ignored(files)) == not_ignored_by_git(files, patterns), (
        patterns,
        files,
    )


@settings(max_examples=60, deadline=None)
@given(PATHS, st.lists(PATTERN, max_size=4))
def test_git_agrees_for_random_patterns(paths: list[str], patterns: list[str]) -> None:
    check_agreement(paths, "\n".join(patterns))


@settings(max_examples=60, deadline=None)
@given(trees_with_patterns())
@example((["a/b", "a/c", "d"], ["a/*", "!a/b"]))
def test_git_agrees_for_patterns_made_from_paths(case: tuple[list[str], list[str]]) -> None:
    paths, patterns = case
    check_agreement(paths, "\n".join(patterns))


LONG_SEGMENT = st.lists(st.sampled_from(["*", "a", "b", "?", "[ab]"]), min_size=1, max_size=9).map("".join)
LONG_PATTERN = st.lists(
    st.one_of(LONG_SEGMENT.filter(lambda segment: "**" not in segment), st.just("**")), min_size=1, max_size=7
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=7).map("/".join), min_size=1
    ),
    LONG_PATTERN.map("/".join),
)
def test_git_agrees_for_patterns_with_many_stars(paths: list[str], pattern: str) -> None:
    check_agreement(paths, pattern)


ODD = st.text("[]!^-\\ab*?", min_size=1, max_size=8)
ODD_NAMES = st.lists(st.text("ab[]!^-\\", min_size=1, max_size=3), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(ODD_NAMES, ODD)
@example(["[", "]E", "a"], "[]E")
@example(["a", "z", "b"], "[z-a]")
@example(["a", "z", "b"], "[!z-a]")
@example(["a-", "z", "\\"], "[\\z-]")
@example(["b\\", "b"], "b\\")
@example(["a/b", "b"], "a\\/b")
def test_git_agrees_for_character_classes_and_escapes(names: list[str], pattern: str) -> None:
    check_agreement(names, pattern)


@pytest.mark.parametrize(
    "pattern", ["*a" * 40 + "*b", "?*" * 40 + "c", "**/a/" * 40 + "b", "**/*a*/" * 40 + "b"]
)
@pytest.mark.parametrize("path", ["a" * 250, "a/" * 200 + "a"])
def test_many_stars_do_not_take_exponential_time(pattern: str, path: str) -> None:
    assert IgnoreFile(pattern).not_ignored([path]) == [path]


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(trees_with_patterns())
def test_git_agrees_for_thousands_of_patterns_made_from_paths(case: tuple[list[str], list[str]]) -> None:
    paths, patterns = case
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
