"""The frames of the supervisor protocol: size, kind, number of the command, payload.

Frames from the sandbox are untrusted: one that is too large or of an unknown kind is an error.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from codetaste.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator

HELLO, PING = b"H", b"P"
RUN, STDIN, CREDIT, KILL, STOP = b"R", b"I", b"C", b"K", b"S"
EXIT, REFUSAL = b"X", b"N"
WINDOW_BYTES = 1024 * 1024
"""Standard input that may be sent before the first credit."""
CHUNK_BYTES = 64 * 1024
_HEADER = struct.Struct(">IcI")
_MAX_BYTES = 256 * 1024
_FROM_SUPERVISOR = frozenset({HELLO, PING, CREDIT, EXIT, REFUSAL})


class Frame(NamedTuple):
    """One message. ``command`` is 0 if it is about none."""

    kind: bytes
    command: int = 0
    payload: bytes = b""

    def to_bytes(self) -> bytes:
        """Return the bytes of the frame."""
        return _HEADER.pack(len(self.payload), self.kind, self.command) + self.payload


class FrameDecoder:
    """Splits a stream from the sandbox into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that ``data`` completes.

        Raises:
            SandboxError: the data is not a valid frame.
        """
        data = self._rest + data if self._rest else data
        start = 0
        while len(data) - start >= _HEADER.size:
            size, kind, command = _HEADER.unpack_from(data, start)
            if size > _MAX_BYTES or kind not in _FROM_SUPERVISOR:
                raise SandboxError(f"invalid frame from the sandbox supervisor (kind {kind!r}, {size} bytes)")
            end = start + _HEADER.size + size
            if len(data) < end:
                break
            yield Frame(kind, command, data[start + _HEADER.size : end])
            start = end
        self._rest = data[start:]
