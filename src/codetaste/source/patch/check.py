"""Checks of an untrusted patch before git applies it, and the files of R that git needs for it.

Git holds all files that a patch creates in memory at once, so names, modes and sizes are checked here first,
from the patch's text and R's files.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.core.text import printable_name
from codetaste.errors import PatchDoesNotApply, SourceError
from codetaste.source.patch.model import LINK, SUBMODULE, FileDiff, Patch
from codetaste.source.tree.walk import walk_tree
from codetaste.source.tree.writer import TreeLimits, name_problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PATCH_LIMITS = TreeLimits(members=200_000, total_bytes=1 << 30)
"""Limits of the files that a patch creates: ten times those of patch extraction."""
_MODES = frozenset((0, 0o100644, 0o100664, 0o100755, LINK, SUBMODULE))
"""0: the patch states no mode; 100664: written by old versions of git."""
_MAX_DEPTH = 256
"""Nested folders: not every program that walks a tree can remove a deeper one."""


@dataclass(frozen=True, slots=True)
class PatchCheck:
    """A checked patch that git may apply.

    Attributes:
        patch: its files, without submodules.
        content: its text, without submodules; b"" if nothing is left.
        present: files and links of R that git needs, sorted.
        has_blob_ids: the patch names the content (object hash) of every file of R that it changes.
        notes: remarks, one line each, for example on omitted submodules.
    """

    patch: Patch
    content: bytes
    present: tuple[bytes, ...]
    has_blob_ids: bool
    notes: tuple[str, ...]


def check_patch(patch: Patch, content: bytes, base: Path) -> PatchCheck:
    """Check ``patch``, whose text is ``content``, and find the files of R that git needs.

    Raises:
        PatchDoesNotApply: it names a path outside R, uses a mode that git does not have, or creates too much.
        SourceError: R cannot be read.
    """
    files = tuple(file for file in patch.files if not file.submodule)
    notes: tuple[str, ...] = ()
    if len(files) < len(patch.files):
        first = next(file for file in patch.files if file.submodule)
        many = len(patch.files) - len(files)
        notes = (
            f"{many} change(s) of submodules are left out, the first {_shown(first)}: R has no submodules",
        )
        content = b"".join(content[slice(*file.span)] for file in files)
    if files and not patch.strip:
        notes += (
            "its names have no a/ and b/ prefixes: they are used as written (git apply would need -p0)",
        )
    for file in patch.files:
        _check_file(file)
    base_files = _BaseFiles(os.fsencode(base))
    try:
        for file in files:
            for path in (file.old, file.new):
                if path is not None:
                    base_files.look(os.fsencode(path))
    except OSError as error:
        raise SourceError(f"{base}: cannot be read: {error.strerror or error}") from error
    _check_size(files, base_files)
    identified = all(
        file.old_blob or file.old is None or not (file.removed_runs or file.added_runs) for file in files
    )
    return PatchCheck(
        Patch(files, patch.strip),
        content if files else b"",
        tuple(sorted(base_files.present)),
        identified,
        notes,
    )


def _check_file(file: FileDiff) -> None:
    for path in (file.old, file.new):
        name = b"-" if path is None else os.fsencode(path)
        fault = name_problem(name, PATCH_LIMITS)
        if not fault and not {b"", b"."}.isdisjoint(name.split(b"/")):
            fault = "is not a name that git can store"
        if not fault and name.count(b"/") > _MAX_DEPTH:
            fault = f"lies more than {_MAX_DEPTH} folders deep"
        if fault:
            raise PatchDoesNotApply(f"the patch: {printable_name(name)} {fault}; nothing of it is used")
    for mode in (file.old_mode, file.new_mode):
        if mode not in _MODES:
            raise PatchDoesNotApply(
                f"the patch: {_shown(file)} has mode {mode:o}, which is not a git file mode"
            )


def _check_size(files: Iterable[FileDiff], base_files: _BaseFiles) -> None:
    """Reject a patch whose result is too large: binary contents, or many copies of a large file."""
    sizes: dict[str, int] = {}
    total = 0
    for file in files:
        old = 0
        if file.old is not None:
            old = sizes.get(file.old, base_files.sizes.get(os.fsencode(file.old), 0))
        size = old + file.span[1] - file.span[0] + file.declared_bytes
        total += size
        if file.new is not None:
            sizes[file.new] = size
        if total > PATCH_LIMITS.total_bytes:
            raise PatchDoesNotApply(f"the patch makes more than {PATCH_LIMITS.total_bytes:,} bytes of files")


def _shown(file: FileDiff) -> str:
    return printable_name(os.fsencode(file.new or file.old or ""))


@dataclass(slots=True)
class _BaseFiles:
    """Files of R (the folder ``root``) at the paths that a patch names; no link is followed."""

    root: bytes
    present: set[bytes] = field(default_factory=set)
    sizes: dict[bytes, int] = field(default_factory=dict)
    _folders: dict[bytes, bool] = field(default_factory=lambda: {b"": True})

    def look(self, name: bytes) -> None:
        """Find what exists at ``name``, or at one of its parents."""
        above = name.rpartition(b"/")[0]
        if self._is_folder(above) and self._is_folder(name):
            # The patch replaces a folder by a file: git checks that all files in it are deleted.
            for path, entry in walk_tree(self.root, name):
                self._enter(path, entry.stat(follow_symlinks=False))

    def _is_folder(self, name: bytes) -> bool:
        if name not in self._folders:
            self._folders[name] = False
            if self._is_folder(name.rpartition(b"/")[0]):
                with suppress(FileNotFoundError, NotADirectoryError):
                    status = os.lstat(b"%s/%s" % (self.root, name))
                    self._folders[name] = stat.S_ISDIR(status.st_mode)
                    self._enter(name, status)
        return self._folders[name]

    def _enter(self, name: bytes, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self.present.add(name)
            self.sizes[name] = status.st_size
