"""R∘X̂ without a copy of R: files written by a patch are in an overlay folder, all others in R's folder.

R has thousands of files and a patch changes few. ``overlay_path`` returns the path of one file;
``rules/scan/overlay.py`` copies files to one folder for programs that need that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class OverlayTree:
    """A tree in two folders. Paths are POSIX text with surrogateescape.

    Attributes:
        base: R, read-only.
        overlay: holds exactly the files of ``changed``.
        changed: files and links that are new or differ from R.
        deleted: files and links of R that no longer exist.
    """

    base: Path
    overlay: Path
    changed: frozenset[str]
    deleted: frozenset[str]

    def folder(self, path: str) -> Path:
        """Return the folder that holds ``path``."""
        return self.overlay if path in self.changed else self.base


def overlay_path(tree: Path | OverlayTree, path: str) -> Path:
    """Return the path on disk of the file ``path`` of ``tree``."""
    return (tree.folder(path) if isinstance(tree, OverlayTree) else tree) / path
