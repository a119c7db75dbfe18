"""File operations on an installed agent's tree: copy scripts, hard-link Node, set modes, remove."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import stat
from typing import TYPE_CHECKING

from codetaste.core.files import remove_tree, stale_folders

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ADAPTER_FOLDER = "adapter"
"""The adapter's folder in a tree."""
WORK_PREFIX = ".new-"
_READ_BITS = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
_EXECUTE_BITS = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def copy_scripts(folders: Iterable[tuple[Path, Path]]) -> None:
    """Copy each (source, target), and make ``*.sh`` executable, as some installations lose the mode."""
    for source, target in folders:
        shutil.copytree(source, target, symlinks=True)
        for script in target.rglob("*.sh"):
            script.chmod(script.stat().st_mode | _EXECUTE_BITS)


def hard_link(copy: Path, original: Path) -> None:
    """Replace ``copy``, a large file, by a hard link to the equal file ``original``, if on one device."""
    if not copy.is_file() or not filecmp.cmp(copy, original, shallow=False):
        return
    link = copy.with_name(f".{copy.name}.shared")
    with contextlib.suppress(OSError):
        os.link(original, link)
        link.replace(copy)


def make_readable(tree: Path) -> None:
    """Let every user read and execute the tree, but only its owner write; sandboxes have their own user."""
    for path in (tree, *tree.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or (path.stat().st_nlink > 1 and not path.is_dir()):
            continue  # a hard-linked file keeps its mode
        wanted = (mode | _READ_BITS) & ~(stat.S_IWGRP | stat.S_IWOTH | stat.S_ISUID | stat.S_ISGID)
        if path.is_dir() or mode & stat.S_IXUSR:
            wanted |= _EXECUTE_BITS
        path.chmod(stat.S_IMODE(wanted))


def tree_bytes(tree: Path) -> int:
    """Return the disk usage of a tree in bytes, without hard-linked files."""
    found = (path.lstat() for path in tree.rglob("*"))
    return sum(state.st_blocks * 512 for state in found if state.st_nlink == 1 or stat.S_ISDIR(state.st_mode))


def remove_stale(agents: Path) -> None:
    """Remove work folders that killed installations have left."""
    for left in stale_folders(agents, WORK_PREFIX):
        remove_tree(left)
