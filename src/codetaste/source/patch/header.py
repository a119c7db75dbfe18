"""File header of a diff: git's, with modes and renames, or the two lines of a plain diff."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from codetaste.errors import PatchError
from codetaste.source.patch.hunks import line_at

# The most common header (nine files in ten), matched at once: four times the same name, with a/ and b/.
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
class DiffSection:
    """One file of a patch while it is parsed. Names are raw, with quotes and prefixes.

    Attributes:
        start: position of the header.
        git: whether it is git's header.
        name: the name without prefixes if the header has the common form; the next five are then not set.
        pair: both names of the line ``diff --git``.
        minus: the text after ``---``, None without one.
        plus: the text after ``+++``, None without one.
        source: the name after ``rename from`` or ``copy from``.
        target: the name after ``rename to`` or ``copy to``.
        body: position of the body, after the header.
        end: position of the end of the body.
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
    declared_bytes: int = 0

    @property
    def changes_metadata(self) -> bool:
        """True when the header alone changes something."""
        moved = self.new or self.deleted or self.renamed or self.copied
        return moved or bool(self.old_mode and self.new_mode and self.old_mode != self.new_mode)


def parse_git_header(content: bytes, at: int) -> DiffSection | None:
    """Read git's header at ``at``; None if no header line follows the first one.

    Raises:
        PatchError: a header line is invalid.
    """
    if usual := _USUAL.match(content, at):
        name, old_blob, new_blob, mode = usual.groups(b"0")
        mode_bits = int(mode, 8)
        return DiffSection(
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
    section = DiffSection(at, git=True, pair=first[1])
    here = first.end()
    while found := _EXTENDED.match(content, here):
        if not _note(section, found[1], found[2]):
            line = line_at(content, here)
            raise PatchError(f"line {line}: invalid file header", line=line)
        here = found.end()
        if found[1] == b"+++":
            break
    section.body = here
    return section if here > first.end() else None


def parse_plain_header(content: bytes, at: int) -> DiffSection | None:
    """Read the two header lines at ``at``; None if they are not a header: a hunk must follow."""
    found = _PLAIN.match(content, at)
    if found is None:
        return None
    section = DiffSection(at, git=False, minus=found[1], plus=found[2], body=found.end())
    # diff -N writes the time zero for a file that does not exist.
    section.new = bool(_EPOCH.search(found[1])) or found[1].split(b"\t")[0] == b"/dev/null"
    section.deleted = bool(_EPOCH.search(found[2])) or found[2].split(b"\t")[0] == b"/dev/null"
    return section


def _note(section: DiffSection, key: bytes, value: bytes) -> bool:
    """Store a line of git's header; False if it is invalid."""
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


def _note_index(section: DiffSection, value: bytes) -> bool:
    found = _INDEX.match(value)
    if found is not None:
        section.old_blob, section.new_blob = found[1].decode(), found[2].decode()
        if found[3]:
            section.old_mode = section.new_mode = int(found[3], 8)
    return True  # git ignores an invalid index line, too


def _note_mode(section: DiffSection, key: bytes, value: bytes) -> bool:
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
