"""Apply an untrusted patch to R and provide the tree R∘X̂; R itself is not changed.

Git applies the patch in a scratch repository that holds only those files of R that the patch names. There is
no work tree, so nothing is written through a name of the patch. Only the files that differ from R are written
to an overlay folder (``tree/overlay.py``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import from_thread, to_thread

from codetaste.core.files import storage_error
from codetaste.errors import PatchDoesNotApply, SourceError, UnsafeArchive
from codetaste.source.patch.check import PATCH_LIMITS, PatchCheck, check_patch
from codetaste.source.patch.explain import (
    IndexEntries,
    failure_reason,
    foreign_file_notes,
    foreign_files,
    moved_hunks,
)
from codetaste.source.patch.parse import parse_patch
from codetaste.source.scratch_repository import make_scratch_repository
from codetaste.source.tree.export import export_tree
from codetaste.source.tree.overlay import OverlayTree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codetaste.source.scratch_repository import ScratchRepository

TIMEOUT_S = 120.0
"""Limit of each git command, seconds."""
_SWEEP_S = 60.0


@dataclass(frozen=True, slots=True)
class AppliedPatch:
    """R∘X̂.

    Attributes:
        tree: the files of R∘X̂; a ``Scanner`` scans it like a folder.
        other_base: the patch was made against contents other than R's, but applies.
        notes: remarks on how the patch applied, one line each.
    """

    tree: OverlayTree
    other_base: bool = False
    notes: tuple[str, ...] = ()


@asynccontextmanager
async def applied_patch(base: Path, content: bytes, scratch: Path) -> AsyncIterator[AppliedPatch]:
    """Apply the patch ``content`` to R, the folder ``base``; R∘X̂ exists until the block ends.

    Args:
        base: R, a plain folder; never changed.
        content: the patch; an empty one changes nothing.
        scratch: an existing folder; everything is written to a new folder below it, removed at the end.

    Raises:
        PatchError: ``content`` is not a patch.
        PatchDoesNotApply: the patch does not apply to R, or ``check_patch`` rejects it.
        SourceError: R cannot be read, or git took more than two minutes.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    base, folder = await to_thread.run_sync(lambda: (base.absolute(), _new_folder(scratch)))
    try:
        checked = await to_thread.run_sync(lambda: check_patch(parse_patch(content), content, base))
        yield await _apply(checked, base, folder)
    finally:
        with anyio.move_on_after(_SWEEP_S, shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


def _new_folder(scratch: Path) -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="patched-", dir=scratch)).absolute()
        (folder / "repository").mkdir()
    except OSError as error:
        raise storage_error(error, f"cannot write below {scratch}", SourceError) from error
    return folder


async def _apply(checked: PatchCheck, base: Path, folder: Path) -> AppliedPatch:
    over = folder / "tree"
    if not checked.content:
        await to_thread.run_sync(over.mkdir)
        return AppliedPatch(OverlayTree(base, over, frozenset(), frozenset()), notes=checked.notes)
    repository = await to_thread.run_sync(make_scratch_repository, folder / "repository", TIMEOUT_S)
    env = {"GIT_INDEX_FILE": str(repository.folder / "index")}
    names = (name + b"\0" for name in checked.present)
    add_env = {**env, "GIT_WORK_TREE": str(base)}
    await repository.git_with_input(names, "update-index", "--add", "-z", "--stdin", env=add_env)
    before = await _entries(repository, env)
    foreign = foreign_files(checked.patch, before)
    notes = [*checked.notes, *foreign_file_notes(foreign)]
    command = ("apply", "--cached", "--whitespace=nowarn", f"-p{checked.patch.strip}")
    if foreign or not checked.has_blob_ids:
        trial_run = await repository.git_with_input(
            [checked.content], *command, "--check", "-v", env=env, may_fail=True
        )
        notes += moved_hunks(trial_run.stderr) if trial_run.ok else []
    done = await repository.git_with_input([checked.content], *command, env=env, may_fail=True)
    if not done.ok:
        raise PatchDoesNotApply(failure_reason(done.stderr, foreign), other_base=bool(foreign))
    after = await _entries(repository, env)
    changed = {name: entry for name, entry in after.items() if before.get(name) != entry}
    await to_thread.run_sync(_export, repository.git_dir, changed, over)
    tree = OverlayTree(
        base,
        over,
        changed=frozenset(map(os.fsdecode, changed)),
        deleted=frozenset(map(os.fsdecode, before.keys() - after.keys())),
    )
    return AppliedPatch(tree, bool(foreign), tuple(notes))


async def _entries(repository: ScratchRepository, env: dict[str, str]) -> IndexEntries:
    listed = await repository.git("ls-files", "--stage", "-z", env=env)
    entries = {}
    for line in filter(None, listed.output.split(b"\0")):
        head, _, name = line.partition(b"\t")
        mode, identity, _ = head.split(b" ")
        entries[name] = mode, identity
    return entries


def _export(git_dir: Path, changed: IndexEntries, over: Path) -> None:
    listing = b"".join(
        b"%s blob %s\t%s\0" % (mode, identity, name) for name, (mode, identity) in changed.items()
    )
    try:
        export_tree(git_dir, listing, over, "the patch", from_thread.check_cancelled, limits=PATCH_LIMITS)
    except UnsafeArchive as error:
        raise PatchDoesNotApply(str(error)) from error
