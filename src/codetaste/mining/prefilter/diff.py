"""The diff of a commit as stage 2 reads it: its files with their edited lines, and its context-free text."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.mining.commit import CommitRecord

GZIP_LEVEL = 6
"""Of the compression ratio (CodeTaste A.1)."""


class ChangeStatus(StrEnum):
    """What happened to a file, in git's letters."""

    ADDED = "A"
    DELETED = "D"
    MODIFIED = "M"
    RENAMED = "R"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed file of a commit.

    Attributes:
        path: its path in R∘X*, of a deleted file in R; not UTF-8 is surrogate-escaped.
        old_path: its path in R if it was renamed, else None.
        status: what happened to it; a change of its type or mode is a modification.
        additions: added lines, 0 of a binary file.
        deletions: removed lines, 0 of a binary file.
        binary: git sees no text in it, or a partial clone lacks its contents.
        submodule: it names a commit of another repository, before or after; its one line is no code.
    """

    path: str
    old_path: str | None
    status: ChangeStatus
    additions: int
    deletions: int
    binary: bool = False
    submodule: bool = False


@dataclass(frozen=True, slots=True)
class CommitDiff:
    """What a commit changed. Its text is stored compressed, so that thousands fit into memory.

    Attributes:
        record: the commit.
        base: hash of R.
        golden: hash of R∘X*.
        files: changed files, in the order of git.
        compressed_diff: the context-free diff, compressed by gzip with ``GZIP_LEVEL``.
        diff_bytes: size of the context-free diff, bytes.
    """

    record: CommitRecord
    base: str
    golden: str
    files: tuple[FileChange, ...]
    compressed_diff: bytes
    diff_bytes: int

    @property
    def context_free_diff(self) -> bytes:
        """The diff with headers of files and hunks, without lines of context and without index lines."""
        return gzip.decompress(self.compressed_diff)

    @property
    def changed_lines(self) -> int:
        """Added and removed lines of all files."""
        return sum(file.additions + file.deletions for file in self.files)

    @property
    def changed_files(self) -> int:
        """Created, deleted, modified and moved files; a moved one is one file."""
        return len(self.files)

    @property
    def compression_ratio(self) -> float:
        """|diff_c| / |diff| (CodeTaste A.1): low for a repetitive diff; 0 for an empty one."""
        return len(self.compressed_diff) / self.diff_bytes if self.diff_bytes else 0.0


def make_commit_diff(
    record: CommitRecord, base: str, golden: str, files: Iterable[FileChange], context_free_diff: bytes
) -> CommitDiff:
    """Return the ``CommitDiff`` of a context-free diff that is in memory."""
    compressed = gzip.compress(context_free_diff, GZIP_LEVEL, mtime=0)
    return CommitDiff(record, base, golden, tuple(files), compressed, len(context_free_diff))
