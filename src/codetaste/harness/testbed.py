"""What a box holds before the agent starts: R as a git repository of one commit, and the task beside it.

The repository is made on this machine from R's tree alone, so that no object, branch, remote or reflog of the
original can be in it. It is made once for a tree and kept in the cache, packed as it goes into boxes.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import from_thread, to_thread

from codetaste.errors import SourceError
from codetaste.harness.testbed_making import ARCHIVE, GIT, HEAD, make_testbed, member
from codetaste.sandbox.box import HOME, OUTPUT, TASK
from codetaste.source.hidden import hidden_name
from codetaste.source.tree import stored_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from codetaste.source.tree import Tree

_FORM = 1
"""Counts what makes the same R a different testbed."""

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Testbed:
    """R as it goes into a box. ``commit`` is the hash of its only commit."""

    folder: Path
    commit: str

    @property
    def git_dir(self) -> Path:
        """The repository, as each box gets a copy of it; never written to."""
        return self.folder / GIT


async def prepared_testbed(base: Tree, cache: Path) -> Testbed:
    """Return the testbed of R, made when the cache does not have it.

    Safe to call many times at once, from many processes.

    Args:
        base: R's tree, with its digest.
        cache: the folder where trees are kept.

    Raises:
        SourceError: R cannot be read or holds what git cannot.
        StorageFull: no space left.
        ToolMissing: there is no git.
    """

    async def fill(into: Path) -> None:
        await to_thread.run_sync(make_testbed, base.path, into, from_thread.check_cancelled)

    key = await to_thread.run_sync(hidden_name, cache, f"testbed-{_FORM}-{base.digest}")
    made = await stored_tree(cache, key, fill)
    commit = await to_thread.run_sync((made.path / GIT / HEAD).read_text)
    return Testbed(made.path, commit.strip())


async def testbed_archive(testbed: Testbed, files: Mapping[str, bytes]) -> AsyncIterator[bytes]:
    """Give, piece by piece, the tar archive that makes a box ready for an agent (``Box.put``).

    Members are named without a slash at the front, folders stand before what is in them, and all belongs to
    the box's user.

    Args:
        testbed: R.
        files: what else goes in, by absolute path below /task_description, /output or /home/agent.

    Raises:
        SourceError: a path lies elsewhere, or the cache was changed.
    """
    beside = _beside(files)
    try:
        archive = await to_thread.run_sync((testbed.folder / ARCHIVE).open, "rb")
        try:
            while chunk := await to_thread.run_sync(archive.read, _CHUNK_BYTES):
                yield chunk
        finally:
            archive.close()
    except OSError as error:
        raise SourceError(f"{testbed.folder}: cannot be read: {error.strerror}; run it again") from error
    yield beside


def _beside(files: Mapping[str, bytes]) -> bytes:
    """Return the members beside /testbed, and the end of the archive."""
    folders = {TASK, OUTPUT, HOME}
    for path in files:
        if posixpath.normpath(path) != path or not path.startswith((f"{TASK}/", f"{OUTPUT}/", f"{HOME}/")):
            raise SourceError(
                f"{path!r} cannot be put into a box: only what is below {TASK}, {OUTPUT}, {HOME}"
            )
        above = posixpath.dirname(path)
        while above not in folders:
            folders.add(above)
            above = posixpath.dirname(above)
    into = io.BytesIO()
    for folder in sorted(folders):
        into.write(member(folder[1:].encode(), tarfile.DIRTYPE))
    for path, content in sorted(files.items()):
        into.write(member(path[1:].encode(), tarfile.REGTYPE, size=len(content)))
        into.write(content + b"\0" * (-len(content) % tarfile.BLOCKSIZE))
    into.write(b"\0" * 2 * tarfile.BLOCKSIZE)
    return into.getvalue()
