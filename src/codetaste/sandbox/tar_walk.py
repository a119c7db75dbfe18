"""Walking along a tar archive as it streams by: the names of its members, and whether it came to its end.

Nothing is unpacked, and nothing kept but headers and long names.
"""

from __future__ import annotations

import tarfile

from codetaste.errors import SandboxError

_BLOCK = 512
_MOST_BYTES = 1024**2
"""Of a long name; Linux takes 4096."""


class TarWalk:
    """Feed it the archive piece by piece."""

    def __init__(self) -> None:
        self.complete = False
        self._held = bytearray()
        self._skip = 0
        self._kind: bytes | None = None
        self._name: str | None = None
        self._size: int | None = None

    def feed(self, piece: bytes) -> list[str]:
        """Return the names of the members whose headers are complete with this piece.

        Raises:
            SandboxError: it is no tar archive.
        """
        names: list[str] = []
        at = 0
        while at < len(piece) and not self.complete:
            if self._skip and self._kind is None:
                step = min(self._skip, len(piece) - at)
                self._skip -= step
                at += step
                continue
            step = min((self._skip or _BLOCK) - len(self._held), len(piece) - at)
            self._held += piece[at : at + step]
            at += step
            if len(self._held) == (self._skip or _BLOCK):
                block = bytes(self._held)
                self._held.clear()
                names += self._told(block) if self._kind else self._header(block)
        return names

    def end(self) -> None:
        """Take note that nothing more comes.

        Raises:
            SandboxError: the archive has not come to its end.
        """
        if not self.complete:
            raise SandboxError("an archive breaks off before its end")

    def _header(self, block: bytes) -> list[str]:
        if not any(block):
            self.complete = True
            return []
        try:
            member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise SandboxError(f"an archive cannot be read: {error}") from error
        told = member.type in {
            tarfile.GNUTYPE_LONGNAME,
            tarfile.GNUTYPE_LONGLINK,
            tarfile.XHDTYPE,
            tarfile.XGLTYPE,
        }
        size = member.size if told or self._size is None else self._size
        if told and size > _MOST_BYTES:
            raise SandboxError(f"an archive has a name of {size} bytes")
        # A link may say the size of what it leads to, which does not follow.
        self._skip = -(-size // _BLOCK) * _BLOCK if told or member.isreg() else 0
        if told:
            self._kind = member.type if self._skip else None
            return []
        name, self._name, self._size = self._name or member.name, None, None
        return [name]

    def _told(self, content: bytes) -> list[str]:
        """Take what an extended header tells of the member after it."""
        if self._kind == tarfile.GNUTYPE_LONGNAME:
            self._name = content.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        elif self._kind == tarfile.XHDTYPE:
            records = _records(content)
            if b"path" in records:
                self._name = records[b"path"].decode("utf-8", "surrogateescape")
            if b"size" in records:
                self._size = int(records[b"size"])
        self._kind, self._skip = None, 0
        return []


def _records(content: bytes) -> dict[bytes, bytes]:
    """Read records of a length, a key and a value, which may hold anything."""
    records = {}
    while content[:1].isdigit():
        length, _, rest = content.partition(b" ")
        key, _, value = rest[: int(length) - len(length) - 1].rstrip(b"\n").partition(b"=")
        records[key] = value
        content = content[int(length) :]
    return records
