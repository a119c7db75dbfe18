"""A private repository that borrows R's objects: where git turns a tree that was read into a patch of R.

It has no work tree, and no configuration or attributes but ours; what an agent wrote it has as objects only.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import SourceError
from codetaste.harness.testbed_index import index_file
from codetaste.source.git import run_git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path
    from typing import IO

    from codetaste.harness.harvest_tree import Entry
    from codetaste.harness.testbed import Testbed
    from codetaste.source.git import GitResult

_ATTRIBUTES = "* -text -ident !filter !diff !merge !whitespace !working-tree-encoding\n"
"""Stand above those of a tree, should some git look there."""

_DIFF = (
    *("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--inter-hunk-context=0"),
    *("--diff-algorithm=myers", "--indent-heuristic", "--ignore-submodules=none"),
)
_RENAMES = ("-M50%", "-l1000")
"""What a plain ``git diff`` does by default."""

_FAST = ("-c", "core.compression=0", "-c", "pack.compression=0", "-c", "fastimport.unpackLimit=0")
_FILE_LIST_BYTES = 1 << 30
_SOME_BLOB = b"1" * 40
"""Stands for contents that do not matter."""


@dataclass(frozen=True, slots=True)
class PrivateRepository:
    """A repository below ``folder``, for one harvest. ``timeout_s`` bounds each step of git's, seconds."""

    folder: Path
    base: str
    timeout_s: float

    @property
    def _git_dir(self) -> Path:
        return self.folder / "git"

    async def add_blobs(self, spool: IO[bytes]) -> None:
        """Make objects of the contents in ``spool``.

        Raises:
            SourceError: git refused or took too long.
        """
        await to_thread.run_sync(_rewind, spool)
        await self._git(*_FAST, "fast-import", "--quiet", "--depth=0", stdin=spool)

    async def ignored(self, names: set[bytes], gitignores: Mapping[bytes, Entry]) -> set[bytes]:
        """Return which of ``names`` git ignores where ``gitignores`` (by name) are all .gitignore files.

        Raises:
            SourceError: git refused or took too long.
        """
        if not gitignores:
            return set()
        index = self.folder / "ignore-index"
        await to_thread.run_sync(_remove, index)
        env = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(self.folder / "empty")}

        def lines() -> Iterator[bytes]:
            for name in sorted(names | gitignores.keys()):
                known = gitignores.get(name)
                identity = known.identity.hex().encode() if known else _SOME_BLOB
                yield b"100644 %s\t%s\0" % (identity, name)

        await self._fed(lines(), "update-index", "-z", "--replace", "--index-info", env=env)
        # git reads a .gitignore that is not in the work tree from the index where it is marked so.
        marked = (name + b"\0" for name in gitignores)
        await self._fed(marked, "update-index", "-z", "--skip-worktree", "--stdin", env=env)
        found = await self._git(
            "ls-files", "-z", "--cached", "--ignored", "--exclude-per-directory=.gitignore", env=env
        )
        return set(found.output.split(b"\0")).intersection(names)

    async def tree(
        self, base: Mapping[bytes, Entry], changed: Mapping[bytes, Entry], deleted: AbstractSet[bytes]
    ) -> str:
        """Return the tree that R becomes by these changes, as an object's name.

        Raises:
            SourceError: git refused or took too long.
        """
        path = self.folder / "tree-index"

        def write() -> None:
            kept = {name: entry for name, entry in base.items() if name not in deleted} | dict(changed)
            entries = ((name, entry.mode, entry.identity, entry.size) for name, entry in kept.items())
            path.write_bytes(index_file(entries, 0))

        await to_thread.run_sync(write)
        made = await self._git("write-tree", env={"GIT_INDEX_FILE": str(path)})
        return made.output.decode().strip()

    async def patch(self, tree: str, limit_bytes: int, *, renames: bool) -> bytes:
        """Return the difference between R and ``tree``, of ``limit_bytes`` at the most.

        Raises:
            SourceError: it is larger, or git took too long.
        """
        how = _RENAMES if renames else ("--no-renames",)
        quoting = ("-c", "core.quotePath=false")
        made = await self._git(*quoting, *_DIFF, *how, self.base, tree, output_bytes=limit_bytes)
        return made.output

    async def applies(self, patch: bytes, tree: str) -> str:
        """Say why ``patch`` does not turn R into ``tree``; "" when it does, exactly."""
        env = {"GIT_INDEX_FILE": str(self.folder / "verify-index")}
        try:
            await self._git("read-tree", self.base, env=env)
            if patch:
                await self._fed([patch], "apply", "--cached", "--whitespace=nowarn", env=env)
            found = await self._git("write-tree", env=env)
        except SourceError as error:
            return f"the patch does not apply to R: {error}"
        return (
            ""
            if found.output.decode().strip() == tree
            else "the patch makes another tree of R than the agent's"
        )

    async def _fed(
        self,
        lines: Iterable[bytes],
        *args: str,
        env: Mapping[str, str] | None = None,
    ) -> GitResult:
        path = self.folder / "input"
        await to_thread.run_sync(_write, path, lines)
        stdin = await to_thread.run_sync(path.open, "rb")
        try:
            return await self._git(*args, stdin=stdin, env=env)
        finally:
            stdin.close()

    async def _git(
        self,
        *args: str,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        env: Mapping[str, str] | None = None,
        output_bytes: int = _FILE_LIST_BYTES,
    ) -> GitResult:
        result = await run_git(
            *args,
            git_dir=self._git_dir,
            timeout_s=self.timeout_s,
            output_bytes=output_bytes,
            env=env,
            stdin=stdin,
        )
        if not result.ok:
            lines = result.complaint.strip().splitlines() or [f"git ended with {result.exit_code}"]
            raise SourceError(lines[0])
        return result


def private_repository(folder: Path, testbed: Testbed, timeout_s: float) -> PrivateRepository:
    """Make one below ``folder``, which is empty. Blocks."""
    made = PrivateRepository(folder, testbed.commit, timeout_s)
    git_dir = folder / "git"
    for name in ("objects/info", "refs", "info"):
        (git_dir / name).mkdir(parents=True)
    (folder / "empty").mkdir()
    # A branch that never is: some versions of git read attributes from what HEAD names.
    (git_dir / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
    (git_dir / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n", encoding="ascii"
    )
    (git_dir / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
    (git_dir / "objects" / "info" / "alternates").write_bytes(
        os.fsencode(testbed.git_dir / "objects") + b"\n"
    )
    return made


def _rewind(file: IO[bytes]) -> None:
    file.flush()
    os.lseek(file.fileno(), 0, os.SEEK_SET)


def _write(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(lines)


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
