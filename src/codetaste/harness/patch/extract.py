"""Extract the agent's patch from a sandbox: all differences between R and /testbed, computed on the host.

/testbed is read as a tar stream. Nothing of it is executed, unpacked or trusted: neither its git directory
nor its configuration, hooks or attributes. The patch contains what ``git add --all`` would add in a
repository that has only R: every file of R, and new files that the final tree's .gitignore files do not
ignore; links as links; of modes the executable bit; nested repositories without their ``.git``.

The patch is text as a plain ``git diff`` prints it by default, because the published evaluator counts lines
of that text and its patches were made that way: three lines of context, the default algorithm, and renames
from 50 % similarity. In addition it has full hashes, contents of binary files, and unquoted names where
possible. If git cannot apply a patch with renames, the patch is made without them.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.files import storage_error
from codetaste.errors import SourceError
from codetaste.harness.patch.git import PrivateRepository, create_private_repository
from codetaste.harness.patch.read import read_tree
from codetaste.harness.patch.select import PatchSelection, select_changes
from codetaste.harness.patch.snapshot import BaseTree, SnapshotLimits, TreeEntry, TreeSnapshot
from codetaste.harness.testbed.git_index import read_index
from codetaste.rules.engine.opengrep import make_scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.sandbox.base import Sandbox

_FILE_HEADER = re.compile(rb"^diff --git .*$", re.MULTILINE)
"""Of a file in a patch; a file that becomes a link has it twice."""


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Limits of one extraction. Sizes in bytes, times in seconds.

    Attributes:
        stream_bytes: size of /testbed as an archive.
        new_files: number of files that are not in R, including ignored ones.
        file_bytes: size of one new or changed file.
        content_bytes: size of all new and changed files together.
        patch_bytes: size of the patch.
        spool_bytes: disk space for contents, including ignored files; contents beyond it are read again.
        read_s: time to read /testbed once.
        git_s: time of each git command.
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
class ExtractedPatch:
    """An agent's patch.

    Attributes:
        patch: applies to R, unless ``problem`` says otherwise.
        files: number of files that it changes, as git counts them: a renamed file is one.
        problem: why the patch lacks changes of the agent, or does not apply; "" if nothing is wrong.
        notes: further facts for the user.
    """

    patch: bytes
    files: int
    problem: str
    notes: tuple[str, ...] = ()


async def extract_patch(
    sandbox: Sandbox,
    testbed: Testbed,
    limits: ExtractionLimits | None = None,
    *,
    left_out: Collection[str] = (),
    counts: Callable[[str], bool] | None = None,
) -> ExtractedPatch:
    """Extract the patch from a sandbox that runs, was stopped, or died.

    A running sandbox may change while it is read; stop it first. The content of a sandbox never causes an
    exception.

    Args:
        sandbox: the agent's sandbox.
        testbed: R, as it was put into the sandbox.
        limits: what exceeds a limit is named in ``problem``; the rest is extracted.
        left_out: new files, and folders with a slash at their end, that the agent has not made.
        counts: returns whether a new file is a part of the patch; None: each is that git does not ignore.

    Raises:
        StorageFull: no space left on the host.
        ToolMissing: git is not installed.
    """
    limits = limits or ExtractionLimits()
    folder = await to_thread.run_sync(make_scratch_folder, None)
    try:
        return await _extract(sandbox, testbed, limits, folder, left_out, counts)
    except SourceError as error:
        return ExtractedPatch(b"", 0, f"the patch cannot be created: {error}")
    except OSError as error:
        raise storage_error(error, f"cannot write below {folder}", SourceError) from error
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


async def _extract(
    sandbox: Sandbox,
    testbed: Testbed,
    limits: ExtractionLimits,
    folder: Path,
    left_out: Collection[str],
    counts: Callable[[str], bool] | None,
) -> ExtractedPatch:
    base = await to_thread.run_sync(_base_tree, testbed)
    repository = await to_thread.run_sync(create_private_repository, folder, testbed, limits.git_s)
    bounds = SnapshotLimits(limits.new_files, limits.file_bytes, limits.spool_bytes)
    with (folder / "spool").open("w+b") as spool:
        snapshot = TreeSnapshot(b"testbed", base, spool, bounds)
        read_problem = await read_tree(sandbox, snapshot, limits.stream_bytes, limits.read_s)
        await repository.add_blobs(spool)
        selection = await select_changes(
            snapshot,
            repository,
            limits.content_bytes,
            whole=not read_problem,
            left_out=left_out,
            counts=counts,
        )
    if selection.missing:
        # Contents of the patch that did not fit into the spool with ignored files are read again.
        with (folder / "spool-2").open("w+b") as spool:
            again = TreeSnapshot(snapshot.root, base, spool, bounds, wanted=selection.missing)
            await read_tree(sandbox, again, limits.stream_bytes, limits.read_s)
            await repository.add_blobs(spool)
        selection = selection.without(selection.missing - again.spooled)
    return await _patch(selection, base, repository, limits, read_problem)


async def _patch(
    selection: PatchSelection,
    base: BaseTree,
    repository: PrivateRepository,
    limits: ExtractionLimits,
    read_problem: str,
) -> ExtractedPatch:
    problems = [read_problem, *selection.problems]
    patch, patch_problem = b"", ""
    try:
        tree = await repository.write_tree(base.entries, selection.changed, selection.deleted)
        for renames in (True, False):
            patch = await repository.diff(tree, limits.patch_bytes, renames=renames)
            patch_problem = await repository.check_applies(patch, tree)
            if not patch_problem:
                break
    except SourceError as error:
        patch_problem = f"the patch cannot be created: {error}"
    problem = "; ".join(filter(None, [*problems, patch_problem]))
    return ExtractedPatch(patch, len(set(_FILE_HEADER.findall(patch))), problem, selection.notes)


@lru_cache(maxsize=4)
def _base_tree(testbed: Testbed) -> BaseTree:
    """Read the files of R; the result is shared by all agents on one instance."""
    content = (testbed.git_dir / "index").read_bytes()
    entries = {name: TreeEntry(mode, identity, size) for name, mode, identity, size in read_index(content)}
    return BaseTree(entries, frozenset(entry.identity for entry in entries.values()))
