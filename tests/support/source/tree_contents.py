"""Folders and patched trees as dictionaries: every file by path with mode and content."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from codetaste.source.tree.overlay import OverlayTree
from support.source.random_trees import FILE, LINK, PROGRAM, SUBMODULE, Tree


def write_tree(root: Path, tree: Tree) -> Path:
    """Write ``tree`` below the new folder ``root``."""
    root.mkdir()
    for path, (mode, content) in tree.items():
        file = root / os.fsdecode(path)
        if mode == SUBMODULE:
            file.mkdir(parents=True)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        if mode == LINK:
            file.symlink_to(os.fsdecode(content))
        else:
            file.write_bytes(content)
            file.chmod(0o755 if mode == PROGRAM else 0o644)
    return root


def read_tree(root: Path) -> Tree:
    """Return every file and link below ``root``."""
    found: Tree = {}
    for file in root.rglob("*"):
        path, status = os.fsencode(file.relative_to(root)), file.lstat()
        if stat.S_ISLNK(status.st_mode):
            found[path] = LINK, os.fsencode(file.readlink())
        elif stat.S_ISREG(status.st_mode):
            found[path] = PROGRAM if status.st_mode & 0o100 else FILE, file.read_bytes()
        else:
            assert stat.S_ISDIR(status.st_mode), file
    return found


def read_overlay(tree: OverlayTree) -> Tree:
    """Return the files of ``tree``: those of R that the patch leaves alone, and those that it made."""
    over = read_tree(tree.overlay)
    assert {os.fsdecode(path) for path in over} == tree.changed
    hidden = {os.fsencode(path) for path in tree.deleted | tree.changed}
    return {path: entry for path, entry in read_tree(tree.base).items() if path not in hidden} | over


def snapshot(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Return all below ``root`` with modes, times and contents: equal only if nothing was changed."""
    found = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        if stat.S_ISLNK(status.st_mode):
            content = os.fsencode(path.readlink())
        found[str(path)] = status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content
    return found
