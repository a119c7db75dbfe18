"""A temporary git repository in which git applies or compares untrusted files.

It has only our configuration and attributes, and nothing is ever checked out: contents are objects, a tree is
an index.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import SourceError
from codetaste.source.git import run_git

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import IO

    from codetaste.source.git import GitResult

_ATTRIBUTES = "* -text -ident !filter !diff !merge !whitespace !working-tree-encoding\n"
"""Override the attributes of a tree, in case a version of git reads those."""
_OUTPUT_BYTES = 1 << 30
ANY_NAMES = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "-c", "core.quotePath=false")
"""Options of git that allow file names which other systems forbid."""


@dataclass(frozen=True, slots=True)
class ScratchRepository:
    """The repository in ``folder``; ``timeout_s`` limits each git command, seconds."""

    folder: Path
    timeout_s: float

    @property
    def git_dir(self) -> Path:
        """The git directory."""
        return self.folder / "git"

    async def git(
        self,
        *args: str,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        env: Mapping[str, str] | None = None,
        output_bytes: int = _OUTPUT_BYTES,
        may_fail: bool = False,
    ) -> GitResult:
        """Run git in this repository.

        Raises:
            SourceError: git failed (its first error line) and ``may_fail`` is False, or exceeded a limit.
            StorageFull: no space left.
        """
        result = await run_git(
            *args,
            git_dir=self.git_dir,
            timeout_s=self.timeout_s,
            output_bytes=output_bytes,
            stdin=stdin,
            env=env,
        )
        if not (result.ok or may_fail):
            lines = result.stderr.strip().splitlines() or [f"git ended with {result.exit_code}"]
            raise SourceError(lines[0])
        return result

    async def git_with_input(
        self,
        content: Iterable[bytes],
        *args: str,
        env: Mapping[str, str] | None = None,
        may_fail: bool = False,
    ) -> GitResult:
        """Run ``git`` with ``content`` as standard input."""
        stdin = await to_thread.run_sync(_written, self.folder / "input", content)
        try:
            return await self.git(*args, stdin=stdin, env=env, may_fail=may_fail)
        finally:
            stdin.close()

    async def write_tree(self, tree: Path, names: Iterable[bytes]) -> str:
        """Write a tree object with the files ``names`` of the folder ``tree``; return its hash.

        Raises:
            SourceError: a file cannot be read.
            StorageFull: no space left.
        """
        index = self.folder / "index"
        env = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(tree)}
        listed = (path + b"\0" for path in names)
        try:
            await self.git_with_input(listed, *ANY_NAMES, "update-index", "-z", "--add", "--stdin", env=env)
            return (await self.git("write-tree", env=env)).output.decode().strip()
        finally:
            await to_thread.run_sync(partial(index.unlink, missing_ok=True))


def make_scratch_repository(
    folder: Path, timeout_s: float, *, objects: Path | None = None, sha256: bool = False
) -> ScratchRepository:
    """Make a repository in the empty ``folder``.

    Args:
        folder: gets the repository (in ``git``) and the input files of git commands.
        timeout_s: limit of each git command, seconds.
        objects: object folder of another repository, used as an alternate.
        sha256: its hashes have 64 digits.
    """
    made = ScratchRepository(folder, timeout_s)
    for name in ("objects/info", "refs", "info"):
        (made.git_dir / name).mkdir(parents=True)
    # A branch that never exists: some versions of git read attributes from the commit that HEAD names.
    (made.git_dir / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
    config = f"[core]\n\trepositoryformatversion = {sha256:d}\n\tbare = true\n\tcompression = 0\n"
    if sha256:
        config += "[extensions]\n\tobjectFormat = sha256\n"
    (made.git_dir / "config").write_text(config, encoding="ascii")
    (made.git_dir / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
    if objects is not None:
        (made.git_dir / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
    return made


def _written(path: Path, content: Iterable[bytes]) -> IO[bytes]:
    with path.open("wb") as file:
        file.writelines(content)
    return path.open("rb")
