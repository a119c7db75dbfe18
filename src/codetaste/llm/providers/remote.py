"""``RemoteModel``: a model behind an HTTP connection, parametrised by the codec of its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from codetaste.llm.providers.connection import ReplyDecoder
from codetaste.llm.wire.common.tool_calls import call_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.errors import ModelError
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.providers.connection import Connection, StreamDecoder


def _no_headers(_request: Request) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class ClientCodec:
    """The client side of one protocol, from ``wire/``.

    Attributes:
        path: of requests, below the base URL.
        request_body: encodes a request to the model of this name.
        stream_decoder: returns the decoder of a streamed reply.
        whole_reply: decodes a reply that was not streamed.
        error_from: turns an error status, its body and its headers into an exception.
        request_id_header: the header with the provider's request id.
        headers: additional headers for a request.
    """

    path: str
    request_body: Callable[[Request, str], Mapping[str, Any]]
    stream_decoder: Callable[..., StreamDecoder]
    whole_reply: Callable[..., Reply]
    error_from: Callable[..., ModelError]
    request_id_header: str
    headers: Callable[[Request], Mapping[str, str]] = _no_headers


class RemoteModel:
    """A model behind a connection; ``model_id`` is its id in the config, ``model`` the provider's name."""

    def __init__(self, model_id: str, model: str, codec: ClientCodec, connection: Connection) -> None:
        self._id, self._model = model_id, model
        self._codec, self._connection = codec, connection

    @property
    def id(self) -> str:
        """The model's id in the config."""
        return self._id

    @property
    def has_ledger(self) -> bool:
        """False: the provider has no record of calls to query."""
        return False

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - no protocol has a field for it
        """Send the request once and read the complete reply.

        Raises:
            ModelError: see ``errors``; ``unbilled`` if the provider certainly did not begin a reply.
        """
        codec, taken = self._codec, call_ids(request)
        answer = ReplyDecoder(
            stream_decoder=partial(codec.stream_decoder, taken=taken),
            whole_reply=partial(codec.whole_reply, taken=taken),
            error_from=codec.error_from,
            request_id_header=codec.request_id_header,
        )
        body, headers = codec.request_body(request, self._model), codec.headers(request)
        return await self._connection.ask(codec.path, body, answer, headers=headers)

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider has no record
        """Return None: the provider has no record of earlier calls."""
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()
