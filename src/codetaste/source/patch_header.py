"""The header of one file in a patch: git's, with modes and renames, or the two lines of a plain diff."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from codetaste.errors import PatchError
from codetaste.source.patch_hunks import line_at

# The header of nine files in ten, which says all at once: the same name four times, and a/ and b/ before it.
_USUAL = re.compile(
    rb'diff --git a/([^\n\r\t"]{1,1024}?) b/\1\n'
    rb"index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{5,7}))?\n"
    rb"--- a/\1\t?\n\+\+\+ b/\1\t?\n"
)
_GIT = re.compile(rb"diff --git ([^\n]*?)\r?\n")
_EXTENDED = re.compile(
    rb"(old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to"
    rb"|rename old|rename new|similarity index|dissimilarity index|index|---|\+\+\+) ([^\n]*?)\r?\n"
)
_PLAIN = re.compile(rb"--- ([^\n]*?)\r?\n\+\+\+ ([^\n]*?)\r?\n(?=@@ -)")
_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: ([0-7]{5,7}))?\Z")
_MODE = re.compile(rb"[0-7]{5,7}\s*\Z")
_EPOCH = re.compile(rb"\t(?:1969-12-31|1970-01-01) \d\d:\d\d:00(?:\.0+)? [-+]\d\d:?\d\d\Z")


@dataclass(slots=True)
class Section:
    """One file of a patch while it is read. Names are as they stand there, quotes and prefixes included.

    Attributes:
        start: where its header begins.
        git: whether it has git's header.
        name: its one name without prefixes, where the header is of the usual form; the next five are not set.
        pair: both names as the line ``diff --git`` has them.
        minus: the text behind ``---``, None without one.
        plus: the text behind ``+++``, None without one.
        source: the name behind ``rename from`` or ``copy from``.
        target: the name behind ``rename to`` or ``copy to``.
        body: where what follows the header begins.
        end: where that ends.
    """

    start: int
    git: bool
    name: bytes = b""
    pair: bytes = b""
    minus: bytes | None = None
    plus: bytes | None = None
    source: bytes | None = None
    target: bytes | None = None
    new: bool = False
    deleted: bool = False
    renamed: bool = False
    copied: bool = False
    old_mode: int = 0
    new_mode: int = 0
    old_blob: str = ""
    new_blob: str = ""
    body: int = 0
    end: int = 0
    removed: list[range] = field(default_factory=list)
    added: list[range] = field(default_factory=list)
    binary: bool = False
    made_bytes: int = 0

    @property
    def changes_metadata(self) -> bool:
        """True when the header alone changes something."""
        moved = self.new or self.deleted or self.renamed or self.copied
        return moved or bool(self.old_mode and self.new_mode and self.old_mode != self.new_mode)


def git_section(content: bytes, at: int) -> Section | None:
    """Read git's header at ``at``; None where nothing of a header follows its first line.

    Raises:
        PatchError: a line of it makes no sense.
    """
    if usual := _USUAL.match(content, at):
        name, old_blob, new_blob, mode = usual.groups(b"0")
        mode_bits = int(mode, 8)
        return Section(
            at,
            git=True,
            name=name,
            old_blob=old_blob.decode(),
            new_blob=new_blob.decode(),
            old_mode=mode_bits,
            new_mode=mode_bits,
            body=usual.end(),
        )
    first = _GIT.match(content, at)
    if first is None:
        return None
    section = Section(at, git=True, pair=first[1])
    here = first.end()
    while found := _EXTENDED.match(content, here):
        if not _note(section, found[1], found[2]):
            line = line_at(content, here)
            raise PatchError(f"line {line}: the header of a file makes no sense", line=line)
        here = found.end()
        if found[1] == b"+++":
            break
    section.body = here
    return section if here > first.end() else None


def plain_section(content: bytes, at: int) -> Section | None:
    """Read the two lines at ``at``; None where they are no header: a hunk must follow."""
    found = _PLAIN.match(content, at)
    if found is None:
        return None
    section = Section(at, git=False, minus=found[1], plus=found[2], body=found.end())
    # What diff -N compares with nothing has the time zero.
    section.new = bool(_EPOCH.search(found[1])) or found[1].split(b"\t")[0] == b"/dev/null"
    section.deleted = bool(_EPOCH.search(found[2])) or found[2].split(b"\t")[0] == b"/dev/null"
    return section


def _note(section: Section, key: bytes, value: bytes) -> bool:
    """Take note of a line of git's header; False when it makes no sense."""
    if key == b"index":
        return _note_index(section, value)
    if key.endswith(b"mode"):
        return _note_mode(section, key, value)
    if key in {b"rename from", b"rename old"}:
        section.source, section.renamed = value, True
    elif key in {b"rename to", b"rename new"}:
        section.target, section.renamed = value, True
    elif key == b"copy from":
        section.source, section.copied = value, True
    elif key == b"copy to":
        section.target, section.copied = value, True
    elif key == b"---":
        section.minus = value
    elif key == b"+++":
        section.plus = value
    return True


def _note_index(section: Section, value: bytes) -> bool:
    found = _INDEX.match(value)
    if found is not None:
        section.old_blob, section.new_blob = found[1].decode(), found[2].decode()
        if found[3]:
            section.old_mode = section.new_mode = int(found[3], 8)
    return True  # one that makes no sense is passed over by git too


def _note_mode(section: Section, key: bytes, value: bytes) -> bool:
    if not _MODE.match(value):
        return False
    mode = int(value, 8)
    if key in {b"old mode", b"deleted file mode"}:
        section.old_mode = mode
    else:
        section.new_mode = mode
    section.deleted |= key == b"deleted file mode"
    section.new |= key == b"new file mode"
    return True
