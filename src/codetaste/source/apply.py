"""A patch applied to R, which stays as it is: the tree R∘X̂, for as long as somebody looks at it.

Git applies it, in a repository of ours that holds only those files of R that the patch names; there is no
work tree, so that nothing is written through a name of the patch. What comes out differs from R in few files:
those alone are written to a folder (``layers.py``).
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

from codetaste.errors import PatchDoesNotApply, UnsafeArchive
from codetaste.source.apply_plan import LIMITS, Plan, plan
from codetaste.source.apply_report import Entries, base_notes, offsets, reason, strangers
from codetaste.source.export import export_tree
from codetaste.source.layers import Layers
from codetaste.source.patch import parse_patch
from codetaste.source.scratch_repository import scratch_repository
from codetaste.source.writing import storage_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from codetaste.source.scratch_repository import ScratchRepository

TIMEOUT_S = 120.0
"""For each step of git's, seconds."""
_SWEEP_S = 60.0


@dataclass(frozen=True, slots=True)
class Patched:
    """R∘X̂.

    Attributes:
        tree: its files; a ``Scanner`` scans it like a folder.
        other_base: the patch was made against other contents than R's, and applies all the same.
        notes: what a reader should know of how it applied, a line each.
    """

    tree: Layers
    other_base: bool = False
    notes: tuple[str, ...] = ()


@asynccontextmanager
async def patched(base: Path, content: bytes, scratch: Path) -> AsyncIterator[Patched]:
    """Apply the patch ``content`` to R, the folder ``base``, and have R∘X̂ until the block ends.

    Args:
        base: R, a plain folder; never changed.
        content: the patch's bytes; an empty one changes nothing.
        scratch: an existing folder; all that is written is in a new folder below it, gone at the end.

    Raises:
        PatchError: it is no patch.
        PatchDoesNotApply: it does not apply to R, or does what no patch of a repository may.
        SourceError: R cannot be read, or git took more than two minutes.
        StorageFull: no space left.
        ToolMissing: there is no git.
    """
    base, folder = await to_thread.run_sync(lambda: (base.absolute(), _new_folder(scratch)))
    try:
        todo = await to_thread.run_sync(lambda: plan(parse_patch(content), content, base))
        yield await _apply(todo, base, folder)
    finally:
        with anyio.move_on_after(_SWEEP_S, shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


def _new_folder(scratch: Path) -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="patched-", dir=scratch)).absolute()
        (folder / "repository").mkdir()
    except OSError as error:
        raise storage_error(error, f"cannot write below {scratch}") from error
    return folder


async def _apply(todo: Plan, base: Path, folder: Path) -> Patched:
    over = folder / "tree"
    if not todo.content:
        await to_thread.run_sync(over.mkdir)
        return Patched(Layers(base, over, frozenset(), frozenset()), notes=todo.notes)
    repository = await to_thread.run_sync(scratch_repository, folder / "repository", TIMEOUT_S)
    env = {"GIT_INDEX_FILE": str(repository.folder / "index")}
    names = (name + b"\0" for name in todo.present)
    reading = {**env, "GIT_WORK_TREE": str(base)}
    await repository.fed(names, "update-index", "--add", "-z", "--stdin", env=reading)
    before = await _entries(repository, env)
    others = strangers(todo.patch, before)
    notes = [*todo.notes, *base_notes(others)]
    how = ("apply", "--cached", "--whitespace=nowarn", f"-p{todo.patch.strip}")
    if others or not todo.identified:
        tried = await repository.fed([todo.content], *how, "--check", "-v", env=env, may_fail=True)
        notes += offsets(tried.complaint) if tried.ok else []
    done = await repository.fed([todo.content], *how, env=env, may_fail=True)
    if not done.ok:
        raise PatchDoesNotApply(reason(done.complaint, others), other_base=bool(others))
    after = await _entries(repository, env)
    changed = {name: entry for name, entry in after.items() if before.get(name) != entry}
    await to_thread.run_sync(_export, repository.git_dir, changed, over)
    tree = Layers(base, over, _decoded(changed), _decoded(before.keys() - after.keys()))
    return Patched(tree, bool(others), tuple(notes))


async def _entries(repository: ScratchRepository, env: dict[str, str]) -> Entries:
    """Return what the index holds: mode and object by name."""
    listed = await repository.git("ls-files", "--stage", "-z", env=env)
    entries = {}
    for line in filter(None, listed.output.split(b"\0")):
        head, _, name = line.partition(b"\t")
        mode, identity, _ = head.split(b" ")
        entries[name] = mode, identity
    return entries


def _export(git_dir: Path, changed: Entries, over: Path) -> None:
    """Write ``changed`` to the new folder ``over``: folders first, links last."""
    listing = b"".join(
        b"%s blob %s\t%s\0" % (mode, identity, name) for name, (mode, identity) in changed.items()
    )
    try:
        export_tree(git_dir, listing, over, "the patch", from_thread.check_cancelled, limits=LIMITS)
    except UnsafeArchive as error:
        raise PatchDoesNotApply(str(error)) from error


def _decoded(names: Iterable[bytes]) -> frozenset[str]:
    return frozenset(map(os.fsdecode, names))
