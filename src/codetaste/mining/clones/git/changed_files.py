"""Changed files and lines, as ``git diff-tree -z --raw --numstat`` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from codetaste.errors import SourceError
from codetaste.mining.prefilter.diff import ChangeStatus, FileChange
from codetaste.source.patch.model import SUBMODULE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RENAMES = ("-M50%", "-l1000")
"""As in the patches of the published benchmark (``source/patch/diff.py``)."""
COMPARE = (
    *("-c", "diff.suppressBlankEmpty=false", "-c", "core.quotePath=false"),
    *("diff-tree", "-r", "-z", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"),
    *("--diff-algorithm=myers", "--indent-heuristic", "--inter-hunk-context=0"),
)
"""Independent of the clone's configuration."""
MAX_FILES = 200_000
_SUBMODULE_MODE = b"%o" % SUBMODULE
_STATUS = {
    b"A": ChangeStatus.ADDED,
    b"D": ChangeStatus.DELETED,
    b"R": ChangeStatus.RENAMED,
}


class RawEntry(NamedTuple):
    """A line of ``--raw``: the paths, what happened, and the hashes of the contents before and after."""

    status: ChangeStatus
    old_path: bytes | None
    path: bytes
    submodule: bool
    blobs: tuple[bytes, bytes]


class LineCounts(NamedTuple):
    """A line of ``--numstat``; both counts are None for a binary file."""

    additions: int | None
    deletions: int | None
    path: bytes


Entry = RawEntry | LineCounts | bytes
"""A line of the output; bytes are the hash of the commit that the next lines are of."""


def read_entries(tokens: Iterator[bytes]) -> Iterator[Entry]:
    r"""Parse the output, split at ``\0``.

    Raises:
        SourceError: it is no such output.
    """
    try:
        for token in tokens:
            if token.startswith(b":"):
                yield _raw_entry(token, tokens)
            elif b"\t" in token:
                yield _line_counts(token, tokens)
            else:
                yield token
    except (ValueError, IndexError):
        raise SourceError("git's list of changed files cannot be read") from None


def make_file_changes(entries: Iterable[Entry]) -> tuple[FileChange, ...] | None:
    """Return the files of one commit, None if there are more than ``MAX_FILES``."""
    raw: list[RawEntry] = []
    counts: dict[bytes, LineCounts] = {}
    for entry in entries:
        if isinstance(entry, RawEntry):
            raw.append(entry)
            if len(raw) > MAX_FILES:
                return None
        elif isinstance(entry, LineCounts):
            counts[entry.path] = entry
    return tuple(_file_change(entry, counts.get(entry.path)) for entry in raw)


def _file_change(entry: RawEntry, counts: LineCounts | None) -> FileChange:
    return FileChange(
        _text(entry.path),
        None if entry.old_path is None else _text(entry.old_path),
        entry.status,
        (counts and counts.additions) or 0,
        (counts and counts.deletions) or 0,
        binary=counts is not None and counts.additions is None,
        submodule=entry.submodule,
    )


def _raw_entry(token: bytes, tokens: Iterator[bytes]) -> RawEntry:
    old_mode, new_mode, old_blob, new_blob, status = token[1:].split(b" ")
    letter, path = status[:1], next(tokens, b"")
    old_path = None
    if letter in {b"R", b"C"}:
        old_path, path = path, next(tokens, b"")
    submodule = _SUBMODULE_MODE in {old_mode, new_mode}
    return RawEntry(
        _STATUS.get(letter, ChangeStatus.MODIFIED), old_path, path, submodule, (old_blob, new_blob)
    )


def _line_counts(token: bytes, tokens: Iterator[bytes]) -> LineCounts:
    added, removed, path = token.split(b"\t", 2)
    if not path:  # renamed: both paths follow
        next(tokens, b"")
        path = next(tokens, b"")
    if added == b"-":
        return LineCounts(None, None, path)
    return LineCounts(int(added), int(removed), path)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
