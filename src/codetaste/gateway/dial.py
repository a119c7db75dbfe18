"""A plain HTTP/1.1 connection for one request: no TLS, no pool, h11 directly on the socket.

Every layer delays the agent, so head and body are sent together and no other protocol is tried.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import h11

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

_READ_BYTES = 64 * 1024
_HEAD_BYTES = 100 * 1024
"""Of the head of an answer."""
_NEXT_S = 2.0
"""How long one address of several is tried before the next one."""


class PlainConnector:
    """Makes connections to one server.

    Args:
        host: its name, or its address.
        port: where it listens.
        timeout_s: how long a connection may take to come about.
    """

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._host, self._port, self._timeout_s = host, port, timeout_s
        self._numeric = _numeric(host, port)
        self._worked: _Address | None = None

    async def connect(self) -> PlainConnection:
        """Return a connection that nothing was sent on.

        Raises:
            OSError: there is none; TimeoutError where it took too long.
        """
        with anyio.fail_after(self._timeout_s):
            found = [self._numeric] if self._numeric else await _addresses(self._host, self._port)
            found.sort(key=lambda address: address != self._worked)
            for address in found[:-1]:
                try:
                    with anyio.fail_after(_NEXT_S):
                        return await self._connected(address)
                except OSError:
                    continue
            return await self._connected(found[-1])

    async def _connected(self, address: _Address) -> PlainConnection:
        family, place = address
        raw = socket.socket(family, socket.SOCK_STREAM)
        try:
            raw.setblocking(False)  # noqa: FBT003 - its only argument
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.connect_ex(place)
            await anyio.wait_writable(raw)
            _check(raw.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        except BaseException:
            raw.close()
            raise
        self._worked = address
        return PlainConnection(raw)


class PlainConnection:
    """A connection that is there, for one request."""

    def __init__(self, raw: socket.socket) -> None:
        self._raw = raw
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        self._read_s = 0.0

    async def post(
        self,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        content: bytes,
        quiet_s: Mapping[str, float],
    ) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Send a request, and return the status and the headers of its answer.

        Raises:
            OSError: the connection was lost; TimeoutError where the server was silent for too long.
            h11.RemoteProtocolError: the answer is no HTTP.
        """
        self._read_s = quiet_s["read"]
        request = h11.Request(method=b"POST", target=target, headers=[*headers])
        pieces = [request, h11.Data(data=content), h11.EndOfMessage()]
        data = b"".join(self._http.send(piece) or b"" for piece in pieces)
        # A server may answer without having read all, and hang up then.
        with suppress(ConnectionError):
            await self._send(data, quiet_s["write"])
        while isinstance(event := await self._event(), h11.InformationalResponse):
            pass
        if not isinstance(event, h11.Response):
            raise ConnectionError("the server gave no answer")
        return event.status_code, [*event.headers]

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body of the answer as it comes; raises what ``post`` does."""
        while isinstance(event := await self._event(), h11.Data):
            yield bytes(event.data)

    async def aclose(self) -> None:
        """Close the connection."""
        self._raw.close()

    async def _send(self, data: bytes, timeout_s: float) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[self._raw.send(left) :]
            except BlockingIOError:
                with anyio.fail_after(timeout_s):
                    await anyio.wait_writable(self._raw)

    async def _event(self) -> h11.Event | type[h11.PAUSED]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self._receive()
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise ConnectionError("the server hung up without an answer")
            self._http.receive_data(data)
        return event  # type: ignore[return-value]  # that one is dealt with

    async def _receive(self) -> bytes:
        while True:
            # Waited for each time, so that a server that says much leaves others their turn.
            with anyio.fail_after(self._read_s):
                await anyio.wait_readable(self._raw)
            try:
                return self._raw.recv(_READ_BYTES)
            except BlockingIOError:
                continue


_Address = tuple[int, "tuple[str | int | bytes, ...]"]


def _numeric(host: str, port: int) -> _Address | None:
    try:
        family, _, _, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )[0]
    except OSError:
        return None
    return family, place


async def _addresses(host: str, port: int) -> list[_Address]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, place) for family, _, _, _, place in found]


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))
