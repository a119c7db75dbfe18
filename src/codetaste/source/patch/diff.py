"""Patch between two trees on disk, as ``git diff`` of their commits would print it."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from codetaste.errors import SourceError
from codetaste.source.patch.parse import MAX_PATCH_BYTES
from codetaste.source.scratch_repository import ANY_NAMES, make_scratch_repository
from codetaste.source.tree.walk import walk_tree

_DIFF = (
    *("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--inter-hunk-context=0", "-M50%", "-l1000"),
    *("--diff-algorithm=myers", "--indent-heuristic"),
)
"""Defaults of ``git diff``, fixed for every version: the published golden patches were made so."""
_TIMEOUT_S, _SWEEP_S = 600.0, 60.0


async def diff_trees(before: Path, after: Path, scratch: Path) -> bytes:
    """Return the patch that turns the folder ``before`` into ``after``; neither has a ``.git``.

    Submodules are empty folders in trees, so they do not appear in the patch.

    Args:
        before: plain folder, read-only.
        after: plain folder, read-only.
        scratch: an existing folder; everything is written to a new folder below it, removed at the end.

    Raises:
        SourceError: a tree cannot be read, or the patch is larger than ``MAX_PATCH_BYTES``.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    folder = await to_thread.run_sync(lambda: Path(tempfile.mkdtemp(dir=scratch, prefix="diff-")))
    try:
        repository = await to_thread.run_sync(make_scratch_repository, folder, _TIMEOUT_S)
        old_names, new_names = await to_thread.run_sync(_differing, before, after)
        old = await repository.write_tree(before, old_names)
        new = await repository.write_tree(after, new_names)
        return (await repository.git(*ANY_NAMES, *_DIFF, old, new, output_bytes=MAX_PATCH_BYTES)).output
    finally:
        with anyio.move_on_after(_SWEEP_S, shield=True):
            await to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))


def _differing(before: Path, after: Path) -> tuple[list[bytes], list[bytes]]:
    """Return the paths, in each tree, of files and links that differ between the trees, sorted."""
    old, new = _listed(before), _listed(after)
    names = sorted(name for name in old.keys() | new.keys() if not _same(old.get(name), new.get(name)))
    return [name for name in names if name in old], [name for name in names if name in new]


def _listed(root: Path) -> dict[bytes, os.DirEntry[bytes]]:
    try:
        return dict(walk_tree(os.fsencode(root)))
    except OSError as error:
        raise SourceError(f"{root}: cannot be read: {error.strerror}") from error


def _same(one: os.DirEntry[bytes] | None, other: os.DirEntry[bytes] | None) -> bool:
    if one is None or other is None or one.is_symlink() != other.is_symlink():
        return False
    if one.is_symlink():
        return os.readlink(one.path) == os.readlink(other.path)  # noqa: PTH115  (bytes)
    states = one.stat(follow_symlinks=False), other.stat(follow_symlinks=False)
    if states[0].st_size != states[1].st_size or (states[0].st_mode ^ states[1].st_mode) & 0o100:
        return False
    return filecmp.cmp(one.path, other.path, shallow=False)
