"""The diff of one commit, read from a repository in bounded memory."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from codetaste.errors import SourceError
from codetaste.mining.clones.git.changed_files import (
    COMPARE,
    RENAMES,
    RawEntry,
    make_file_changes,
    read_entries,
)
from codetaste.mining.clones.git.comparison import open_comparison
from codetaste.mining.clones.git.context_free import ContextFreeText
from codetaste.mining.clones.git.stream import SILENCE_S
from codetaste.mining.prefilter.diff import CommitDiff
from codetaste.source.patch.parse import MAX_PATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from codetaste.mining.clones.git.stream import GitStream
    from codetaste.mining.commit import CommitRecord

MAX_ABSENT_FILES = 20
"""So many files may be changed whose contents a partial clone lacks; they count as binary."""
_PATCH = ("--raw", "--numstat", "-p", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/")
_MISSING = re.compile(r"(?:unable to read|could not fetch) ([0-9a-f]{40,64})\b")


class DiffTooLarge(SourceError):
    """A diff has more bytes or files than are read."""


class ContentsMissing(SourceError):
    """Git cannot compare two commits, because it lacks an object; ``digits`` is its hash, "" if unknown."""

    def __init__(self, message: str, digits: str) -> None:
        super().__init__(message)
        self.digits = digits


@dataclass(frozen=True, slots=True)
class DiffReader:
    """Reads diffs from one repository. Blocking.

    Attributes:
        git_dir: the repository.
        check: called often; what it raises ends the reading.
        max_bytes: limit of a diff, without context.
        silence_s: limit of the time that git computes without output, seconds.
    """

    git_dir: Path
    check: Callable[[], None] = field(default=lambda: None)
    max_bytes: int = MAX_PATCH_BYTES
    silence_s: float = SILENCE_S

    def read(self, record: CommitRecord, base: str, golden: str) -> CommitDiff:
        """Return the diff from ``base`` to ``golden``, two full hashes, of R and of R∘X*.

        A file whose contents the clone lacks counts as binary.

        Raises:
            DiffTooLarge: it has more than ``max_bytes``, or more than 200,000 files.
            GitTooSlow: git computes for longer than ``silence_s``.
            ContentsMissing: a commit or a folder is missing, or the contents of more than 20 files.
            ToolMissing: git is not installed.
        """
        absent: list[RawEntry] = []
        while True:
            try:
                diff = self._read(record, base, golden, absent)
            except ContentsMissing as error:
                found = self._find_entries(base, golden, error.digits)
                if not found or found[0] in absent or len(absent) + len(found) > MAX_ABSENT_FILES:
                    raise
                absent += found
                continue
            unread = tuple(replace(file, binary=True) for file in make_file_changes(absent) or ())
            return replace(diff, files=diff.files + unread)

    def _read(self, record: CommitRecord, base: str, golden: str, absent: list[RawEntry]) -> CommitDiff:
        paths = {path for entry in absent for path in (entry.old_path, entry.path) if path is not None}
        excluded = [":(exclude,top,literal)" + os.fsdecode(path) for path in sorted(paths)]
        command = [*COMPARE, *_PATCH, *RENAMES, base, golden, "--", *excluded]
        with self._open(command, base) as stream:
            files = make_file_changes(read_entries(stream.tokens()))
            if files is None:
                raise DiffTooLarge(f"{record.name} changes more files than are read")
            text = ContextFreeText()
            for piece in stream.remaining():
                text.add(piece)
                if text.size > self.max_bytes:
                    raise DiffTooLarge(f"{record.name} has a diff of more than {self.max_bytes:,} bytes")
            compressed = text.finish()
            if failure := stream.failure():
                missing = _MISSING.search(failure)
                message = f"{record.name} cannot be compared with its parent: {failure}"
                raise ContentsMissing(message, missing[1] if missing else "")
        return CommitDiff(record, base, golden, files, compressed, text.size)

    def _open(self, command: Sequence[str], base: str) -> AbstractContextManager[GitStream]:
        return open_comparison(self.git_dir, command, len(base), check=self.check, silence_s=self.silence_s)

    def _find_entries(self, base: str, golden: str, digits: str) -> list[RawEntry]:
        """Return the changed files that have, before or after, the contents with this hash."""
        command = [*COMPARE, "--raw", "--no-renames", base, golden, "--"]
        with self._open(command, base) as stream:
            return [
                entry
                for entry in read_entries(stream.tokens())
                if isinstance(entry, RawEntry) and digits.encode() in entry.blobs
            ]
