"""HTTP/1.1 on the loopback: sends a response byte by byte, in chosen pieces, or breaks it off."""

from __future__ import annotations

import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

_MAX_HEAD_BYTES = 65536
_DISCONNECTED = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    OSError,
)


@dataclass
class Call:
    """A received request, and the connection on which to answer it.

    ``piece`` returns the length of the next piece of a body; without it, a body is sent at once. ``keep`` is
    whether the connection stays open after the response.
    """

    method: str
    path: str
    headers: dict[str, str]
    data: bytes
    stream: SocketStream
    piece: Callable[[], int] | None = None
    pause_s: float = 0.0
    keep: bool = True
    chunked: bool = field(default=False, init=False)

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and the headers; with ``connection: close`` the connection is closed after."""
        self.keep = self.keep and headers.get("connection", "") != "close"
        self.chunked = headers.get("transfer-encoding", "") == "chunked"
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Odd"
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        await self.stream.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def send(self, data: bytes) -> None:
        """Send a part of the body, in one piece or in pieces of the lengths that ``piece`` returns."""
        while data:
            length = len(data) if self.piece is None else self.piece()
            part, data = data[:length], data[length:]
            await self.stream.send(b"%x\r\n%s\r\n" % (len(part), part) if self.chunked else part)
            if self.pause_s:
                await anyio.sleep(self.pause_s)

    async def end(self) -> None:
        """Mark the end of the body."""
        if self.chunked:
            await self.stream.send(b"0\r\n\r\n")

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a whole response of known length."""
        await self.head(status, {"content-length": str(len(body)), **headers})
        await self.send(body)

    async def hang_up(self) -> None:
        """Close the connection normally, even if the body is incomplete."""
        self.keep = False
        await self.stream.aclose()

    async def reset(self) -> None:
        """Reset the connection: the other side gets "connection reset by peer"."""
        self.keep = False
        raw = self.stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.stream.aclose()


async def serve_connection(
    stream: SocketStream, handle: Callable[[Call], Awaitable[None]], idle_s: Callable[[], float]
) -> None:
    """Answer the requests of one connection; close it silently when it is idle for ``idle_s()``."""
    stream.extra(SocketAttribute.raw_socket).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = BufferedByteReceiveStream(stream)
    keep = True
    try:
        while keep:
            with anyio.move_on_after(idle_s()):
                head = await reader.receive_until(b"\r\n\r\n", _MAX_HEAD_BYTES)
                call = await _read_call(head, reader, stream)
                keep = False
            if keep:
                return
            await handle(call)
            keep = call.keep
    except _DISCONNECTED:
        return
    finally:
        # Also when the server is stopped; otherwise the socket stays open until garbage collection.
        with anyio.CancelScope(shield=True):
            await stream.aclose()


async def _read_call(head: bytes, reader: BufferedByteReceiveStream, stream: SocketStream) -> Call:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    data = await reader.receive_exactly(int(headers.get("content-length", "0")))
    return Call(method, path, headers, data, stream)
