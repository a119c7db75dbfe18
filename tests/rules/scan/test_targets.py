"""The selection of the files that are scanned."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codetaste.errors import EngineError
from codetaste.rules.scan.ignore import IgnoreFile
from codetaste.rules.scan.targets import select_targets
from support.rules.scan_cases import MakeTree

FILES = {
    "a.py": "", "ignored.py": "", "sub/ignored.py": "", "build/b.py": "",
    "sub/.semgrepignore": "c.py\n", "sub/c.py": "", ".semgrepignore": "a.py\n",
    ".gitignore": "ignored.py\n", "big.py": "#" * 1_000_001, "fits.py": "#" * 1_000_000,

}  # fmt: skip


def test_all_files_of_a_plain_folder_are_targets_except_ignored_ones(make_tree: MakeTree) -> None:
    found = select_targets(make_tree(FILES), IgnoreFile("build/\n"))
    assert found.files == (
        ".gitignore", "a.py", "fits.py", "ignored.py", "sub/.semgrepignore", "sub/c.py", "sub/ignored.py",
    )  # fmt: skip
    assert [path for path, _ in found.skipped] == ["big.py"]
    assert "1,000,001 bytes" in found.skipped[0][1]


def test_links_and_special_files_are_not_targets(make_tree: MakeTree) -> None:
    outside = make_tree({"secret.py": "x"})
    tree = make_tree({"a.py": "x", "sub/b.py": "x"})
    (tree / "loop").symlink_to(".")
    (tree / "sub" / "up").symlink_to("..")
    (tree / "out").symlink_to(outside)
    (tree / "file.py").symlink_to(outside / "secret.py")
    (tree / "broken.py").symlink_to("nowhere")
    os.mkfifo(tree / "pipe.py")
    assert select_targets(tree, None).files == ("a.py", "sub/b.py")


def test_unlistable_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="not a folder"):
        select_targets(tmp_path / "nothing", None)
