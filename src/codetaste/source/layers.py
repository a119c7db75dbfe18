"""R∘X̂ without a copy of R: what a patch makes lies in a folder of its own, all else is where R is.

R has thousands of files and a patch changes few. Who wants one file asks where it is; who needs a folder with
some of them as files gets one (``gathered``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layers:
    """A tree in two folders. Paths are POSIX text with surrogateescape.

    Attributes:
        base: R, never written to.
        over: has all that ``changed`` names, and no more.
        changed: files and links that are not as in R.
        gone: files and links of R that are no more.
    """

    base: Path
    over: Path
    changed: frozenset[str]
    gone: frozenset[str]

    def folder(self, path: str) -> Path:
        """Return the folder that has ``path``."""
        return self.over if path in self.changed else self.base


def place(tree: Path | Layers, path: str) -> Path:
    """Return where the file ``path`` of ``tree`` is on disk."""
    return (tree.folder(path) if isinstance(tree, Layers) else tree) / path
