"""A patch applied to R, which stays as it is: the tree R∘X̂, for as long as somebody looks at it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from codetaste.source.layers import Layers


@dataclass(frozen=True, slots=True)
class Patched:
    """R∘X̂.

    Attributes:
        tree: its files; a ``Scanner`` scans it like a folder.
        other_base: the patch was made against other contents than R's, and applies all the same.
        notes: what a reader should know of how it applied, a line each.
    """

    tree: Layers
    other_base: bool = False
    notes: tuple[str, ...] = ()


@asynccontextmanager
async def patched(base: Path, content: bytes, scratch: Path) -> AsyncIterator[Patched]:
    """Apply the patch ``content`` to R, the folder ``base``, and have R∘X̂ until the block ends.

    Args:
        base: R, a plain folder; never changed.
        content: the patch's bytes; an empty one changes nothing.
        scratch: an existing folder; all that is written is in a new folder below it, gone at the end.

    Raises:
        PatchError: it is no patch.
        PatchDoesNotApply: it does not apply to R, or does what no patch of a repository may.
        StorageFull: no space left.
        ToolMissing: there is no git.
    """
    raise NotImplementedError
    yield
