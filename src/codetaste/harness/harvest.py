"""The patch that an agent leaves: all that differs between R and /testbed, found by the host.

/testbed is read as a tar stream. Nothing of it is executed, unpacked or believed: not its git directory, its
configuration, hooks or attributes. What counts is what ``git add --all`` would take in a repository that has
nothing but R: every file of R, and new ones that the final tree's .gitignore files do not ignore; links as
links; of modes the executable bit; nested repositories without their ``.git``.

The patch is text as a plain ``git diff`` prints it by default, for the published evaluator counts lines of
that very text and its patches were made so: three lines of context, the default algorithm, and renames from
50 % likeness on. Fixed beside that: whole hashes and contents of binary files, names unquoted where they can
be. If git cannot apply a patch with renames, it is made without.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import SourceError
from codetaste.harness.harvest_choice import Choice, choose
from codetaste.harness.harvest_git import PrivateRepository, private_repository
from codetaste.harness.harvest_stream import read_tree
from codetaste.harness.harvest_tree import Base, Entry, Snapshot, SnapshotLimits
from codetaste.harness.testbed_index import index_entries
from codetaste.rules.scratch import new_folder
from codetaste.source.writing import storage_error

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.harness.testbed import Testbed
    from codetaste.sandbox.box import Box


@dataclass(frozen=True, slots=True)
class HarvestLimits:
    """What a harvest may take. Sizes in bytes, times in seconds.

    Attributes:
        stream_bytes: of /testbed as an archive.
        new_files: files that are not in R, ignored ones included.
        file_bytes: one file that is new or changed.
        content_bytes: all files that are new or changed, together.
        patch_bytes: the patch.
        spool_bytes: room on disk for what is read, ignored files included; what finds none is read again.
        read_s: reading /testbed once.
        git_s: each step of git's.
    """

    stream_bytes: int = 32 * 1024**3
    new_files: int = 200_000
    file_bytes: int = 32 * 1024**2
    content_bytes: int = 128 * 1024**2
    patch_bytes: int = 256 * 1024**2
    spool_bytes: int = 256 * 1024**2
    read_s: float = 600.0
    git_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Harvest:
    """What was taken.

    Attributes:
        patch: applies to R, unless ``problem`` says otherwise.
        files: how many files of the tree differ from R's.
        problem: why the patch is not all that the agent did, or does not apply; "" if nothing is wrong.
        notes: what a person may want to know beside it.
    """

    patch: bytes
    files: int
    problem: str
    notes: tuple[str, ...] = ()


async def harvest(box: Box, testbed: Testbed, limits: HarvestLimits | None = None) -> Harvest:
    """Take the patch from a box, whether it runs, was stopped or died.

    A box that still runs may change while it is read; stop it first. Never raises for what a box holds.

    Args:
        box: where the agent was.
        testbed: R, as it went into the box.
        limits: more is named in ``problem``, and what fits is kept.

    Raises:
        StorageFull: no space left on this machine.
        ToolMissing: there is no git.
    """
    limits = limits or HarvestLimits()
    folder = await to_thread.run_sync(new_folder, None)
    try:
        return await _harvest(box, testbed, limits, folder)
    except SourceError as error:
        return Harvest(b"", 0, f"the patch cannot be made: {error}")
    except OSError as error:
        raise storage_error(error, f"cannot write below {folder}") from error
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


async def _harvest(box: Box, testbed: Testbed, limits: HarvestLimits, folder: Path) -> Harvest:
    base = await to_thread.run_sync(_base, testbed)
    repository = await to_thread.run_sync(private_repository, folder, testbed, limits.git_s)
    bounds = SnapshotLimits(limits.new_files, limits.file_bytes, limits.spool_bytes)
    with (folder / "spool").open("w+b") as spool:
        snapshot = Snapshot(b"testbed", base, spool, bounds)
        fault = await read_tree(box, snapshot, limits.stream_bytes, limits.read_s)
        await repository.add_blobs(spool)
        choice = await choose(snapshot, repository, limits.content_bytes, whole=not fault)
    if choice.missing:
        choice = await _second_reading(box, choice, snapshot, repository, limits, folder)
    return await _patch(choice, base, repository, limits, fault)


async def _second_reading(
    box: Box,
    choice: Choice,
    first: Snapshot,
    repository: PrivateRepository,
    limits: HarvestLimits,
    folder: Path,
) -> Choice:
    """Read again what is wanted after all, and had no room beside what is ignored."""
    with (folder / "spool-2").open("w+b") as spool:
        again = Snapshot(first.root, first.base, spool, first.limits, wanted=choice.missing)
        await read_tree(box, again, limits.stream_bytes, limits.read_s)
        await repository.add_blobs(spool)
    return choice.without(choice.missing - again.spooled)


async def _patch(
    choice: Choice, base: Base, repository: PrivateRepository, limits: HarvestLimits, fault: str
) -> Harvest:
    problems = [fault, *choice.problems]
    patch, flaw = b"", ""
    try:
        tree = await repository.tree(base.entries, choice.changed, choice.deleted)
        for renames in (True, False):
            patch = await repository.patch(tree, limits.patch_bytes, renames=renames)
            flaw = await repository.applies(patch, tree)
            if not flaw:
                break
    except SourceError as error:
        flaw = f"the patch cannot be made: {error}"
    problem = "; ".join(filter(None, [*problems, flaw]))
    return Harvest(patch, len(choice.changed) + len(choice.deleted), problem, choice.notes)


@lru_cache(maxsize=4)
def _base(testbed: Testbed) -> Base:
    """Read what R holds; agents on one instance share it."""
    content = (testbed.git_dir / "index").read_bytes()
    entries = {name: Entry(mode, identity, size) for name, mode, identity, size in index_entries(content)}
    return Base(entries, frozenset(entry.identity for entry in entries.values()))
