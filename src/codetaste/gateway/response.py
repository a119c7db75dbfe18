"""The response stream of one request, for a client that may read slowly or disconnect."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAX_QUEUED = 256
_STALL_TIMEOUT_S = 60.0
"""A client that reads no byte for this long counts as disconnected, so that the provider does not wait."""


class ResponseStream:
    """One response. The producer ends it by ``close``; the sender may ``abandon`` it."""

    def __init__(self) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self.started, self.abandoned = anyio.Event(), False
        self.on_abandon: Callable[[], None] = lambda: None
        self._send_stream, self.pieces = anyio.create_memory_object_stream[bytes](_MAX_QUEUED)

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Set status and headers; only the first call counts."""
        if not self.started.is_set():
            self.status, self.headers = status, dict(headers)
            self.started.set()

    async def write(self, piece: bytes) -> None:
        """Add the next piece of the body; it is dropped if the client has disconnected."""
        if self.abandoned or not piece:
            return
        try:
            try:
                self._send_stream.send_nowait(piece)
            except anyio.WouldBlock:
                with anyio.fail_after(_STALL_TIMEOUT_S):
                    await self._send_stream.send(piece)
        except (TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.abandon()

    def drain(self) -> bytes:
        """Return all queued pieces joined, so that they are sent as one."""
        pieces = []
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                pieces.append(self.pieces.receive_nowait())
        return b"".join(pieces)

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole response."""
        self.start(status, {**headers, "content-length": str(len(body))})
        await self.write(body)

    def close(self) -> None:
        """End the body."""
        self._send_stream.close()
        self.started.set()

    def abandon(self) -> None:
        """Record that the client has disconnected."""
        if not self.abandoned:
            self.abandoned = True
            self.pieces.close()
            self.on_abandon()
