"""HTTP requests to a provider, on the connections of httpcore.

The official SDK clients are bypassed, because an agent's own client has built the request already. TLS
connections are kept for further requests; without TLS each request has its own connection
(``llm/providers/sdk_client.py`` says why).
"""

from __future__ import annotations

import zlib
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

import httpcore2

from codetaste.errors import MalformedReply, ModelUnavailable
from codetaste.llm.providers.remote import connection_error, describe_exception

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from ssl import SSLContext


_MAX_IDLE, _MAX_IDLE_S = 32, 5.0
"""How many idle TLS connections are kept, and for how long."""

_UNSENT = (httpcore2.ConnectError, httpcore2.ConnectTimeout, httpcore2.PoolTimeout)

_LOST = (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError, OSError)

_PLAIN, _DEFLATED = ("", "identity"), ("gzip", "x-gzip", "deflate")

_ANY_FORMAT = 47
"""Makes zlib detect which of its formats it reads."""


class ProviderConnections:
    """The connections to one provider.

    Args:
        tls: the trusted CAs; None for a provider without TLS.
    """

    def __init__(self, tls: SSLContext | None) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls,
            # Permits bound the requests in flight, so the pool needs no limit of its own.
            max_connections=None,
            max_keepalive_connections=0 if tls is None else _MAX_IDLE,
            keepalive_expiry=_MAX_IDLE_S,
        )

    async def post(
        self,
        url: httpcore2.URL,
        headers: Sequence[tuple[bytes, bytes]],
        content: bytes,
        timeouts_s: Mapping[str, float],
    ) -> ProviderResponse:
        """Send a request, and return the response when its status and headers have arrived.

        Args:
            url: the address.
            headers: all headers but the length.
            content: the body.
            timeouts_s: the seconds that ``connect``, ``write``, ``read`` and ``pool`` may take.

        Raises:
            ModelUnavailable: there is no response; ``unbilled`` if the request was certainly never sent.
        """
        headers = [*headers, (b"content-length", b"%d" % len(content))]
        request = httpcore2.Request(
            b"POST", url, headers=headers, content=content, extensions={"timeout": timeouts_s}
        )
        try:
            return ProviderResponse(await self._pool.handle_async_request(request))
        except _LOST as error:
            raise connection_error(error, unsent=isinstance(error, _UNSENT)) from error

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class ProviderResponse:
    """The response to one request.

    Attributes:
        status: its status code.
        headers: its headers, names in lower case.
    """

    def __init__(self, response: httpcore2.Response) -> None:
        self._response, self.status = response, response.status
        self.headers = {
            name.decode("latin-1").lower(): text.decode("latin-1") for name, text in response.headers
        }

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives.

        Raises:
            ModelUnavailable: it broke off, or no more arrived in time.
            MalformedReply: it is compressed in an unknown way; no compression was requested.
        """
        # Some servers compress the body although no compression was requested.
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding not in _PLAIN + _DEFLATED:
            raise MalformedReply(f"the reply is compressed by {encoding[:40]}, which was not requested")
        decompressor = None if encoding in _PLAIN else zlib.decompressobj(_ANY_FORMAT)
        # httpcore types the stream as an iterator only.
        pieces = cast("AsyncGenerator[bytes, None]", aiter(self._response.stream))  # type: ignore[arg-type]
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece if decompressor is None else decompressor.decompress(piece)
        except httpcore2.TimeoutException as error:
            raise ModelUnavailable("the provider stopped sending in the middle of the reply") from error
        except _LOST as error:
            raise ModelUnavailable(
                f"the connection was lost in the middle of the reply ({describe_exception(error)})"
            ) from error
        except zlib.error as error:
            raise MalformedReply(f"the reply cannot be decompressed ({error})") from error

    async def aclose(self) -> None:
        """Release the connection, whatever was read."""
        await self._response.aclose()
