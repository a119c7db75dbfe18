"""Writing an untrusted tree below one folder, and nowhere else.

Names, kinds and link targets come from a repository or an archive that nobody vouches for. Files and folders
are made first and symbolic links last, so that nothing is ever written through a link; every clash is found
in memory before the file system sees it.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from codetaste.errors import SourceError, StorageFull, UnsafeArchive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

MTIME_NS = 315_532_800 * 10**9
"""The modification time of every file in a stored tree (1980-01-01): a later change shows at once."""

_MAX_HOPS = 40
_COPY_BYTES = 1 << 20
_SHOWN = 120
_HFS_IGNORED = {*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF}


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """What one tree may hold. Sizes in bytes."""

    members: int = 200_000
    total_bytes: int = 4 * 1024**3
    path_bytes: int = 2048
    component_bytes: int = 255


def name_fault(name: bytes, limits: TreeLimits) -> str:
    """Say why nothing may be written by the name ``name``, "" when it may: it could leave the tree."""
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


def storage_error(error: OSError, what: str) -> StorageFull | SourceError:
    """Return the error to raise for a failed write of ``what``."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StorageFull(f"{what}: no space left on the device; free some, or name another cache folder")
    return SourceError(f"{what}: {error.strerror or error}")


def show(name: bytes) -> str:
    """Return a member's name as a person may read it in a one-line message."""
    text = repr(name.decode("utf-8", "backslashreplace"))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…' ({len(name)} bytes)"


def is_git_name(part: bytes) -> bool:
    """True when some file system or git itself could take ``part`` for ``.git``."""
    if part.isascii() and not part.lower().startswith((b".git", b"git~1")):
        return False
    text = part.decode("utf-8", "surrogateescape")
    plain = "".join(char for char in text if ord(char) not in _HFS_IGNORED)
    folded = plain.split(":", 1)[0].rstrip(". ").lower()
    return folded in {".git", "git~1"}


class TreeWriter:
    """Fills the folder ``root``, which must exist and be empty. Not for two threads at once.

    Args:
        root: where the tree goes.
        label: what is being unpacked, for messages.
        limits: more than that is refused.
        check: called now and then, so that a cancelled job stops; it raises to stop.
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

    def refuse(self, name: bytes, reason: str) -> UnsafeArchive:
        """Return the error that names the member ``name``."""
        return UnsafeArchive(f"{self._label}: member {show(name)} {reason}; nothing of it is used")

    def parts(self, name: bytes) -> Parts:
        """Split a member's name, refusing whatever could leave the tree."""
        if fault := name_fault(name, self._limits):
            raise self.refuse(name, fault)
        return tuple(part for part in name.split(b"/") if part not in {b"", b"."})

    def folder(self, name: bytes) -> None:
        """Make a folder, and those above it; one that is there already is fine."""
        self._claim_folder(self.parts(name), name)

    def file(self, name: bytes, chunks: Iterable[bytes], *, executable: bool) -> None:
        """Write a regular file. A second file of the same name replaces the first, as in tar."""
        parts = self.parts(name)
        again = self._claim(parts, _Kind.FILE, name)
        path = self._path(parts)
        try:
            if again:
                path.unlink()
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as target:
                for chunk in chunks:
                    self._count(len(chunk), name)
                    target.write(chunk)
                target.flush()
                os.fchmod(descriptor, 0o755 if executable else 0o644)
                os.utime(descriptor, ns=(MTIME_NS, MTIME_NS))
        except OSError as error:
            raise storage_error(error, f"{self._label}: {show(name)}") from error

    def copy(self, name: bytes, source: bytes) -> None:
        """Write a second copy of the file ``source``, which an archive has as a hard link."""
        origin = self.parts(source)
        if self._kinds.get(origin) is not _Kind.FILE:
            raise self.refuse(
                name, f"is a hard link to {show(source)}, which is no earlier file of the archive"
            )
        if self.parts(name) == origin:
            return
        with os.fdopen(os.open(self._path(origin), os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            executable = bool(os.fstat(file.fileno()).st_mode & 0o100)
            self.file(name, iter(lambda: file.read(_COPY_BYTES), b""), executable=executable)

    def link(self, name: bytes, target: bytes) -> None:
        """Note a symbolic link; ``finish`` makes it."""
        parts = self.parts(name)
        if not target or b"\0" in target or len(target) > self._limits.path_bytes:
            raise self.refuse(name, "is a symbolic link to an impossible name")
        if self._claim(parts, _Kind.LINK, name):
            raise self.refuse(name, "stands there twice, as a symbolic link")
        self._links[parts] = target

    def finish(self, top: Parts = (), *, contained: bool) -> None:
        """Make the symbolic links.

        Args:
            top: the folder that will be the tree's root; a contained link stays below it.
            contained: refuse links that lead out of ``top``. Without it links are written as they are: a
                commit may hold any link, which is harmless to those who never follow one.
        """
        for parts, target in self._links.items():
            self._check()
            if contained and self._leaves(parts, top):
                raise self.refuse(b"/".join(parts), f"is a symbolic link out of the tree, to {show(target)}")
        for parts, target in self._links.items():
            path = self._path(parts)
            try:
                path.symlink_to(os.fsdecode(target))
                os.utime(path, ns=(MTIME_NS, MTIME_NS), follow_symlinks=False)
            except OSError as error:
                raise storage_error(error, f"{self._label}: {show(b'/'.join(parts))}") from error

    def tops(self) -> set[Parts]:
        """The members that stand directly in the root."""
        return {parts for parts in self._kinds if len(parts) == 1}

    def is_folder(self, parts: Parts) -> bool:
        """True when ``parts`` is a folder of the tree."""
        return self._kinds.get(parts) is _Kind.FOLDER

    def _path(self, parts: Parts) -> Path:
        return self._root / os.fsdecode(b"/".join(parts))

    def _count(self, size: int, name: bytes) -> None:
        self._check()
        self._bytes += size
        if self._bytes > self._limits.total_bytes:
            raise self.refuse(name, f"makes it larger than {self._limits.total_bytes:,} bytes")

    def _claim(self, parts: Parts, kind: _Kind, name: bytes) -> bool:
        """Enter a member that is no folder; True when one of the same kind is there already."""
        if not parts:
            raise self.refuse(name, "has no name of its own")
        self._claim_folder(parts[:-1], name)
        present = self._kinds.get(parts)
        if present not in {None, kind}:
            raise self.refuse(name, f"is {kind.value}, but stands there as {present.value} already")
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
                raise self.refuse(name, f"lies below {show(b'/'.join(above))}, which is {present.value}")
            self._enter(above, _Kind.FOLDER, name)
            try:
                self._path(above).mkdir(0o755)
            except OSError as error:
                raise storage_error(error, f"{self._label}: {show(name)}") from error

    def _enter(self, parts: Parts, kind: _Kind, name: bytes) -> None:
        self._check()
        self._kinds[parts] = kind
        if len(self._kinds) > self._limits.members:
            raise self.refuse(name, f"is one more than {self._limits.members:,} members")

    def _leaves(self, link: Parts, top: Parts) -> bool:
        """True when a link leads out of ``top``, as the kernel resolves it or as text alone."""
        here = link[:-1]
        for part in self._links[link].split(b"/"):
            if part == b"..":
                if len(here) <= len(top):
                    return True
                here = here[:-1]
            elif part not in {b"", b"."}:
                here = (*here, part)
        try:
            self._landing(link, top, {}, 0)
        except _LeavesTree:
            return True
        return False

    def _landing(self, link: Parts, top: Parts, known: dict[Parts, Parts], depth: int) -> Parts:
        """Follow a link through all others; one that is met while it is followed (a loop) is a plain name."""
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
                    here = known[here] if here in known else self._landing(here, top, known, depth + 1)
        known[link] = here
        return here


class _LeavesTree(Exception):
    """A signal inside this module."""
