"""Safe writer of untrusted trees: nothing is written outside one folder.

Names, kinds and link targets come from an untrusted repository or archive. Files and folders are written
first and symbolic links last, so nothing is ever written through a link. Name clashes are detected in memory
before the file system is touched.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from codetaste.core.files import storage_error
from codetaste.core.text import printable_name
from codetaste.errors import SourceError, UnsafeArchive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


MTIME_NS = 315_532_800 * 10**9
"""Modification time of every file in a cached tree (1980-01-01), so that a later change is visible."""
_MAX_HOPS = 40
_COPY_BYTES = 1 << 20
_HFS_IGNORED = {*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF}


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """Limits of one tree. Sizes in bytes."""

    members: int = 200_000
    total_bytes: int = 4 * 1024**3
    path_bytes: int = 2048
    component_bytes: int = 255


def name_problem(name: bytes, limits: TreeLimits) -> str:
    """Return why the member name ``name`` is unsafe to write, "" if it is safe."""
    if name.startswith(b"/"):
        return "has an absolute name"
    if b"\0" in name:
        return "has a NUL in its name"
    parts = name.split(b"/")
    if b".." in parts:
        return "leaves the tree with '..'"
    if any(map(is_git_name, parts)):
        return "would make a git directory inside the tree"
    if len(name) > limits.path_bytes or any(len(part) > limits.component_bytes for part in parts):
        return "has an over-long name"
    return ""


class _Kind(Enum):
    FOLDER = "a folder"
    FILE = "a file"
    LINK = "a symbolic link"


Parts = tuple[bytes, ...]


def is_git_name(part: bytes) -> bool:
    """True when git or some file system treats ``part`` as ``.git``."""
    if part.isascii() and not part.lower().startswith((b".git", b"git~1")):
        return False
    text = part.decode("utf-8", "surrogateescape")
    plain = "".join(char for char in text if ord(char) not in _HFS_IGNORED)
    folded = plain.split(":", 1)[0].rstrip(". ").lower()
    return folded in {".git", "git~1"}


class TreeWriter:
    """Fills the folder ``root``, which must exist and be empty. Not for two threads at once.

    Args:
        root: folder of the tree.
        label: name of the archive or commit in messages.
        limits: a larger tree is rejected.
        check: called regularly; it raises to stop the work when the job is cancelled.
    """

    def __init__(
        self,
        root: Path,
        label: str,
        limits: TreeLimits | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._root = root
        self._label = label
        self._limits = limits or TreeLimits()
        self._check = check
        self._kinds: dict[Parts, _Kind] = {(): _Kind.FOLDER}
        self._links: dict[Parts, bytes] = {}
        self._bytes = 0

    def member_error(self, name: bytes, reason: str) -> UnsafeArchive:
        """Return the error to raise for the member ``name``."""
        return UnsafeArchive(f"{self._label}: member {printable_name(name)} {reason}; nothing of it is used")

    def split_name(self, name: bytes) -> Parts:
        """Split a member's name; raise UnsafeArchive if it could leave the tree."""
        if fault := name_problem(name, self._limits):
            raise self.member_error(name, fault)
        return tuple(part for part in name.split(b"/") if part not in {b"", b"."})

    def add_folder(self, name: bytes) -> None:
        """Make a folder and its parents; an existing folder is fine."""
        self._claim_folder(self.split_name(name), name)

    def add_file(self, name: bytes, chunks: Iterable[bytes], *, executable: bool) -> None:
        """Write a regular file. A second file of the same name replaces the first, as in tar."""
        parts = self.split_name(name)
        again = self._claim(parts, _Kind.FILE, name)
        path = self._path(parts)
        try:
            if again:
                path.unlink()
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as target:
                for chunk in chunks:
                    self._check()
                    self._bytes += len(chunk)
                    if self._bytes > self._limits.total_bytes:
                        raise self.member_error(
                            name, f"makes it larger than {self._limits.total_bytes:,} bytes"
                        )
                    target.write(chunk)
                target.flush()
                os.fchmod(descriptor, 0o755 if executable else 0o644)
                os.utime(descriptor, ns=(MTIME_NS, MTIME_NS))
        except OSError as error:
            raise storage_error(error, f"{self._label}: {printable_name(name)}", SourceError) from error

    def add_copy(self, name: bytes, source: bytes) -> None:
        """Write a copy of the file ``source``: the archive holds ``name`` as a hard link to it."""
        origin = self.split_name(source)
        if self._kinds.get(origin) is not _Kind.FILE:
            raise self.member_error(
                name,
                f"is a hard link to {printable_name(source)}, which is not an earlier file of the archive",
            )
        if self.split_name(name) == origin:
            return
        with os.fdopen(os.open(self._path(origin), os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            executable = bool(os.fstat(file.fileno()).st_mode & 0o100)
            self.add_file(name, iter(lambda: file.read(_COPY_BYTES), b""), executable=executable)

    def add_link(self, name: bytes, target: bytes) -> None:
        """Record a symbolic link; ``finish`` creates it."""
        parts = self.split_name(name)
        if not target or b"\0" in target or len(target) > self._limits.path_bytes:
            raise self.member_error(name, "is a symbolic link with an invalid target")
        if self._claim(parts, _Kind.LINK, name):
            raise self.member_error(name, "appears twice as a symbolic link")
        self._links[parts] = target

    def finish(self, top: Parts = (), *, contained: bool) -> None:
        """Create the symbolic links.

        Args:
            top: the folder that will be the tree's root; a contained link stays below it.
            contained: reject links that lead out of ``top``. Otherwise links are written as they are: a
                commit may hold any link, which is harmless as long as no link is followed.
        """
        for parts, target in self._links.items():
            self._check()
            if contained and self._leaves(parts, top):
                raise self.member_error(
                    b"/".join(parts), f"is a symbolic link out of the tree, to {printable_name(target)}"
                )
        for parts, target in self._links.items():
            path = self._path(parts)
            try:
                path.symlink_to(os.fsdecode(target))
                os.utime(path, ns=(MTIME_NS, MTIME_NS), follow_symlinks=False)
            except OSError as error:
                name = printable_name(b"/".join(parts))
                raise storage_error(error, f"{self._label}: {name}", SourceError) from error

    def top_entries(self) -> set[Parts]:
        """The members directly in the root."""
        return {parts for parts in self._kinds if len(parts) == 1}

    def is_folder(self, parts: Parts) -> bool:
        """True when ``parts`` is a folder of the tree."""
        return self._kinds.get(parts) is _Kind.FOLDER

    def _path(self, parts: Parts) -> Path:
        return self._root / os.fsdecode(b"/".join(parts))

    def _claim(self, parts: Parts, kind: _Kind, name: bytes) -> bool:
        """Record a member that is not a folder; True when it replaces one of the same kind."""
        if not parts:
            raise self.member_error(name, "has an empty name")
        self._claim_folder(parts[:-1], name)
        present = self._kinds.get(parts)
        if present not in {None, kind}:
            raise self.member_error(name, f"is {kind.value}, but {present.value} of that name exists already")
        self._enter(parts, kind, name)
        return present is kind

    def _claim_folder(self, parts: Parts, name: bytes) -> None:
        missing = len(parts)
        while self._kinds.get(parts[:missing]) is None:
            missing -= 1
        for depth in range(missing, len(parts) + 1):
            above = parts[:depth]
            present = self._kinds.get(above)
            if present is _Kind.FOLDER:
                continue
            if present is not None:
                raise self.member_error(
                    name, f"lies below {printable_name(b'/'.join(above))}, which is {present.value}"
                )
            self._enter(above, _Kind.FOLDER, name)
            try:
                self._path(above).mkdir(0o755)
            except OSError as error:
                raise storage_error(error, f"{self._label}: {printable_name(name)}", SourceError) from error

    def _enter(self, parts: Parts, kind: _Kind, name: bytes) -> None:
        self._check()
        self._kinds[parts] = kind
        if len(self._kinds) > self._limits.members:
            raise self.member_error(name, f"exceeds the limit of {self._limits.members:,} members")

    def _leaves(self, link: Parts, top: Parts) -> bool:
        """True when a link leads out of ``top``, either as resolved by the kernel or as plain text."""
        here = link[:-1]
        for part in self._links[link].split(b"/"):
            if part == b"..":
                if len(here) <= len(top):
                    return True
                here = here[:-1]
            elif part not in {b"", b"."}:
                here = (*here, part)
        try:
            self._link_end(link, top, {}, 0)
        except _LeavesTree:
            return True
        return False

    def _link_end(self, link: Parts, top: Parts, known: dict[Parts, Parts], depth: int) -> Parts:
        """Return the end of a link, followed through other links; a link in a loop counts as a plain name."""
        target = self._links[link]
        if target.startswith(b"/") or depth > _MAX_HOPS:
            raise _LeavesTree
        known[link] = link
        here = link[:-1]
        for part in target.split(b"/"):
            if part == b"..":
                if len(here) <= len(top):
                    raise _LeavesTree
                here = here[:-1]
            elif part not in {b"", b"."}:
                here = (*here, part)
                if here in self._links:
                    here = known[here] if here in known else self._link_end(here, top, known, depth + 1)
        known[link] = here
        return here


class _LeavesTree(Exception):
    """Internal: a link leads out of the tree."""
