"""``RemoteModel``: a model behind an HTTP connection, parametrised by the codec of its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from codetaste.llm.connection import Answer
from codetaste.llm.wire.calls import call_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.errors import ModelError
    from codetaste.llm.connection import Assembly, Connection
    from codetaste.llm.messages import Reply, Request


def _no_headers(_request: Request) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Dialect:
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
    body: Callable[[Request, str], Mapping[str, Any]]
    assembly: Callable[..., Assembly]
    whole: Callable[..., Reply]
    refusal: Callable[..., ModelError]
    request_id: str
    headers: Callable[[Request], Mapping[str, str]] = _no_headers


class RemoteModel:
    """A model behind a connection; ``model_id`` is its id in the config, ``model`` the provider's name."""

    def __init__(self, model_id: str, model: str, codec: Dialect, connection: Connection) -> None:
        self._id, self._model = model_id, model
        self._codec, self._connection = codec, connection

    @property
    def id(self) -> str:
        """The model's id in the config."""
        return self._id

    @property
    def remembers(self) -> bool:
        """False: the provider has no record of calls to query."""
        return False

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - no protocol has a field for it
        """Send the request once and read the complete reply.

        Raises:
            ModelError: see ``errors``; ``unbilled`` if the provider certainly did not begin a reply.
        """
        codec, taken = self._codec, call_ids(request)
        answer = Answer(
            assembly=partial(codec.assembly, taken=taken),
            whole=partial(codec.whole, taken=taken),
            refusal=codec.refusal,
            request_id=codec.request_id,
        )
        body, headers = codec.body(request, self._model), codec.headers(request)
        return await self._connection.ask(codec.path, body, answer, headers=headers)

    async def recall(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider has no record
        """Return None: the provider has no record of earlier calls."""
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()
