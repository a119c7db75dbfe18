"""One request's connection to a provider: made ready before anything is paid, used once, and closed.

It stands below the official clients: a program's request is passed on with few of the layers that its own
client has put around it already. Behind TLS connections are kept; elsewhere each request has one of its own
(``llm/client.py`` says why).
"""

from __future__ import annotations

import time
import zlib
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

import httpcore2

from codetaste.errors import MalformedReply, ModelUnavailable
from codetaste.gateway.dial import dial
from codetaste.llm.connection import named

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from ssl import SSLContext

_KEPT, _KEPT_S = 32, 5.0
"""How many connections are kept behind TLS, and for how long without a request."""
_FRESH_S = 1.0
"""How old a connection may be that has had no request yet: its server may think that none comes."""
_LOST = (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException)
_UNSENT = (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.PoolTimeout)
_NAMELESS, _DEFLATED = ("", "identity"), ("gzip", "x-gzip", "deflate")
_ANY_HEAD = 47
"""Tells zlib to find out by itself which of its formats it reads."""


class Lines:
    """The way to one provider.

    Args:
        origin: where it is.
        tls: what is trusted, None where the provider is spoken to without TLS.
        connect_s: how long a connection may take to come about.
    """

    def __init__(self, origin: httpcore2.Origin, tls: SSLContext | None, connect_s: float) -> None:
        self._origin, self._connect_s = origin, connect_s
        # Slots bound the requests in flight, so the pool needs no bound of its own.
        self._pool = None if tls is None else _pool(tls)

    async def ready(self) -> Line:
        """Return a line; where connections are not kept, a new one is made now.

        Raises:
            ModelUnavailable: the provider cannot be reached; nothing was billed.
        """
        if self._pool is not None:
            return Line(self._pool)
        host, port = self._origin.host.decode("ascii"), self._origin.port
        try:
            stream = await dial(host, port, self._connect_s)
        except _LOST as error:
            raise _lost(error) from error
        return Line(httpcore2.AsyncHTTP11Connection(self._origin, stream), own=True)

    async def aclose(self) -> None:
        """Close what is kept."""
        if self._pool is not None:
            await self._pool.aclose()


class Line:
    """A line for one request.

    Attributes:
        status: of the answer.
        headers: of the answer, names in lower case.
    """

    def __init__(
        self, way: httpcore2.AsyncConnectionPool | httpcore2.AsyncHTTP11Connection, *, own: bool = False
    ) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self._way, self._own = way, own
        self._made_s = time.monotonic()
        self._answer: httpcore2.Response | None = None

    @property
    def fresh(self) -> bool:
        """Whether it is young enough for a server to wait for a request on it."""
        return not self._own or time.monotonic() - self._made_s < _FRESH_S

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
        length = (b"content-length", b"%d" % len(content))
        request = httpcore2.Request(
            b"POST", url, headers=[*headers, length], content=content, extensions={"timeout": quiet_s}
        )
        try:
            self._answer = await self._way.handle_async_request(request)
        except _LOST as error:
            raise _lost(error) from error
        self.status = self._answer.status
        self.headers = {
            name.decode("latin-1").lower(): text.decode("latin-1") for name, text in self._answer.headers
        }

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body of the answer as it comes.

        Raises:
            ModelUnavailable: it broke off, or no more came.
            MalformedReply: it is packed in a way that nobody asked for.
        """
        if self._answer is None:
            return
        unpack = self._unpacking()
        try:
            async with aclosing(_pieces(self._answer)) as pieces:
                async for piece in pieces:
                    yield piece if unpack is None else unpack.decompress(piece)
        except httpcore2.TimeoutException as error:
            raise ModelUnavailable("the provider fell silent in the middle of the reply") from error
        except _LOST as error:
            raise ModelUnavailable(
                f"the connection was lost in the middle of the reply ({named(error)})"
            ) from error
        except zlib.error as error:
            raise MalformedReply(f"the reply cannot be unpacked ({error})") from error

    async def aclose(self) -> None:
        """Give the line up, wherever it is."""
        if self._answer is not None:
            await self._answer.aclose()
        if self._own:
            await cast("httpcore2.AsyncHTTP11Connection", self._way).aclose()

    def _unpacking(self) -> zlib._Decompress | None:
        """Return what unpacks the body: some servers pack theirs whatever they are told."""
        packing = self.headers.get("content-encoding", "").strip().lower()
        if packing in _NAMELESS:
            return None
        if packing not in _DEFLATED:
            raise MalformedReply(f"the reply is packed by {packing[:40]}, which was not asked for")
        return zlib.decompressobj(_ANY_HEAD)


def _pool(tls: SSLContext) -> httpcore2.AsyncConnectionPool:
    return httpcore2.AsyncConnectionPool(
        ssl_context=tls, max_connections=None, max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_S
    )


def _pieces(answer: httpcore2.Response) -> AsyncGenerator[bytes, None]:
    # What it is made of is typed as less.
    return cast("AsyncGenerator[bytes, None]", aiter(answer.stream))  # type: ignore[arg-type]


def _lost(error: Exception) -> ModelUnavailable:
    """Return the error for a request without an answer; unbilled when it was certainly never sent."""
    unsent = isinstance(error, _UNSENT)
    what = "cannot be reached" if unsent else "was lost before it answered"
    return ModelUnavailable(f"the provider {what} ({named(error)})", unbilled=unsent)
