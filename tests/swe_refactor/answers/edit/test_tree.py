"""Files are read below a folder, and links are not followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.swe_refactor.answers.edit.tree import FolderTree


@pytest.fixture
def tree(tmp_path: Path) -> FolderTree:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "A.java").write_bytes(b"class A {}")
    (tmp_path / "Secret.java").write_bytes(b"secret")
    (root / "src" / "Link.java").symlink_to(tmp_path / "Secret.java")
    (root / "linked").symlink_to(tmp_path)
    return FolderTree(root)


def test_file_is_read(tree: FolderTree) -> None:
    assert tree.read("src/A.java") == b"class A {}"
    assert not tree.is_link("src/A.java")


@pytest.mark.parametrize("path", ["src/Link.java", "linked/Secret.java"])
def test_link_is_not_followed(tree: FolderTree, path: str) -> None:
    assert tree.read(path) is None
    assert tree.is_link(path)


@pytest.mark.parametrize(
    "path", ["src", "src/B.java", "src/A.java/B.java", "a\x00b", "x" * 5000, "../Secret.java", "/etc/passwd"]
)
def test_what_is_no_file_is_none(tree: FolderTree, path: str) -> None:
    assert tree.read(path) is None
    assert not tree.is_link(path)
