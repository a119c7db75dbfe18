"""Git's files: objects, packs, and tables of objects.

They are read without git: they are untrusted, may be cut off, and need not lie in a repository.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.environment.leak_search.archives import MAX_MEMBER_BYTES, Unsearchable
from codetaste.environment.leak_search.content import WINDOW_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from codetaste.environment.leak_search.content import Content

_LOOSE = re.compile(rb"(?:^|/)([0-9a-f]{2})/([0-9a-f]{38})$")
_LOOSE_MARK = b"x"
"""The first byte of an object in a file of its own, by the way git compresses it."""
_PACK, _INDEX, _BUNDLE = b"PACK", b"\xfftOc\0\0\0\x02", b"# v"
_TABLES = (b"DIRC", b"MIDX", b"CGPH")
_ID_BYTES, _FANOUT = 20, 1024
_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_OFFSET_DELTA, _REFERENCE_DELTA = 6, 7
_STEPS = (4096, 1024**2)
_MAX_TABLE_BYTES = 512 * 1024**2


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of git: its id, or that of the object it is a change of (b"" if unknown), and its content.

    Of a change ``content`` is what it adds.
    """

    identity: bytes
    base: bytes
    content: bytes


def named_object(path: bytes) -> bytes:
    """Return the id of the object that a file of a repository is named after, b"" if it is not."""
    match = _LOOSE.search(path)
    return bytes.fromhex((match[1] + match[2]).decode()) if match else b""


def listed_objects(content: Content, wanted: Mapping[bytes, str]) -> Iterator[bytes]:
    """Yield which of the ids ``wanted`` are in a table of objects: an index of a pack or of a work tree.

    Raises:
        Unsearchable: it is too large.
    """
    is_pack_index = content.head.startswith(_INDEX)
    if not is_pack_index and not content.head.startswith(_TABLES):
        return
    if content.size > _MAX_TABLE_BYTES:
        raise Unsearchable("a table of git that is too large")
    data = content.read()
    if not is_pack_index:
        yield from (identity for identity in wanted if identity in data)
        return
    start = len(_INDEX) + _FANOUT
    count = int.from_bytes(data[start - 4 : start], "big")
    end = min(start + count * _ID_BYTES, len(data))
    yield from {data[at : at + _ID_BYTES] for at in range(start, end, _ID_BYTES)} & wanted.keys()


def stored_objects(content: Content, check: Callable[[], None]) -> Iterator[StoredObject]:
    """Yield the objects in a pack, in a bundle, or in a file with one object; none of another file.

    Raises:
        Unsearchable: a pack is damaged or incomplete; objects before that are yielded.
    """
    head = content.head
    if head[:1] == _LOOSE_MARK and (loose := _loose_object(content)) is not None:
        yield loose
    if not (head.startswith(_PACK) or (head.startswith(_BUNDLE) and b"git bundle" in head)):
        return
    reader = _PackReader(content, check)
    try:
        for _ in range(reader.begin()):
            yield reader.next_object()
    except (zlib.error, IndexError, EOFError, KeyError) as error:
        raise Unsearchable("a damaged git pack") from error


def _loose_object(content: Content) -> StoredObject | None:
    """Return the object in a file of its own; None if the file is none."""
    try:
        data = zlib.decompressobj().decompress(content.read(MAX_MEMBER_BYTES), MAX_MEMBER_BYTES)
    except zlib.error:
        return None
    header, nul, body = data.partition(b"\0")
    if not nul or header.partition(b" ")[0] not in _KINDS.values():
        return None
    return StoredObject(hashlib.sha1(data, usedforsecurity=False).digest(), b"", body)


class _PackReader:
    def __init__(self, content: Content, check: Callable[[], None]) -> None:
        self._file, self._check = content.open(), check
        self._data, self._at = b"", 0

    def begin(self) -> int:
        """Read the header; return the number of objects."""
        self._data = self._file.read(WINDOW_BYTES)
        self._at = self._data.find(_PACK)  # in a bundle after its header
        if self._at < 0:
            raise EOFError
        header = self._take(12)
        return int.from_bytes(header[8:], "big")

    def next_object(self) -> StoredObject:
        first = self._byte()
        kind, size, shift = first >> 4 & 7, first & 15, 4
        more = first & 128
        while more:
            byte = self._byte()
            size |= (byte & 127) << shift
            shift += 7
            more = byte & 128
        if size > MAX_MEMBER_BYTES:
            raise Unsearchable("a git pack with an object that is too large")
        base = b""
        if kind == _OFFSET_DELTA:
            while self._byte() & 128:
                pass
        elif kind == _REFERENCE_DELTA:
            base = self._take(_ID_BYTES)
        data = self._inflate(size)
        if kind in {_OFFSET_DELTA, _REFERENCE_DELTA}:
            return StoredObject(b"", base, added_by(data))
        header = b"%s %d\0" % (_KINDS[kind], len(data))
        return StoredObject(hashlib.sha1(header + data, usedforsecurity=False).digest(), b"", data)

    def _inflate(self, size: int) -> bytes:
        inflater, pieces, left = zlib.decompressobj(), [], size
        step = _STEPS[0]
        while not inflater.eof:
            self._check()
            data = self._peek(step)
            if not data:
                raise EOFError
            piece = inflater.decompress(data, left + 1)
            left -= len(piece)
            if left < 0:
                raise EOFError
            pieces.append(piece)
            self._at += len(data) - len(inflater.unused_data) - len(inflater.unconsumed_tail)
            step = _STEPS[1]
        return b"".join(pieces)

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, size: int) -> bytes:
        data = self._peek(size)
        if len(data) < size:
            raise EOFError
        self._at += size
        return data

    def _peek(self, size: int) -> bytes:
        if len(self._data) - self._at < size:
            self._data = self._data[self._at :] + self._file.read(WINDOW_BYTES)
            self._at = 0
        return self._data[self._at : self._at + size]


def added_by(delta: bytes) -> bytes:
    """Return what a change of git's adds: its own bytes, a line end where it copies from its base."""
    at = 0
    for _ in range(2):  # the sizes of base and result
        while delta[at] & 128:
            at += 1
        at += 1
    parts: list[bytes] = []
    while at < len(delta):
        code = delta[at]
        at += 1
        if code & 128:
            at += (code & 127).bit_count()
            if parts and parts[-1] != b"\n":
                parts.append(b"\n")
        else:
            parts.append(delta[at : at + code])
            at += code
    return b"".join(parts)
