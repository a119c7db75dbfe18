"""Frames between us and the program inside of a box: size, kind, number of the command, payload.

What comes from inside is untrusted: a frame that is too large or of no known kind is a fault.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from codetaste.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator

HELLO, PING = b"H", b"P"
RUN, STDIN, CREDIT, KILL, STOP = b"R", b"I", b"C", b"K", b"S"
EXIT, REFUSED = b"X", b"N"
WINDOW_BYTES = 1024 * 1024
"""How much standard input may be under way to who has not asked on."""
CHUNK_BYTES = 64 * 1024
_HEADER = struct.Struct(">IcI")
_LARGEST = 256 * 1024
_FROM_INSIDE = frozenset({HELLO, PING, CREDIT, EXIT, REFUSED})


class Frame(NamedTuple):
    """One message. ``command`` is 0 where it is about none."""

    kind: bytes
    command: int = 0
    payload: bytes = b""

    def packed(self) -> bytes:
        """Return it as it is sent."""
        return _HEADER.pack(len(self.payload), self.kind, self.command) + self.payload


class Frames:
    """Takes a stream from inside apart."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that ``data`` completes.

        Raises:
            SandboxError: this is no frame.
        """
        data = self._held + data if self._held else data
        start = 0
        while len(data) - start >= _HEADER.size:
            size, kind, command = _HEADER.unpack_from(data, start)
            if size > _LARGEST or kind not in _FROM_INSIDE:
                raise SandboxError(f"the program inside sent what is no frame (kind {kind!r}, {size} bytes)")
            end = start + _HEADER.size + size
            if len(data) < end:
                break
            yield Frame(kind, command, data[start + _HEADER.size : end])
            start = end
        self._held = data[start:]
