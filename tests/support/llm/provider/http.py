"""HTTP/1.1 on the loopback, byte by byte: what a server says, in which pieces, and how it breaks off."""

from __future__ import annotations

import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

_HEAD = 65536
_GONE = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    OSError,
)


@dataclass
class Call:
    """One request as it came, and the connection to answer it on.

    ``piece`` gives the length of the next piece of a body, where it is not sent as it falls; ``keep`` says
    whether the connection stays open after the answer; ``finished`` that the answer is whole.
    """

    method: str
    path: str
    headers: dict[str, str]
    data: bytes
    wire: SocketStream
    piece: Callable[[], int] | None = None
    pause_s: float = 0.0
    keep: bool = True
    chunked: bool = field(default=False, init=False)

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and the headers; a header ``connection: close`` means what it says."""
        self.keep = self.keep and headers.get("connection", "") != "close"
        self.chunked = headers.get("transfer-encoding", "") == "chunked"
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Odd"
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        await self.wire.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def send(self, data: bytes) -> None:
        """Send a part of the body, in one piece or in those that ``piece`` asks for."""
        while data:
            length = len(data) if self.piece is None else self.piece()
            part, data = data[:length], data[length:]
            await self.wire.send(b"%x\r\n%s\r\n" % (len(part), part) if self.chunked else part)
            if self.pause_s:
                await anyio.sleep(self.pause_s)

    async def end(self) -> None:
        """Say that the body is whole."""
        if self.chunked:
            await self.wire.send(b"0\r\n\r\n")

    async def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a whole answer of known length."""
        await self.head(status, {"content-length": str(len(body)), **headers})
        await self.send(body)

    async def hang_up(self) -> None:
        """Close the connection in good order, whatever was promised."""
        self.keep = False
        await self.wire.aclose()

    async def reset(self) -> None:
        """Break the connection: the other side gets "connection reset by peer"."""
        self.keep = False
        raw = self.wire.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.wire.aclose()


async def attend(
    wire: SocketStream, answer: Callable[[Call], Awaitable[None]], idle_s: Callable[[], float]
) -> None:
    """Answer the requests of one connection; one that is idle for ``idle_s()`` is closed without a word."""
    wire.extra(SocketAttribute.raw_socket).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = BufferedByteReceiveStream(wire)
    keep = True
    try:
        while keep:
            with anyio.move_on_after(idle_s()):
                head = await reader.receive_until(b"\r\n\r\n", _HEAD)
                call = await _call(head, reader, wire)
                keep = False
            if keep:
                return
            await answer(call)
            keep = call.keep
    except _GONE:
        return
    finally:
        # Even when the server is stopped, or the socket stays open until the garbage is collected.
        with anyio.CancelScope(shield=True):
            await wire.aclose()


async def _call(head: bytes, reader: BufferedByteReceiveStream, wire: SocketStream) -> Call:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    data = await reader.receive_exactly(int(headers.get("content-length", "0")))
    return Call(method, path, headers, data, wire)
