"""Files of a commit are read as they were committed, and nothing outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import SourceError
from codetaste.swe_refactor.answers.edit.git_tree import GitTree
from support.source.repositories import make_repository

MAIN, NOTE = "src/main/java/p/A.java", "naïve note.txt"


def test_a_commit_is_read_by_path(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    first = repository.commit({MAIN.encode(): b"class A {}\r\n", NOTE.encode(): b"\xff\x00"})
    repository.commit({MAIN.encode(): b"class B {}"})
    tree = GitTree(repository.path / ".git", first)
    assert tree.read(MAIN) == b"class A {}\r\n"
    assert tree.read(NOTE) == b"\xff\x00"
    assert tree.java_files == (MAIN,)
    for path in ("", ".", "src", "../r/.git/config", ".git/config", "/etc/passwd", f"{MAIN}/x", f"./{MAIN}"):
        assert tree.read(path) is None
        assert not tree.is_link(path)


def test_links_and_submodules_are_no_files(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    blob, link = repository.blob(b"class A {}"), repository.blob(b"../../etc")
    inner = repository.tree(("100644", b"A.java", blob))
    root = repository.tree(
        ("100755", b"B.java", blob),
        ("120000", b"link", link),
        ("40000", b"p", inner),
        ("160000", b"sub", "1" * 40),
    )
    tree = GitTree(repository.path / ".git", repository.commit_tree(root))
    assert tree.java_files == ("B.java", "p/A.java")
    assert [tree.read(path) for path in ("link", "sub", "link/A.java")] == [None] * 3
    assert [tree.is_link(path) for path in ("link", "link/A.java", "sub/x", "p/A.java")] == [True] * 3 + [
        False
    ]


def test_a_missing_commit_or_object_is_named(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    with pytest.raises(SourceError, match="the tree of 111111111111 is incomplete"):
        GitTree(repository.path / ".git", "1" * 40).read("A.java")
    root = repository.tree(("100644", b"A.java", "2" * 40))
    with pytest.raises(SourceError, match="is incomplete"):
        GitTree(repository.path / ".git", repository.commit_tree(root)).read("A.java")
