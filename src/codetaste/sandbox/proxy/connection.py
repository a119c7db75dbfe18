"""One end of a connection of the filtering proxy: h11 over a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
import h11

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio.abc import SocketStream

CHUNK_BYTES: Final = 64 * 1024
HEAD_BYTES: Final = 32 * 1024
"""Limit of an incomplete head, and of one read: so a head has at most twice as many bytes."""
PEER_ERRORS: Final = (
    OSError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    h11.ProtocolError,
)
"""Errors that a peer can cause: each ends its connection only."""
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization")
) | {b"te", b"trailer", b"upgrade", b"http2-settings"}
_BAD_REQUEST = 400


class HttpPeer:
    """HTTP/1.1 events over ``stream``; our role is ``h11.SERVER`` towards a client, else ``h11.CLIENT``."""

    def __init__(self, stream: SocketStream, role: type[h11.CLIENT | h11.SERVER]) -> None:
        self.stream = stream
        self.http = h11.Connection(role, max_incomplete_event_size=HEAD_BYTES)

    async def next_event(self) -> h11.Event | type[h11.PAUSED]:
        """Return the next event."""
        while True:
            event = self.http.next_event()
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value] # all others
            try:
                data = await self.stream.receive(HEAD_BYTES)
            except anyio.EndOfStream:
                data = b""
            self.http.receive_data(data)

    async def send(self, event: h11.Event) -> None:
        """Write ``event``."""
        data = self.http.send(event)
        if data:
            await self.stream.send(data)

    async def read_request(self) -> h11.Request | None:
        """Read a request head; None, after an error response, if there is none."""
        try:
            event = await self.next_event()
        except h11.RemoteProtocolError as fault:
            await self.send_text(_BAD_REQUEST, f"codetaste: {fault}")
            return None
        return event if isinstance(event, h11.Request) else None

    async def send_text(self, status: int, text: str) -> None:
        """Respond with a line of text, unless a response was begun, and close the connection."""
        if self.http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        body = text.encode(errors="replace") + b"\n"
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await self.send(h11.Response(status_code=status, headers=headers))
        await self.send(h11.Data(data=body))
        await self.send(h11.EndOfMessage())
        await self.stream.send_eof()

    async def accept_connect(self) -> bytes:
        """Accept a CONNECT, and return the bytes that were sent after it."""
        await self.next_event()
        await self.send(h11.Response(status_code=200, headers=[]))
        return self.http.trailing_data[0]

    async def forward_body(self, sink: HttpPeer, on_activity: Callable[[], None]) -> None:
        """Forward the rest of a message."""
        while True:
            event = await self.next_event()
            on_activity()
            if isinstance(event, h11.Data):
                await sink.send(h11.Data(data=event.data))
            elif isinstance(event, h11.EndOfMessage):
                await sink.send(h11.EndOfMessage())
                return
            else:
                raise h11.RemoteProtocolError("the message is incomplete")

    async def forward_response(self, sink: HttpPeer, on_activity: Callable[[], None]) -> None:
        """Forward a response, and informational responses before it."""
        while True:
            event = await self.next_event()
            on_activity()
            if isinstance(event, h11.InformationalResponse):
                await sink.send(h11.InformationalResponse(status_code=event.status_code, headers=[]))
            elif isinstance(event, h11.Response):
                headers = [*_end_to_end(event.headers), (b"connection", b"close")]
                await sink.send(
                    h11.Response(status_code=event.status_code, headers=headers, reason=event.reason)
                )
                await self.forward_body(sink, on_activity)
                return
            else:
                raise h11.RemoteProtocolError("there was no response")


def end_to_end_request(
    request: h11.Request, target: bytes, added: Sequence[tuple[bytes, bytes]] = ()
) -> h11.Request:
    """Return ``request`` without headers that concern only this connection."""
    headers = [*_end_to_end(request.headers), (b"connection", b"close"), *added]
    return h11.Request(method=request.method, target=target, headers=headers)


def _end_to_end(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    named = {
        part.strip().lower() for name, value in headers if name == b"connection" for part in value.split(b",")
    }
    # Headers that frame the message are never dropped, even if named there.
    dropped = _HOP_BY_HOP | (named - {b"host", b"content-length", b"transfer-encoding"})
    if any(name == b"transfer-encoding" for name, _ in headers):
        dropped |= {b"content-length"}
    return [(name, value) for name, value in headers if name not in dropped]
