"""Where the answer to one request is put, for a client that may read slowly or go away in the middle."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PIECES = 256
_PATIENCE_S = 60.0
"""How long a client may take no byte at all before it is taken for gone; the provider is not kept waiting."""


class Outlet:
    """One answer in the making. Whoever makes it ``close``s it; whoever delivers it may ``leave``."""

    def __init__(self) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self.begun, self.gone = anyio.Event(), False
        self.on_leaving: Callable[[], None] = _nothing
        self._put, self.pieces = anyio.create_memory_object_stream[bytes](_PIECES)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Say how the answer begins; only the first time counts."""
        if not self.begun.is_set():
            self.status, self.headers = status, dict(headers)
            self.begun.set()

    async def write(self, piece: bytes) -> None:
        """Give the next piece of the body; after the client has gone it is dropped."""
        if self.gone or not piece:
            return
        try:
            self._put.send_nowait(piece)
        except anyio.WouldBlock:
            with anyio.move_on_after(_PATIENCE_S) as waiting:
                await self._give(piece)
            if waiting.cancelled_caught:
                self.leave()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.leave()

    async def _give(self, piece: bytes) -> None:
        try:
            await self._put.send(piece)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.leave()

    def rest(self) -> bytes:
        """Take all that waits to be delivered now, so that it goes in one piece."""
        pieces = []
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                pieces.append(self.pieces.receive_nowait())
        return b"".join(pieces)

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Give a whole answer."""
        self.begin(status, {**headers, "content-length": str(len(body))})
        await self.write(body)

    def close(self) -> None:
        """Say that there is no more."""
        self._put.close()
        self.begun.set()

    def leave(self) -> None:
        """Say that the client reads no further."""
        if not self.gone:
            self.gone = True
            self.pieces.close()
            self.on_leaving()


def _nothing() -> None:
    """Nobody wants to know."""
