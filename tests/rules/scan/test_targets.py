"""Which files are scanned: a plain folder and the git work tree of the same commit are the same tree."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codetaste.errors import EngineError
from codetaste.rules.scan.ignore import IgnoreFile
from codetaste.rules.scan.targets import select_targets
from support.rules.scan_cases import MakeTree, git

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


def test_a_work_tree_with_everything_committed_is_the_same(
    make_tree: MakeTree, require: Callable[..., None]
) -> None:
    require("git")
    tree = make_tree(FILES)
    plain = select_targets(tree, None)
    git(tree, "init", "-q")
    git(tree, "add", "-f", ".")
    git(tree, "commit", "-qm", "all")
    assert select_targets(tree, None) == plain
    (tree / "new.py").touch()
    (tree / "sub" / "new").mkdir()
    (tree / "sub" / "new" / "ignored.py").touch()
    assert set(select_targets(tree, None).files) == {
        *plain.files,
        "new.py",
    }  # untracked: only what git does not ignore


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


def test_a_work_tree_whose_index_reaches_through_a_link_stays_inside(
    make_tree: MakeTree, require: Callable[..., None]
) -> None:
    require("git")
    outside = make_tree({"secret.py": "x"})
    tree = make_tree({"sub/secret.py": "x", "a.py": "x"})
    git(tree, "init", "-q")
    git(tree, "add", ".")
    (tree / "sub" / "secret.py").unlink()
    (tree / "sub").rmdir()
    (tree / "sub").symlink_to(outside)
    assert select_targets(tree, None).files == ("a.py",)


def test_a_hostile_repository_cannot_run_a_program(
    make_tree: MakeTree, require: Callable[..., None], tmp_path: Path
) -> None:
    require("git")
    tree = make_tree({"a.py": "x"})
    git(tree, "init", "-q")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    git(tree, "config", "core.fsmonitor", str(trap))
    assert select_targets(tree, None).files == ("a.py",)
    assert not (tmp_path / "sprung").exists()


def test_what_cannot_be_listed_says_so(
    make_tree: MakeTree, tmp_path: Path, require: Callable[..., None]
) -> None:
    require("git")
    with pytest.raises(EngineError, match="not a folder"):
        select_targets(tmp_path / "nothing", None)
    broken = make_tree({"a.py": "", ".git/HEAD": "nonsense"})
    with pytest.raises(EngineError, match="git cannot list"):
        select_targets(broken, None)
