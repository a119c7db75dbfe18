"""What a patch needs of R before git may see it, and what no patch may ask for.

Whoever wrote the patch is not trusted, and git holds all that a patch makes in memory at once: names, modes
and sizes are judged here, from the patch's text and R's files.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.errors import PatchDoesNotApply, SourceError
from codetaste.source.file_diff import LINK, SUBMODULE, FileDiff, Patch
from codetaste.source.writing import TreeLimits, name_fault, show

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LIMITS = TreeLimits(members=200_000, total_bytes=1 << 30)
"""What a patch may make: ten times the largest that a harvest takes."""
_MODES = frozenset((0, 0o100644, 0o100664, 0o100755, LINK, SUBMODULE))
"""0 is a mode that the patch does not tell; 100664 is what old versions of git wrote."""
_DEEPEST = 256
"""Folders within each other: what lies deeper, not every program that walks a tree can remove again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A patch that git may apply.

    Attributes:
        patch: its files, without submodules.
        content: its text, without submodules; b"" when nothing is left.
        present: files and links of R that git must know of, sorted.
        identified: every file of R that it changes has its content's name in the patch.
        notes: what is left out.
    """

    patch: Patch
    content: bytes
    present: tuple[bytes, ...]
    identified: bool
    notes: tuple[str, ...]


def plan(patch: Patch, content: bytes, base: Path) -> Plan:
    """Judge ``patch``, whose text is ``content``, and find out what it needs of R. Blocks.

    Raises:
        PatchDoesNotApply: it names what is not below R, makes what git has not, or too much.
        SourceError: R cannot be read.
    """
    files = tuple(file for file in patch.files if not file.submodule)
    notes: tuple[str, ...] = ()
    if len(files) < len(patch.files):
        first = next(file for file in patch.files if file.submodule)
        many = len(patch.files) - len(files)
        notes = (
            f"{many} change(s) of submodules are left out, the first {_shown(first)}: R has none of them",
        )
        content = b"".join(content[slice(*file.span)] for file in files)
    if files and not patch.strip:
        notes += (
            "its names have no a/ and b/ before them: read as they stand, which git apply does not by itself",
        )
    for file in patch.files:
        _judge(file)
    places = _Places(os.fsencode(base))
    try:
        for name in _names(files):
            places.look(name)
    except OSError as error:
        raise SourceError(f"{base}: cannot be read: {error.strerror or error}") from error
    _judge_size(files, places)
    identified = all(file.old_blob or file.old is None or not _changes_lines(file) for file in files)
    return Plan(
        Patch(files, patch.strip), content if files else b"", tuple(sorted(places.present)), identified, notes
    )


def _judge(file: FileDiff) -> None:
    for path in (file.old, file.new):
        name = b"-" if path is None else os.fsencode(path)
        fault = name_fault(name, LIMITS)
        if not fault and not {b"", b"."}.isdisjoint(name.split(b"/")):
            fault = "is no name that git has"
        if not fault and name.count(b"/") > _DEEPEST:
            fault = f"lies in more than {_DEEPEST} folders"
        if fault:
            raise PatchDoesNotApply(f"the patch: {show(name)} {fault}; nothing of it is used")
    for mode in (file.old_mode, file.new_mode):
        if mode not in _MODES:
            raise PatchDoesNotApply(f"the patch: {_shown(file)} has mode {mode:o}, which git has for no file")


def _judge_size(files: Iterable[FileDiff], places: _Places) -> None:
    """Refuse what would grow beyond bounds: contents that unpack to more, and many copies of a large file."""
    sizes: dict[str, int] = {}
    total = 0
    for file in files:
        old = 0 if file.old is None else sizes.get(file.old, places.size(os.fsencode(file.old)))
        size = old + file.span[1] - file.span[0] + file.made_bytes
        total += size
        if file.new is not None:
            sizes[file.new] = size
        if total > LIMITS.total_bytes:
            raise PatchDoesNotApply(f"the patch makes more than {LIMITS.total_bytes:,} bytes of files")


def _changes_lines(file: FileDiff) -> bool:
    return bool(file.removed_runs or file.added_runs)


def _names(files: Iterable[FileDiff]) -> Iterable[bytes]:
    return (os.fsencode(path) for file in files for path in (file.old, file.new) if path is not None)


def _shown(file: FileDiff) -> str:
    return show(os.fsencode(file.new or file.old or ""))


@dataclass(slots=True)
class _Places:
    """What R, the folder ``root``, has where a patch looks; no link is followed."""

    root: bytes
    present: set[bytes] = field(default_factory=set)
    sizes: dict[bytes, int] = field(default_factory=dict)
    _folders: dict[bytes, bool] = field(default_factory=lambda: {b"": True})

    def size(self, name: bytes) -> int:
        """Return the size of the file ``name``, 0 if there is none."""
        return self.sizes.get(name, 0)

    def look(self, name: bytes) -> None:
        """Find out what stands at ``name``, or in its way."""
        above = name.rpartition(b"/")[0]
        if self._is_folder(above) and self._is_folder(name):
            self._all_below(name)

    def _is_folder(self, name: bytes) -> bool:
        known = self._folders.get(name)
        if known is None:
            known = self._is_folder(name.rpartition(b"/")[0]) and self._look_at(name)
            self._folders[name] = known
        return known

    def _look_at(self, name: bytes) -> bool:
        try:
            status = os.lstat(b"%s/%s" % (self.root, name))
        except (FileNotFoundError, NotADirectoryError):
            return False
        if stat.S_ISDIR(status.st_mode):
            return True
        self._enter(name, status)
        return False

    def _enter(self, name: bytes, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self.present.add(name)
            self.sizes[name] = status.st_size

    def _all_below(self, folder: bytes) -> None:
        """Know all files of a folder where the patch wants a file: git must see whether they all go."""
        pending = [folder]
        while pending:
            above = pending.pop()
            with os.scandir(b"%s/%s" % (self.root, above)) as entries:
                for entry in entries:
                    name = b"%s/%s" % (above, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(name)
                    else:
                        self._enter(name, entry.stat(follow_symlinks=False))
