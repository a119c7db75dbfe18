"""``Testbed``: R as a git repository of one commit, and the archive that puts it and the task into a sandbox.

The repository is built on the host from R's tree alone, so that it contains no object, branch, remote or
reflog of the original. It is built once per tree and cached as a tar archive. That of an environment's setup
has a second commit, R∘X*.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import from_thread, to_thread

from codetaste.errors import SourceError
from codetaste.harness.testbed.build import ARCHIVE_FILE, GIT_FOLDER, HEAD_REF, build_testbed, member_header
from codetaste.sandbox.base import HOME, OUTPUT, TASK
from codetaste.source.tree.opaque_names import opaque_name
from codetaste.source.tree.store import cached_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from codetaste.source.tree.store import Tree

_FORMAT_VERSION = 1
"""Increased by every change that gives another testbed for the same R."""

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Testbed:
    """R as it is put into a sandbox. ``commit`` is the hash of HEAD, whose files are the work tree."""

    folder: Path
    commit: str

    @property
    def git_dir(self) -> Path:
        """The repository of which each sandbox gets a copy; never written to."""
        return self.folder / GIT_FOLDER


async def prepare_testbed(base: Tree, cache: Path, *later: Tree) -> Testbed:
    """Return the testbed of R, and build it if the cache does not have it.

    Safe to call concurrently, also from several processes.

    Args:
        base: R's tree, with its digest.
        cache: the cache folder of trees.
        later: trees of commits after R, oldest first; HEAD is the last one.

    Raises:
        SourceError: a tree cannot be read, or git cannot store it.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    trees = (base, *later)

    async def fill(into: Path) -> None:
        paths = [tree.path for tree in trees]
        await to_thread.run_sync(build_testbed, paths, into, from_thread.check_cancelled)

    digests = "-".join(tree.digest for tree in trees)
    key = await to_thread.run_sync(opaque_name, cache, f"testbed-{_FORMAT_VERSION}-{digests}")
    made = await cached_tree(cache, key, fill)
    commit = await to_thread.run_sync((made.path / GIT_FOLDER / HEAD_REF).read_text)
    return Testbed(made.path, commit.strip())


async def testbed_archive(testbed: Testbed, files: Mapping[str, bytes]) -> AsyncIterator[bytes]:
    """Yield the tar archive that prepares a sandbox for an agent (``Sandbox.put``), in chunks.

    Names have no leading slash, folders come before their content, and the sandbox's user owns all members.

    Args:
        testbed: R.
        files: further files by absolute path below /task_description, /output or /home/agent.

    Raises:
        SourceError: a path is outside these folders, or the cached archive cannot be read.
    """
    task_members = _task_members(files)
    try:
        archive = await to_thread.run_sync((testbed.folder / ARCHIVE_FILE).open, "rb")
        try:
            while chunk := await to_thread.run_sync(archive.read, _CHUNK_BYTES):
                yield chunk
        finally:
            archive.close()
    except OSError as error:
        raise SourceError(f"{testbed.folder}: cannot be read: {error.strerror}; run it again") from error
    yield task_members


def _task_members(files: Mapping[str, bytes]) -> bytes:
    """Return the members outside /testbed, and the end of the archive."""
    folders = {TASK, OUTPUT, HOME}
    for path in files:
        if posixpath.normpath(path) != path or not path.startswith((f"{TASK}/", f"{OUTPUT}/", f"{HOME}/")):
            raise SourceError(
                f"{path!r} cannot be put into a sandbox: only paths below {TASK}, {OUTPUT}, {HOME}"
            )
        above = posixpath.dirname(path)
        while above not in folders:
            folders.add(above)
            above = posixpath.dirname(above)
    into = io.BytesIO()
    for folder in sorted(folders):
        into.write(member_header(folder[1:].encode(), tarfile.DIRTYPE))
    for path, content in sorted(files.items()):
        into.write(member_header(path[1:].encode(), tarfile.REGTYPE, size=len(content)))
        into.write(content + b"\0" * (-len(content) % tarfile.BLOCKSIZE))
    into.write(b"\0" * 2 * tarfile.BLOCKSIZE)
    return into.getvalue()
