"""What /testbed holds now, compared with R while its archive streams by.

A file that is as in R leaves no trace but a mark; the content of every other goes to a spool, a file of ours
in the form that ``git fast-import`` reads, as far as there is room. No name of the archive becomes a name on
this machine's disk.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from codetaste.harness.harvest_tar import Kind, Member
from codetaste.harness.testbed_index import FILE, LINK, PROGRAM
from codetaste.source.writing import is_git_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_PATH_BYTES, _LINK_BYTES = 4096, 4096
_GITIGNORE_BYTES = 1 << 20
_REPOSITORIES = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or link: git's mode, the object's SHA-1 (20 bytes; b"" if it is not kept) and size in bytes."""

    mode: int
    identity: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Base:
    """R: its files and links by name, and the SHA-1 of all their contents. Many harvests may share it."""

    entries: Mapping[bytes, Entry]
    identities: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """What is remembered of a tree. Sizes in bytes.

    Attributes:
        new_files: files and links that are not in R, ignored ones included.
        file_bytes: one file that is not as in R.
        spool_bytes: contents of all that is not as in R.
    """

    new_files: int
    file_bytes: int
    spool_bytes: int


@dataclass(slots=True)
class Snapshot:
    """The tree as far as it was read: takes the members of its archive.

    Args:
        root: the first part of every member's name.
        base: R.
        spool: gets contents that R does not have; new and empty.
        limits: more is not remembered.
        wanted: keep only these contents (SHA-1), on a second reading.

    Attributes:
        changed: files and links that are not as in R.
        unseen: names of R's that have not come by.
        spooled: SHA-1 of each content in the spool.
        rooted: something of the tree was there.
        replaced: what stands in the place of the tree's folder, "" for a folder.
        repositories: folders with a git repository of their own, the first of them.
        left_out: why members were left out, and how many; ``example`` names one of each.
        overlooked: how many new files were too many.
    """

    root: bytes
    base: Base
    spool: IO[bytes]
    limits: SnapshotLimits
    wanted: Collection[bytes] | None = None
    changed: dict[bytes, Entry] = field(default_factory=dict)
    unseen: set[bytes] = field(init=False)
    spooled: set[bytes] = field(default_factory=set)
    rooted: bool = False
    replaced: str = ""
    repositories: set[bytes] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)
    example: dict[str, bytes] = field(default_factory=dict)
    overlooked: int = 0
    _open: _Content | None = None
    _spool_at: int = 0
    _new: int = 0

    def __post_init__(self) -> None:
        self.unseen = set(self.base.entries)  # no new names: many harvests may go on at once

    def unchanged(self, name: bytes) -> bool:
        """True when ``name`` was seen, and is as in R."""
        return name in self.base.entries and name not in self.unseen and name not in self.changed

    def has(self, identity: bytes) -> bool:
        """True when the content is R's or in the spool."""
        return identity in self.base.identities or identity in self.spooled

    def member(self, member: Member) -> bool:
        """Take note of a member of the archive; True when its content is to be seen."""
        name = self._name(member)
        if name is None:
            return False
        if member.kind is Kind.LINK:
            self._link(name, member.link)
        elif member.kind is Kind.HARD_LINK:
            self._hard_link(name, member.link)
        elif member.kind is not Kind.FILE:
            self._leave_out(name, f"is {member.kind.value}")
        elif member.size > self.limits.file_bytes and not self._like_base(name, member.size):
            self._enter(name, Entry(_mode(member), b"", member.size))
        else:
            self._begin(name, _mode(member), member.size)
            return True
        return False

    def content(self, chunk: bytes) -> None:
        """Take a piece of the file that is open."""
        assert self._open is not None  # noqa: S101 - the reader asked for it
        content = self._open
        content.digest.update(chunk)
        if len(chunk) == content.size:
            content.whole = chunk
        elif content.spooling:
            if not content.begun:
                self.spool.write(b"blob\ndata %d\n" % content.size)
                content.begun = True
            self.spool.write(chunk)

    def end(self) -> None:
        """Know that the file that is open is whole."""
        assert self._open is not None  # noqa: S101 - the reader asked for it
        content, identity = self._open, self._open.digest.digest()
        new = not self.has(identity)
        if new and (content.size > self.limits.file_bytes):
            identity = b""
        elif new and content.spooling and (self.wanted is None or identity in self.wanted):
            if not content.begun:
                self.spool.write(b"blob\ndata %d\n%b" % (content.size, content.whole))
            self.spool.write(b"\n")
            self._spool_at = self.spool.tell()
            self.spooled.add(identity)
        self.drop_open()
        self._enter(content.name, Entry(content.mode, identity, content.size))

    def drop_open(self) -> None:
        """Forget what the spool has of the file that is open."""
        if self._open is not None and self._open.begun:
            self.spool.seek(self._spool_at)
            self.spool.truncate()
        self._open = None

    def _name(self, member: Member) -> bytes | None:
        """Return the member's name within the tree; None where it has none that git could take."""
        parts = member.name.rstrip(b"/").split(b"/")
        self.rooted |= parts[0] == self.root
        if parts == [self.root]:
            self.replaced = "" if member.kind is Kind.FOLDER else member.kind.value
            return None
        name = b"/".join(parts[1:])
        if parts[0] != self.root or b"\0" in name or {b"", b".", b".."}.intersection(parts):
            self._leave_out(member.name, "has a name that leads elsewhere")
        elif (not name.isascii() or b"git" in name.lower()) and self._is_gits(parts, member.kind):
            pass
        elif len(name) > _PATH_BYTES:
            self._leave_out(name, "has an over-long name")
        elif member.kind is not Kind.FOLDER:
            return name
        return None

    def _is_gits(self, parts: list[bytes], kind: Kind) -> bool:
        """True when git could take a part of the name for its own folder."""
        at = next((at for at, part in enumerate(parts) if _is_git(part)), 0)
        if at and parts[at] == b".git":
            if at > 1 and len(self.repositories) < _REPOSITORIES:
                self.repositories.add(b"/".join(parts[1:at]))
        elif at and kind is not Kind.FOLDER:
            self._leave_out(b"/".join(parts[1:]), "has a name that git does not take")
        return at > 0

    def _begin(self, name: bytes, mode: int, size: int) -> None:
        # A .gitignore decides what else counts: there is room for it.
        small = name.rpartition(b"/")[2] == b".gitignore" and size <= _GITIGNORE_BYTES
        room = self.wanted is not None or self._spool_at + size <= self.limits.spool_bytes
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        self._open = _Content(name, mode, size, digest, spooling=room or small)

    def _link(self, name: bytes, target: bytes) -> None:
        if not target or b"\0" in target or len(target) > _LINK_BYTES:
            self._leave_out(name, "is a link to an impossible name")
        elif name.rpartition(b"/")[2].lower() == b".gitmodules":
            self._leave_out(name, "is a link, which git does not take by that name")
        else:
            self._begin(name, LINK, len(target))
            self.content(target)
            self.end()

    def _hard_link(self, name: bytes, link: bytes) -> None:
        target = link.rstrip(b"/").partition(b"/")[2]
        entry = self.base.entries[target] if self.unchanged(target) else self.changed.get(target)
        if entry is None or entry.mode == LINK:
            self._leave_out(name, "is a hard link to what is no file of the tree")
        else:
            self._enter(name, entry)

    def _enter(self, name: bytes, entry: Entry) -> None:
        base = self.base.entries.get(name)
        if base is None:
            self._enter_new(name, entry)
            return
        self.unseen.discard(name)
        if (base.identity, base.mode) == (entry.identity, entry.mode):
            self.changed.pop(name, None)
        else:
            self.changed[name] = entry

    def _enter_new(self, name: bytes, entry: Entry) -> None:
        if name not in self.changed:
            if self._new == self.limits.new_files:
                self.overlooked += 1
                return
            self._new += 1
        self.changed[name] = entry

    def _like_base(self, name: bytes, size: int) -> bool:
        base = self.base.entries.get(name)
        return base is not None and base.size == size

    def _leave_out(self, name: bytes, why: str) -> None:
        self.left_out[why] += 1
        self.example.setdefault(why, name)


@dataclass(slots=True)
class _Content:
    """A file while it streams by; what is read in one piece waits to be looked at before it is spooled."""

    name: bytes
    mode: int
    size: int
    digest: hashlib._Hash
    spooling: bool
    begun: bool = False
    whole: bytes = b""


def _mode(member: Member) -> int:
    return PROGRAM if member.executable else FILE


def _is_git(part: bytes) -> bool:
    """True when git could take ``part`` for its own folder; to some systems a backslash is a slash."""
    return any(map(is_git_name, part.split(b"\\")))
