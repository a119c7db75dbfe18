"""One request's HTTP connection to a provider: opened before anything is paid, used once, then closed.

It bypasses the official SDK clients, because an agent's own client has built the request already. TLS
connections are pooled; without TLS each request has its own connection (``llm/providers/sdk_client.py`` says
why).
"""

from __future__ import annotations

import os
import socket
import time
import zlib
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, cast

import anyio
import h11
import httpcore2

from codetaste.errors import MalformedReply, ModelUnavailable
from codetaste.llm.providers.connection import describe_exception

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from ssl import SSLContext


_KEPT, _KEPT_S = 32, 5.0
"""How many connections are kept behind TLS, and for how long without a request."""

_FRESH_S = 1.0
"""How old a connection may be that has had no request yet: its server may think that none comes."""

_LATE = (httpcore2.TimeoutException, TimeoutError)

_LOST = (*_LATE, httpcore2.NetworkError, httpcore2.ProtocolError, OSError, h11.ProtocolError)

_UNSENT = (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.PoolTimeout)

_PLAIN, _DEFLATED = ("", "identity"), ("gzip", "x-gzip", "deflate")

_ANY_HEAD = 47
"""Tells zlib to find out by itself which of its formats it reads."""


class ProviderConnector:
    """The way to one provider.

    Args:
        origin: where it is.
        tls: what is trusted, None where the provider is spoken to without TLS.
        connect_s: how long a connection may take to come about.
    """

    def __init__(self, origin: httpcore2.Origin, tls: SSLContext | None, connect_s: float) -> None:
        # Slots bound the requests in flight, so the pool needs no bound of its own.
        self._way: PlainConnector | _Pool = (
            PlainConnector(origin.host.decode("ascii"), origin.port, connect_s) if tls is None else _Pool(tls)
        )

    async def connect(self) -> ProviderConnection:
        """Return a line; where connections are not kept, a new one is made now.

        Raises:
            ModelUnavailable: the provider cannot be reached; nothing was billed.
        """
        try:
            return ProviderConnection(await self._way.connect(), ages=isinstance(self._way, PlainConnector))
        except OSError as error:
            raise _lost(error, unsent=True) from error

    async def aclose(self) -> None:
        """Close what is kept."""
        if isinstance(self._way, _Pool):
            await self._way.pool.aclose()


class ProviderConnection:
    """A line for one request.

    Attributes:
        status: of the answer.
        headers: of the answer, names in lower case.
    """

    def __init__(self, way: PlainConnection | _Pooled, *, ages: bool) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self._way, self._ages, self._made_s = way, ages, time.monotonic()

    @property
    def usable(self) -> bool:
        """Whether it is young enough for a server to wait for a request on it."""
        return not self._ages or time.monotonic() - self._made_s < _FRESH_S

    async def post(
        self,
        url: httpcore2.URL,
        headers: Sequence[tuple[bytes, bytes]],
        content: bytes,
        quiet_s: Mapping[str, float],
    ) -> None:
        """Send a request, and return when ``status`` and ``headers`` of its answer are there.

        Args:
            url: where to.
            headers: all of them but the length.
            content: the body.
            quiet_s: the seconds that ``connect``, ``write``, ``read`` and ``pool`` may take.

        Raises:
            ModelUnavailable: there is no answer; ``unbilled`` where the request was certainly never sent.
        """
        headers = [*headers, (b"content-length", b"%d" % len(content))]
        try:
            if isinstance(self._way, PlainConnection):
                self.status, found = await self._way.post(url.target, headers, content, quiet_s)
            else:
                self.status, found = await self._way.post(url, headers, content, quiet_s)
        except _LOST as error:
            raise _lost(error, unsent=isinstance(error, _UNSENT)) from error
        self.headers = {name.decode("latin-1").lower(): text.decode("latin-1") for name, text in found}

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body of the answer as it comes.

        Raises:
            ModelUnavailable: it broke off, or no more came.
            MalformedReply: it is packed in a way that nobody asked for.
        """
        unpack = self._unpacking()
        try:
            async with aclosing(self._way.chunks()) as pieces:
                async for piece in pieces:
                    yield piece if unpack is None else unpack.decompress(piece)
        except _LATE as error:
            raise ModelUnavailable("the provider fell silent in the middle of the reply") from error
        except _LOST as error:
            raise ModelUnavailable(
                f"the connection was lost in the middle of the reply ({describe_exception(error)})"
            ) from error
        except zlib.error as error:
            raise MalformedReply(f"the reply cannot be unpacked ({error})") from error

    async def aclose(self) -> None:
        """Give the line up, wherever it is."""
        await self._way.aclose()

    def _unpacking(self) -> zlib._Decompress | None:
        """Return what unpacks the body: some servers pack theirs whatever they are told."""
        packing = self.headers.get("content-encoding", "").strip().lower()
        if packing in _PLAIN:
            return None
        if packing not in _DEFLATED:
            raise MalformedReply(f"the reply is packed by {packing[:40]}, which was not asked for")
        return zlib.decompressobj(_ANY_HEAD)


class _Pool:
    """Connections that are kept; a request takes one when it is sent."""

    def __init__(self, tls: SSLContext) -> None:
        self.pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls, max_connections=None, max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_S
        )

    async def connect(self) -> _Pooled:
        return _Pooled(self.pool)


class _Pooled:
    def __init__(self, pool: httpcore2.AsyncConnectionPool) -> None:
        self._pool = pool
        self._answer: httpcore2.Response | None = None

    async def post(
        self,
        url: httpcore2.URL,
        headers: Sequence[tuple[bytes, bytes]],
        content: bytes,
        quiet_s: Mapping[str, float],
    ) -> tuple[int, list[tuple[bytes, bytes]]]:
        more = {"timeout": quiet_s}
        request = httpcore2.Request(b"POST", url, headers=[*headers], content=content, extensions=more)
        self._answer = await self._pool.handle_async_request(request)
        return self._answer.status, self._answer.headers

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        if self._answer is None:
            return
        # What it is made of is typed as less.
        pieces = cast("AsyncGenerator[bytes, None]", aiter(self._answer.stream))  # type: ignore[arg-type]
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        if self._answer is not None:
            await self._answer.aclose()


def _lost(error: Exception, *, unsent: bool) -> ModelUnavailable:
    """Return the error for a request without an answer; unbilled when it was certainly never sent."""
    what = "cannot be reached" if unsent else "was lost before it answered"
    return ModelUnavailable(f"the provider {what} ({describe_exception(error)})", unbilled=unsent)


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
