"""List the files and links of a tree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def walk_tree(root: bytes, below: bytes = b"") -> Iterator[tuple[bytes, os.DirEntry[bytes]]]:
    """Yield path and entry of all that is not a folder in the folder ``below`` of ``root``.

    Paths are relative to ``root``. No link is followed.

    Raises:
        OSError: a folder cannot be read.
    """
    folders = [below]
    while folders:
        folder = folders.pop()
        with os.scandir(os.path.join(root, folder)) as entries:  # noqa: PTH118 - bytes
            for entry in entries:
                path = b"%s/%s" % (folder, entry.name) if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                else:
                    yield path, entry
