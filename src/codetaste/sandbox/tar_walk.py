"""A scanner for streamed tar archives: member names, and whether the archive is complete.

It unpacks nothing and stores only headers and long names.
"""

from __future__ import annotations

import tarfile

from codetaste.errors import SandboxError

_BLOCK_BYTES = 512
_MAX_NAME_BYTES = 1024**2
"""Of a long name; Linux allows 4096."""


class TarScanner:
    """Scans an archive that is fed piece by piece."""

    def __init__(self) -> None:
        self.complete = False
        self._buffer = bytearray()
        self._skip = 0
        self._kind: bytes | None = None
        self._name: str | None = None
        self._size: int | None = None

    def feed(self, piece: bytes) -> list[str]:
        """Return the names of the members whose headers are complete with this piece.

        Raises:
            SandboxError: it is not a tar archive.
        """
        names: list[str] = []
        at = 0
        while at < len(piece) and not self.complete:
            if self._skip and self._kind is None:
                step = min(self._skip, len(piece) - at)
                self._skip -= step
                at += step
                continue
            step = min((self._skip or _BLOCK_BYTES) - len(self._buffer), len(piece) - at)
            self._buffer += piece[at : at + step]
            at += step
            if len(self._buffer) == (self._skip or _BLOCK_BYTES):
                block = bytes(self._buffer)
                self._buffer.clear()
                names += self._extended_header(block) if self._kind else self._header(block)
        return names

    def finish(self) -> None:
        """Check that the archive is complete.

        Raises:
            SandboxError: its end is missing.
        """
        if not self.complete:
            raise SandboxError("an archive is incomplete")

    def _header(self, block: bytes) -> list[str]:
        if not any(block):
            self.complete = True
            return []
        try:
            member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise SandboxError(f"an archive cannot be read: {error}") from error
        extended = member.type in {
            tarfile.GNUTYPE_LONGNAME,
            tarfile.GNUTYPE_LONGLINK,
            tarfile.XHDTYPE,
            tarfile.XGLTYPE,
        }
        size = member.size if extended or self._size is None else self._size
        if extended and size > _MAX_NAME_BYTES:
            raise SandboxError(f"an archive has a name of {size} bytes")
        # A link may have the size of its target, whose content does not follow.
        self._skip = -(-size // _BLOCK_BYTES) * _BLOCK_BYTES if extended or member.isreg() else 0
        if extended:
            self._kind = member.type if self._skip else None
            return []
        name, self._name, self._size = self._name or member.name, None, None
        return [name]

    def _extended_header(self, content: bytes) -> list[str]:
        """Read an extended header, which describes the member after it."""
        if self._kind == tarfile.GNUTYPE_LONGNAME:
            self._name = content.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        elif self._kind == tarfile.XHDTYPE:
            records = _pax_records(content)
            if b"path" in records:
                self._name = records[b"path"].decode("utf-8", "surrogateescape")
            if b"size" in records:
                self._size = int(records[b"size"])
        self._kind, self._skip = None, 0
        return []


def _pax_records(content: bytes) -> dict[bytes, bytes]:
    """Parse pax records of a length, a key and a value; the value may contain any bytes."""
    records = {}
    while content[:1].isdigit():
        length, _, rest = content.partition(b" ")
        key, _, value = rest[: int(length) - len(length) - 1].rstrip(b"\n").partition(b"=")
        records[key] = value
        content = content[int(length) :]
    return records
