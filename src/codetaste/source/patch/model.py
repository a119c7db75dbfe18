"""A parsed patch: changes by file and line, exactly as its text states them.

Nothing is recomputed: the same change written with other options (renames, context) is another patch with
other lines.
"""

from __future__ import annotations

from dataclasses import dataclass

SUBMODULE, LINK = 0o160000, 0o120000

ChangedLine = tuple[str, int]
"""A path below R or R∘X̂ (POSIX, surrogateescape) and a line number from 1."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """Changes of a patch to one file.

    Attributes:
        old: its path in R, None for a new file.
        new: its path in R∘X̂, None for a deleted one.
        removed_runs: removed lines of R, as ranges of line numbers from 1.
        added_runs: added lines of R∘X̂, as ranges of line numbers from 1.
        binary: it has no lines.
        renamed: ``old`` no longer exists afterwards.
        copied: ``old`` is unchanged.
        old_mode: git's mode (0o100644, …), 0 if the patch does not state it.
        new_mode: the mode after the patch.
        old_blob: prefix of the content's object hash from the index line (hex), "" without one.
        new_blob: the same after the patch.
        span: position of its text in the patch, bytes.
        declared_bytes: size of its binary contents as stated by the patch, bytes.
    """

    old: str | None
    new: str | None
    removed_runs: tuple[range, ...] = ()
    added_runs: tuple[range, ...] = ()
    binary: bool = False
    renamed: bool = False
    copied: bool = False
    old_mode: int = 0
    new_mode: int = 0
    old_blob: str = ""
    new_blob: str = ""
    span: tuple[int, int] = (0, 0)
    declared_bytes: int = 0

    @property
    def removed(self) -> tuple[int, ...]:
        """Numbers of the removed lines of R."""
        return tuple(line for run in self.removed_runs for line in run)

    @property
    def added(self) -> tuple[int, ...]:
        """Numbers of the added lines of R∘X̂."""
        return tuple(line for run in self.added_runs for line in run)

    @property
    def removed_count(self) -> int:
        """Number of removed lines, computed without expanding the runs."""
        return sum(map(len, self.removed_runs))

    @property
    def added_count(self) -> int:
        """Number of added lines."""
        return sum(map(len, self.added_runs))

    @property
    def submodule(self) -> bool:
        """True when it is a submodule before or after; the one line of its diff names a commit."""
        return SUBMODULE in {self.old_mode, self.new_mode}


@dataclass(frozen=True, slots=True)
class Patch:
    """A parsed patch; ``strip`` leading parts of the names in its text are prefixes (``patch -p``)."""

    files: tuple[FileDiff, ...]
    strip: int = 1

    @property
    def removed(self) -> frozenset[ChangedLine]:
        """L⁻: all removed lines of R (CodeTaste §4.1)."""
        return frozenset((file.old, line) for file in self.files if file.old for line in file.removed)

    @property
    def added(self) -> frozenset[ChangedLine]:
        """L⁺: all added lines of R∘X̂ (CodeTaste §4.1)."""
        return frozenset((file.new, line) for file in self.files if file.new for line in file.added)

    @property
    def removed_count(self) -> int:
        """|L⁻|, unless the patch changes a file twice."""
        return sum(file.removed_count for file in self.files)

    @property
    def added_count(self) -> int:
        """|L⁺|, unless the patch changes a file twice."""
        return sum(file.added_count for file in self.files)
