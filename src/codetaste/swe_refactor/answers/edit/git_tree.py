"""``GitTree``: files of a commit, read from git's objects by path; nothing is checked out."""

from __future__ import annotations

import subprocess
from functools import cached_property
from typing import TYPE_CHECKING

from codetaste.errors import SourceError, ToolMissing
from codetaste.source.git import NO_GIT, git_command, git_environment
from codetaste.swe_refactor.answers.edit.tree import MAX_FILE_BYTES

if TYPE_CHECKING:
    from pathlib import Path

_REGULAR = {b"100644", b"100755"}
_LINKS = {b"120000", b"160000"}
"""Symbolic links, and submodules, whose files are not here either."""


class GitTree:
    """A ``TreeReader`` of a commit. All methods block, and may be called by several threads."""

    def __init__(self, git_dir: Path, commit: str) -> None:
        self._git_dir, self.commit = git_dir, commit
        self._contents: dict[str, bytes | None] = {}

    def read(self, path: str) -> bytes | None:
        """Return the content of a regular file; None if there is none, or it is too large.

        Raises:
            SourceError: the object is missing.
        """
        if path not in self._contents:
            mode, name = self._entries.get(path, (b"", b""))
            data = self._git("cat-file", "blob", name.decode()) if mode in _REGULAR else None
            self._contents[path] = None if data is not None and len(data) > MAX_FILE_BYTES else data
        return self._contents[path]

    def is_link(self, path: str) -> bool:
        """Return whether the path, or a folder on its way, is a symbolic link."""
        parts = path.split("/")
        places = ("/".join(parts[: end + 1]) for end in range(len(parts)))
        return any(self._entries.get(place, (b"",))[0] in _LINKS for place in places)

    @cached_property
    def java_files(self) -> tuple[str, ...]:
        """The paths of all Java files, sorted."""
        return tuple(
            sorted(
                path
                for path, (mode, _) in self._entries.items()
                if mode in _REGULAR and path.endswith(".java")
            )
        )

    @cached_property
    def _entries(self) -> dict[str, tuple[bytes, bytes]]:
        """Mode and object of each file, by path."""
        listing = self._git("ls-tree", "-r", "-z", "--full-tree", self.commit)
        found = {}
        for line in listing.split(b"\0"):
            if line:
                head, _, path = line.partition(b"\t")
                mode, _, name = head.split(b" ")
                found[path.decode("utf-8", "surrogateescape")] = mode, name
        return found

    def _git(self, *arguments: str) -> bytes:
        try:
            done = subprocess.run(
                git_command(list(arguments), self._git_dir),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=git_environment(),
                cwd="/",
                check=False,
            )
        except FileNotFoundError:
            raise ToolMissing(NO_GIT) from None
        if done.returncode != 0:
            raise SourceError(f"{self._git_dir}: the tree of {self.commit[:12]} is incomplete")
        return done.stdout
