"""A private git repository that shares R's objects and computes the patch from R to a tree that was read.

It has no work tree, and only our configuration and attributes; the agent's files are in it only as objects.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import SourceError
from codetaste.harness.testbed.git_index import encode_index
from codetaste.source.scratch_repository import ScratchRepository, make_scratch_repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path
    from typing import IO

    from codetaste.harness.patch.snapshot import TreeEntry
    from codetaste.harness.testbed.testbed import Testbed

_DIFF = (
    *("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--inter-hunk-context=0"),
    *("--diff-algorithm=myers", "--indent-heuristic", "--ignore-submodules=none"),
)
_RENAMES = ("-M50%", "-l1000")
"""The defaults of a plain ``git diff``."""

_FAST_IMPORT = ("-c", "core.compression=0", "-c", "pack.compression=0", "-c", "fastimport.unpackLimit=0")
_DUMMY_BLOB = b"1" * 40
"""Object name for contents that do not matter."""


@dataclass(frozen=True, slots=True)
class PrivateRepository:
    """A repository for one extraction; ``base`` is R's commit."""

    scratch: ScratchRepository
    base: str

    async def add_blobs(self, spool: IO[bytes]) -> None:
        """Create objects for the contents in ``spool``.

        Raises:
            SourceError: git refused or took too long.
        """
        await to_thread.run_sync(spool.flush)
        os.lseek(spool.fileno(), 0, os.SEEK_SET)
        await self.scratch.git(*_FAST_IMPORT, "fast-import", "--quiet", "--depth=0", stdin=spool)

    async def ignored_names(self, names: set[bytes], gitignores: Mapping[bytes, TreeEntry]) -> set[bytes]:
        """Return which of ``names`` git ignores if ``gitignores`` (by name) are all .gitignore files.

        Raises:
            SourceError: git refused or took too long.
        """
        if not gitignores:
            return set()
        index = self.scratch.folder / "ignore-index"
        await to_thread.run_sync(partial(index.unlink, missing_ok=True))
        env = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(self.scratch.folder / "empty")}

        def lines() -> Iterator[bytes]:
            for name in sorted(names | gitignores.keys()):
                known = gitignores.get(name)
                identity = known.identity.hex().encode() if known else _DUMMY_BLOB
                yield b"100644 %s\t%s\0" % (identity, name)

        await self.scratch.git_with_input(lines(), "update-index", "-z", "--replace", "--index-info", env=env)
        # git reads a .gitignore that is not in the work tree from the index if its entry is skip-worktree.
        marked = (name + b"\0" for name in gitignores)
        await self.scratch.git_with_input(marked, "update-index", "-z", "--skip-worktree", "--stdin", env=env)
        found = await self.scratch.git(
            "ls-files", "-z", "--cached", "--ignored", "--exclude-per-directory=.gitignore", env=env
        )
        return set(found.output.split(b"\0")).intersection(names)

    async def write_tree(
        self, base: Mapping[bytes, TreeEntry], changed: Mapping[bytes, TreeEntry], deleted: AbstractSet[bytes]
    ) -> str:
        """Write the tree of R with these changes, and return its object name.

        Raises:
            SourceError: git refused or took too long.
        """
        path = self.scratch.folder / "tree-index"

        def write() -> None:
            files = {name: entry for name, entry in base.items() if name not in deleted} | dict(changed)
            entries = ((name, entry.mode, entry.identity, entry.size) for name, entry in files.items())
            path.write_bytes(encode_index(entries, 0))

        await to_thread.run_sync(write)
        made = await self.scratch.git("write-tree", env={"GIT_INDEX_FILE": str(path)})
        return made.output.decode().strip()

    async def diff(self, tree: str, limit_bytes: int, *, renames: bool) -> bytes:
        """Return the diff from R to ``tree``.

        Raises:
            SourceError: it has more than ``limit_bytes``, or git took too long.
        """
        how = _RENAMES if renames else ("--no-renames",)
        quoting = ("-c", "core.quotePath=false")
        made = await self.scratch.git(*quoting, *_DIFF, *how, self.base, tree, output_bytes=limit_bytes)
        return made.output

    async def check_applies(self, patch: bytes, tree: str) -> str:
        """Return why ``patch`` does not turn R into exactly ``tree``; "" if it does."""
        env = {"GIT_INDEX_FILE": str(self.scratch.folder / "verify-index")}
        try:
            await self.scratch.git("read-tree", self.base, env=env)
            if patch:
                await self.scratch.git_with_input(
                    [patch], "apply", "--cached", "--whitespace=nowarn", env=env
                )
            found = await self.scratch.git("write-tree", env=env)
        except SourceError as error:
            return f"the patch does not apply to R: {error}"
        return (
            ""
            if found.output.decode().strip() == tree
            else "the patch applied to R gives another tree than the agent's"
        )


def create_private_repository(folder: Path, testbed: Testbed, timeout_s: float) -> PrivateRepository:
    """Create the repository below ``folder``, which is empty."""
    (folder / "empty").mkdir()
    repository = make_scratch_repository(folder, timeout_s, objects=testbed.git_dir / "objects")
    return PrivateRepository(repository, testbed.commit)
