"""Select the files of a tree that are scanned.

The published harness scans a git work tree in which everything was committed: files count even if
``.gitignore`` names them, the benchmark's ignore file replaces the one at the repository's root, nested
ignore files have no effect, links and files over 1,000,000 bytes are skipped. These rules are implemented
here because the engine's core differs in two of them; it gets the files by name. A tree is a plain folder,
the form in which a commit is exported. The ignore file itself is not scanned: it is not part of the tree.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.errors import EngineError
from codetaste.source.tree.overlay import OverlayTree, overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.rules.scan.ignore import IgnoreFile

MAX_TARGET_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ScanTargets:
    """The files to scan, sorted, and (path, reason) of files that are skipped although not ignored."""

    files: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]


def select_targets(tree: Path | OverlayTree, ignore: IgnoreFile | None) -> ScanTargets:
    """Return the files of ``tree`` to scan; paths are POSIX with surrogateescape.

    Raises:
        EngineError: ``tree`` is not a readable folder.
    """
    present = _present(tree)
    present.pop(".semgrepignore", None)  # replaced by the benchmark's
    paths = ignore.not_ignored(present) if ignore else list(present)
    files, skipped = [], []
    for path in sorted(paths):
        reason = _skip_reason(tree, path, present[path])
        if reason:
            skipped.append((path, reason))
        elif present[path]:
            files.append(path)
    return ScanTargets(tuple(files), tuple(skipped))


def _present(tree: Path | OverlayTree) -> dict[str, os.stat_result | None]:
    """Return every regular file of ``tree`` with its state, None for an unreadable folder."""
    if isinstance(tree, OverlayTree):
        hidden = tree.changed | tree.deleted
        unchanged = {path: entry for path, entry in _present(tree.base).items() if path not in hidden}
        return unchanged | dict(_walk(tree.overlay))
    if not tree.is_dir():
        raise EngineError(f"{tree} is not a folder; there is nothing to scan")
    return dict(_walk(tree))


def _walk(tree: Path) -> Iterator[tuple[str, os.stat_result | None]]:
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(os.path.join(tree, folder) if folder else tree))  # noqa: PTH118  (bytes in names)
        except OSError as error:
            if not folder:
                raise EngineError(f"{tree} cannot be read: {error.strerror}") from None
            yield folder, None
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    pending.append(path)
            elif entry.is_file(follow_symlinks=False):
                yield path, entry.stat(follow_symlinks=False)


def _skip_reason(tree: Path | OverlayTree, path: str, state: os.stat_result | None) -> str:
    """Return why a file that is not ignored is skipped, "" if it is scanned."""
    if state is None:
        return "the folder cannot be read"
    if state.st_size > MAX_TARGET_BYTES:
        return f"{state.st_size:,} bytes; files over {MAX_TARGET_BYTES:,} are not scanned"
    if not state.st_mode & stat.S_IROTH and not os.access(overlay_path(tree, path), os.R_OK):
        return "the file cannot be read"
    return ""
