"""Encoder and reader of a git index file for a repository that was never checked out.

git itself would record inode numbers and times of the host's files; then the first command in a sandbox
would read every file again, and plumbing commands would report all files as changed.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILE_MODE, EXECUTABLE_MODE, LINK_MODE = 0o100644, 0o100755, 0o120000
"""git's modes of files and links."""

_MAX_NAME_LENGTH = 0xFFF
_ALIGN = 8
# Times, device and inode (none), mode, owner (none), size, hash, length of the name.
_ENTRY = struct.Struct(">10I20sH")
_HEADER = struct.Struct(">4sII")


def encode_index(entries: Iterable[tuple[bytes, int, bytes, int]], mtime_s: int) -> bytes:
    """Return an index, version 2, in which every file was last changed at ``mtime_s``.

    git accepts it as up to date if ``core.checkStat`` is minimal and ``core.trustCTime`` false: then it
    compares only size and time, which do not depend on the host.

    Args:
        entries: name, mode, SHA-1 (20 bytes) and size in bytes of each file and link, in any order.
        mtime_s: seconds since the epoch.
    """
    ordered = sorted(entries)
    parts = [_HEADER.pack(b"DIRC", 2, len(ordered))]
    for name, mode, identity, size in ordered:
        length = min(len(name), _MAX_NAME_LENGTH)
        head = _ENTRY.pack(0, 0, mtime_s, 0, 0, 0, mode, 0, 0, size & 0xFFFFFFFF, identity, length)
        entry = head + name
        parts.append(entry + b"\0" * (_ALIGN - len(entry) % _ALIGN))
    content = b"".join(parts)
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def read_index(content: bytes) -> Iterator[tuple[bytes, int, bytes, int]]:
    """Yield name, mode, SHA-1 and size of each file and link of an index made by ``encode_index``."""
    at = _HEADER.size
    for _ in range(_HEADER.unpack_from(content)[2]):
        fields = _ENTRY.unpack_from(content, at)
        start = at + _ENTRY.size
        name = content[start : content.index(b"\0", start)]
        yield name, fields[6], fields[10], fields[9]
        length = _ENTRY.size + len(name)
        at += length + _ALIGN - length % _ALIGN
