"""The final tree of /testbed, compared with R while its archive is read.

Of a file that is as in R only its name is recorded; the content of every other file is written to a spool
file in the format of ``git fast-import``, up to a limit. No name of the archive becomes a file name on the
host.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from codetaste.core.tar import MemberKind, TarMember
from codetaste.harness.testbed.git_index import EXECUTABLE_MODE, FILE_MODE, LINK_MODE
from codetaste.source.tree.writer import is_git_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_MAX_PATH_BYTES, _MAX_LINK_BYTES = 4096, 4096
_MAX_GITIGNORE_BYTES = 1 << 20
_MAX_REPOSITORIES = 100


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file or link: git's mode, the object's SHA-1 (20 bytes; b"" if too large) and size in bytes."""

    mode: int
    identity: bytes
    size: int


@dataclass(frozen=True, slots=True)
class BaseTree:
    """R: its files and links by name, and the SHA-1 of all their contents. Extractions may share it."""

    entries: Mapping[bytes, TreeEntry]
    identities: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """Limits of a snapshot. Sizes in bytes.

    Attributes:
        new_files: number of files and links that are not in R, including ignored ones.
        file_bytes: size of one file that is not as in R.
        spool_bytes: size of all contents that are not in R.
    """

    new_files: int
    file_bytes: int
    spool_bytes: int


@dataclass(slots=True)
class TreeSnapshot:
    """The part of the tree read so far; a ``TarHandler`` of the tree's archive.

    Args:
        root: the first part of every member's name.
        base: R.
        spool: receives contents that R does not have; initially empty.
        limits: limits on the recorded files.
        wanted: on a second reading, spool only these contents (SHA-1).

    Attributes:
        changed: files and links that are not as in R.
        unseen: names of R that were not read yet.
        spooled: SHA-1 of each content in the spool.
        root_seen: whether any member of the tree was read.
        replaced_by: type of a member in place of the tree's folder, "" for a folder.
        nested_repositories: folders with a git repository of their own, the first 100.
        left_out: number of left-out members by reason; ``examples`` has one name for each reason.
        over_limit: number of new files beyond the limit.
    """

    root: bytes
    base: BaseTree
    spool: IO[bytes]
    limits: SnapshotLimits
    wanted: Collection[bytes] | None = None
    changed: dict[bytes, TreeEntry] = field(default_factory=dict)
    unseen: set[bytes] = field(init=False)
    spooled: set[bytes] = field(default_factory=set)
    root_seen: bool = False
    replaced_by: str = ""
    nested_repositories: set[bytes] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, bytes] = field(default_factory=dict)
    over_limit: int = 0
    _open: _OpenFile | None = None
    _spool_end: int = 0
    _new_files: int = 0

    def __post_init__(self) -> None:
        self.unseen = set(self.base.entries)  # shares the names: many extractions may run at once

    def unchanged(self, name: bytes) -> bool:
        """Return whether ``name`` was read and is as in R."""
        return name in self.base.entries and name not in self.unseen and name not in self.changed

    def has_content(self, identity: bytes) -> bool:
        """Return whether the content is in R or in the spool."""
        return identity in self.base.identities or identity in self.spooled

    def member(self, member: TarMember) -> bool:
        """Record a member of the archive; return True to receive its content."""
        name = self._name(member)
        if name is None:
            return False
        if member.kind is MemberKind.LINK:
            self._link(name, member.link)
        elif member.kind is MemberKind.HARD_LINK:
            self._hard_link(name, member.link)
        elif member.kind is not MemberKind.FILE:
            self._leave_out(name, f"is {member.kind.value}")
        else:
            mode = EXECUTABLE_MODE if member.executable else FILE_MODE
            base = self.base.entries.get(name)
            may_be_base = base is not None and base.size == member.size
            if member.size <= self.limits.file_bytes or may_be_base:
                self._open_file(name, mode, member.size)
                return True
            self._record(name, TreeEntry(mode, b"", member.size))
        return False

    def content(self, chunk: bytes) -> None:
        """Receive a piece of the open file."""
        assert self._open is not None  # noqa: S101 - ``member`` has opened it
        content = self._open
        content.digest.update(chunk)
        if len(chunk) == content.size:
            content.whole = chunk
        elif content.spooled:
            if not content.begun:
                self.spool.write(b"blob\ndata %d\n" % content.size)
                content.begun = True
            self.spool.write(chunk)

    def end(self) -> None:
        """Record the open file, whose content is complete."""
        assert self._open is not None  # noqa: S101 - ``member`` has opened it
        content, identity = self._open, self._open.digest.digest()
        new = not self.has_content(identity)
        if new and (content.size > self.limits.file_bytes):
            identity = b""
        elif new and content.spooled and (self.wanted is None or identity in self.wanted):
            if not content.begun:
                self.spool.write(b"blob\ndata %d\n%b" % (content.size, content.whole))
            self.spool.write(b"\n")
            self._spool_end = self.spool.tell()
            self.spooled.add(identity)
        self.discard_open_file()
        self._record(content.name, TreeEntry(content.mode, identity, content.size))

    def discard_open_file(self) -> None:
        """Remove the open file's content from the spool."""
        if self._open is not None and self._open.begun:
            self.spool.seek(self._spool_end)
            self.spool.truncate()
        self._open = None

    def _name(self, member: TarMember) -> bytes | None:
        """Return the member's name within the tree; None if it is a folder or git cannot store it."""
        parts = member.name.rstrip(b"/").split(b"/")
        self.root_seen |= parts[0] == self.root
        if parts == [self.root]:
            self.replaced_by = "" if member.kind is MemberKind.FOLDER else member.kind.value
            return None
        name = b"/".join(parts[1:])
        if parts[0] != self.root or b"\0" in name or {b"", b".", b".."}.intersection(parts):
            self._leave_out(member.name, "has a name outside the tree")
        elif (not name.isascii() or b"git" in name.lower()) and self._is_in_git_folder(parts, member.kind):
            pass
        elif len(name) > _MAX_PATH_BYTES:
            self._leave_out(name, "has an over-long name")
        elif member.kind is not MemberKind.FOLDER:
            return name
        return None

    def _is_in_git_folder(self, parts: list[bytes], kind: MemberKind) -> bool:
        """Return whether git could take a part of the name for its own folder."""
        at = next((at for at, part in enumerate(parts) if _is_git_folder_name(part)), 0)
        if at and parts[at] == b".git":
            if at > 1 and len(self.nested_repositories) < _MAX_REPOSITORIES:
                self.nested_repositories.add(b"/".join(parts[1:at]))
        elif at and kind is not MemberKind.FOLDER:
            self._leave_out(b"/".join(parts[1:]), "has a name that git rejects")
        return at > 0

    def _open_file(self, name: bytes, mode: int, size: int) -> None:
        # A .gitignore decides which other files count, so it is spooled beyond the limit.
        small = name.rpartition(b"/")[2] == b".gitignore" and size <= _MAX_GITIGNORE_BYTES
        room = self.wanted is not None or self._spool_end + size <= self.limits.spool_bytes
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        self._open = _OpenFile(name, mode, size, digest, spooled=room or small)

    def _link(self, name: bytes, target: bytes) -> None:
        if not target or b"\0" in target or len(target) > _MAX_LINK_BYTES:
            self._leave_out(name, "is a link with an invalid target")
        elif name.rpartition(b"/")[2].lower() == b".gitmodules":
            self._leave_out(name, "is a link, which git rejects under that name")
        else:
            self._open_file(name, LINK_MODE, len(target))
            self.content(target)
            self.end()

    def _hard_link(self, name: bytes, link: bytes) -> None:
        target = link.rstrip(b"/").partition(b"/")[2]
        entry = self.base.entries[target] if self.unchanged(target) else self.changed.get(target)
        if entry is None or entry.mode == LINK_MODE:
            self._leave_out(name, "is a hard link to something that is not a file of the tree")
        else:
            self._record(name, entry)

    def _record(self, name: bytes, entry: TreeEntry) -> None:
        base = self.base.entries.get(name)
        if base is not None:
            self.unseen.discard(name)
            if (base.identity, base.mode) == (entry.identity, entry.mode):
                self.changed.pop(name, None)
                return
        elif name not in self.changed:
            if self._new_files == self.limits.new_files:
                self.over_limit += 1
                return
            self._new_files += 1
        self.changed[name] = entry

    def _leave_out(self, name: bytes, why: str) -> None:
        self.left_out[why] += 1
        self.examples.setdefault(why, name)


@dataclass(slots=True)
class _OpenFile:
    """A file while its content is read; content that arrives in one piece is spooled only if it is new."""

    name: bytes
    mode: int
    size: int
    digest: hashlib._Hash
    spooled: bool
    begun: bool = False
    whole: bytes = b""


def _is_git_folder_name(part: bytes) -> bool:
    """Return whether git could take ``part`` for its own folder; a backslash may count as a slash."""
    return any(map(is_git_name, part.split(b"\\")))
