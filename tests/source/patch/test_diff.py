"""The patch between two trees equals git's diff of their commits, byte for byte."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SourceError
from codetaste.source.patch.diff import diff_trees

_GIT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(tree: Path, *words: str) -> bytes:
    settings = ("-c", "core.quotePath=false", "-c", "core.attributesFile=/dev/null")
    return subprocess.run(
        ["git", *settings, *words], cwd=tree, check=True, capture_output=True, env=_GIT
    ).stdout


def fill(tree: Path) -> None:
    tree.mkdir()
    (tree / "sub").mkdir()
    (tree / "same.py").write_text("same\n" * 50)
    (tree / "long.py").write_text("".join(f"line {number}\n" for number in range(40)))
    (tree / "sub/mode.sh").write_text("#!/bin/sh\n")
    (tree / "sub/bin").write_bytes(bytes(range(256)))
    (tree / "link").symlink_to("same.py")
    (tree / "folder").mkdir()
    (tree / "folder/inside").write_text("was a file in a folder\n")


def change(tree: Path) -> None:
    (tree / "long.py").rename(tree / "sub/longer ü.py")
    text = (tree / "sub/longer ü.py").read_text().replace("line 7\n", "line seven\x0c\r\nno end")
    (tree / "sub/longer ü.py").write_bytes(text.rstrip("\n").encode())
    (tree / "sub/mode.sh").chmod(0o755)
    (tree / "sub/bin").write_bytes(bytes(reversed(range(256))))
    (tree / "link").unlink()
    (tree / "link").symlink_to("sub")
    (tree / "folder/inside").unlink()
    (tree / "folder").rmdir()
    (tree / "folder").write_text("a file now\r\n")
    (tree / os.fsdecode(b'caf\xe9 "q".txt')).write_text("odd\n")
    (tree / ".gitattributes").write_text("* text eol=crlf\n*.py diff=python ident\nlink -text\n")
    (tree / ".gitignore").write_text("*\n")


def diff(before: Path, after: Path, scratch: Path) -> bytes:
    async def main() -> bytes:
        return await diff_trees(before, after, scratch)

    return anyio.run(main)


def test_patch_equals_gits_diff_of_both_commits(tmp_path: Path) -> None:
    before, after, work, scratch = (tmp_path / name for name in ("before", "after", "work", "scratch"))
    scratch.mkdir()
    for tree in (before, after, work):
        fill(tree)
    change(after)
    git(work, "init", "-q")
    (work / ".git/info/attributes").write_text("* -text -ident !diff\n")
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "x")
    change(work)
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "y")
    expected = git(work, "diff", "--binary", "--full-index", "HEAD~1", "HEAD")
    assert diff(before, after, scratch) == expected
    assert expected.count(b"diff --git") > 7
    assert not any(scratch.iterdir())


def test_equal_trees_make_an_empty_patch(tmp_path: Path) -> None:
    fill(tmp_path / "a")
    fill(tmp_path / "b")
    assert diff(tmp_path / "a", tmp_path / "b", tmp_path) == b""


def test_missing_tree_is_named(tmp_path: Path) -> None:
    fill(tmp_path / "a")
    with pytest.raises(SourceError, match="nowhere: cannot be read"):
        diff(tmp_path / "a", tmp_path / "nowhere", tmp_path)
