"""Files of a source tree at the base, read by path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_FILE_BYTES = 16 * 1024**2


class TreeReader(Protocol):
    """Reads files by their path relative to the tree, with / between folders. Blocking."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a regular file; None if there is none at the path itself."""
        ...

    def is_link(self, path: str) -> bool:
        """Return whether the path, or a folder on its way, is a symbolic link."""
        ...


def read_files(tree: TreeReader, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of those of the files that are there, by path. Blocking."""
    contents = {path: tree.read(path) for path in paths}
    return {path: data for path, data in contents.items() if data is not None}


class FolderTree:
    """The files below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        """Return the content of a regular file; links are not followed."""
        if {"", ".."} & set(path.split("/")) or self.is_link(path):
            return None
        place = self._root / path
        try:
            if not place.is_file() or place.stat().st_size > MAX_FILE_BYTES:
                return None
            return place.read_bytes()
        except (OSError, ValueError):
            return None

    def is_link(self, path: str) -> bool:
        """Return whether the path, or a folder on its way, is a symbolic link."""
        place = self._root
        for part in path.split("/"):
            place = place / part
            try:
                if place.is_symlink():
                    return True
            except (OSError, ValueError):
                return False
        return False
