"""What a patch does, file by file and line by line, as its own text has it.

Nothing is computed anew: the same change written with other options (renames, context) is another patch with
other lines.
"""

from __future__ import annotations

from dataclasses import dataclass

SUBMODULE, LINK = 0o160000, 0o120000

Line = tuple[str, int]
"""A path below the tree (POSIX, surrogateescape) and a line number from 1."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What a patch does to one file.

    Attributes:
        old: its path in R, None for a new file.
        new: its path in R∘X̂, None for a deleted one.
        removed_runs: the lines of R that go, as ranges of line numbers from 1.
        added_runs: the lines of R∘X̂ that come.
        binary: it has no lines.
        renamed: ``old`` is no more.
        copied: ``old`` stays as it is.
        old_mode: git's mode where the patch tells it (0o100644, …), 0 where it does not.
        new_mode: the same afterwards.
        old_blob: the start of the content's object name as the index line has it (hex), "" without one.
        new_blob: the same afterwards.
        span: where its text is in the patch, bytes.
        made_bytes: what its binary contents unpack to by their own account, bytes.
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
    made_bytes: int = 0

    @property
    def removed(self) -> tuple[int, ...]:
        """Numbers of the lines of R that go."""
        return tuple(line for run in self.removed_runs for line in run)

    @property
    def added(self) -> tuple[int, ...]:
        """Numbers of the lines of R∘X̂ that come."""
        return tuple(line for run in self.added_runs for line in run)

    @property
    def removed_count(self) -> int:
        """How many lines go; nothing is laid out for it."""
        return sum(map(len, self.removed_runs))

    @property
    def added_count(self) -> int:
        """How many lines come."""
        return sum(map(len, self.added_runs))

    @property
    def submodule(self) -> bool:
        """True when it is a submodule before or after: its one line names a commit."""
        return SUBMODULE in {self.old_mode, self.new_mode}


@dataclass(frozen=True, slots=True)
class Patch:
    """A parsed patch. ``strip`` is how many parts of the names in its text are prefix (``patch -p``)."""

    files: tuple[FileDiff, ...]
    strip: int = 1

    @property
    def removed(self) -> frozenset[Line]:
        """L⁻: all lines of R that go (CodeTaste §4.1)."""
        return frozenset((file.old, line) for file in self.files if file.old for line in file.removed)

    @property
    def added(self) -> frozenset[Line]:
        """L⁺: all lines of R∘X̂ that come (CodeTaste §4.1)."""
        return frozenset((file.new, line) for file in self.files if file.new for line in file.added)

    @property
    def removed_count(self) -> int:
        """|L⁻|, unless the patch changes a file twice."""
        return sum(file.removed_count for file in self.files)

    @property
    def added_count(self) -> int:
        """|L⁺|, unless the patch changes a file twice."""
        return sum(file.added_count for file in self.files)
