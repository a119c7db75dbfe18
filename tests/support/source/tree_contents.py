"""Folders and patched trees, looked at from outside: every file by path with mode and content."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from codetaste.source.tree.overlay import OverlayTree
from support.source.random_trees import FILE, LINK, PROGRAM, SUBMODULE, Tree


def written(root: Path, tree: Tree) -> Path:
    """Write ``tree`` below the new folder ``root``."""
    root.mkdir()
    for path, (mode, content) in tree.items():
        place = root / os.fsdecode(path)
        if mode == SUBMODULE:
            place.mkdir(parents=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if mode == LINK:
            place.symlink_to(os.fsdecode(content))
        else:
            place.write_bytes(content)
            place.chmod(0o755 if mode == PROGRAM else 0o644)
    return root


def tree_of(root: Path) -> Tree:
    """Every file and link below ``root``."""
    found: Tree = {}
    for place in root.rglob("*"):
        path, status = os.fsencode(place.relative_to(root)), place.lstat()
        if stat.S_ISLNK(status.st_mode):
            found[path] = LINK, os.fsencode(place.readlink())
        elif stat.S_ISREG(status.st_mode):
            found[path] = PROGRAM if status.st_mode & 0o100 else FILE, place.read_bytes()
        else:
            assert stat.S_ISDIR(status.st_mode), place
    return found


def layered(tree: OverlayTree) -> Tree:
    """What ``tree`` is: R without what goes, and what the patch made."""
    over = tree_of(tree.overlay)
    assert {os.fsdecode(path) for path in over} == tree.changed
    hidden = {os.fsencode(path) for path in tree.deleted | tree.changed}
    return {path: entry for path, entry in tree_of(tree.base).items() if path not in hidden} | over


def everything(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """All below ``root``, with modes, times and contents: equal only if nothing was touched."""
    found = {}
    for path in [root, *root.rglob("*")]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        if stat.S_ISLNK(status.st_mode):
            content = os.fsencode(path.readlink())
        found[str(path)] = status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content
    return found
