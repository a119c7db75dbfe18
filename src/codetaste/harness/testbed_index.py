"""The index of a repository that was never checked out: git's file of what the work tree should hold.

Written by us, because git would record inode numbers and times of this machine's files: then the first
command inside a box would read every file again, and plumbing would call them all changed.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000
"""The modes that git knows of what is no folder."""

_NAME_BITS = 0xFFF
_ALIGN = 8
# Times, device and inode (none), mode, owner (none), size, hash, length of the name.
_ENTRY = struct.Struct(">10I20sH")
_HEADER = struct.Struct(">4sII")


def index_file(entries: Iterable[tuple[bytes, int, bytes, int]], mtime_s: int) -> bytes:
    """Return an index, version 2, in which every file was last changed at ``mtime_s``.

    It is up to date where ``core.checkStat`` is minimal and ``core.trustCTime`` false: git then compares size
    and time, and nothing that differs from one machine to the next.

    Args:
        entries: name, mode, SHA-1 (20 bytes) and size in bytes of each file and link, in any order.
        mtime_s: seconds since the epoch.
    """
    ordered = sorted(entries)
    parts = [_HEADER.pack(b"DIRC", 2, len(ordered))]
    for name, mode, identity, size in ordered:
        length = min(len(name), _NAME_BITS)
        head = _ENTRY.pack(0, 0, mtime_s, 0, 0, 0, mode, 0, 0, size & 0xFFFFFFFF, identity, length)
        entry = head + name
        parts.append(entry + b"\0" * (_ALIGN - len(entry) % _ALIGN))
    content = b"".join(parts)
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def index_entries(content: bytes) -> Iterator[tuple[bytes, int, bytes, int]]:
    """Read what ``index_file`` made: name, mode, SHA-1 and size of each file and link."""
    at = _HEADER.size
    for _ in range(_HEADER.unpack_from(content)[2]):
        fields = _ENTRY.unpack_from(content, at)
        start = at + _ENTRY.size
        name = content[start : content.index(b"\0", start)]
        yield name, fields[6], fields[10], fields[9]
        length = _ENTRY.size + len(name)
        at += length + _ALIGN - length % _ALIGN
