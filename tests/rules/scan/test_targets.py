"""Which files of a tree are scanned."""

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


def test_everything_in_a_plain_folder_counts_but_for_the_ignore_file(make_tree: MakeTree) -> None:
    found = select_targets(make_tree(FILES), IgnoreFile("build/\n"))
    assert found.files == (
        ".gitignore", "a.py", "fits.py", "ignored.py", "sub/.semgrepignore", "sub/c.py", "sub/ignored.py",
    )  # fmt: skip
    assert [path for path, _ in found.skipped] == ["big.py"]
    assert "1,000,001 bytes" in found.skipped[0][1]


def test_links_and_odd_files_are_no_targets(make_tree: MakeTree) -> None:
    outside = make_tree({"secret.py": "x"})
    tree = make_tree({"a.py": "x", "sub/b.py": "x"})
    (tree / "loop").symlink_to(".")
    (tree / "sub" / "up").symlink_to("..")
    (tree / "out").symlink_to(outside)
    (tree / "file.py").symlink_to(outside / "secret.py")
    (tree / "broken.py").symlink_to("nowhere")
    os.mkfifo(tree / "pipe.py")
    assert select_targets(tree, None).files == ("a.py", "sub/b.py")


def test_what_cannot_be_listed_says_so(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="not a folder"):
        select_targets(tmp_path / "nothing", None)
