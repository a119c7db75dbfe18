"""A model at a provider, over HTTP: what its protocol says is told, the rest is the same for all of them."""

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


def _none(_request: Request) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one protocol is spoken, from ``wire/``.

    Attributes:
        path: where requests go, below the address.
        body: writes a request to the model of this name.
        assembly: puts a stream together.
        whole: reads an answer that came in one piece.
        refusal: turns a status that is no success, its body and its headers into an error.
        request_id: the header with the provider's name for a request.
        headers: what a request has beside those of every request.
    """

    path: str
    body: Callable[[Request, str], Mapping[str, Any]]
    assembly: Callable[..., Assembly]
    whole: Callable[..., Reply]
    refusal: Callable[..., ModelError]
    request_id: str
    headers: Callable[[Request], Mapping[str, str]] = _none


class RemoteModel:
    """A model behind a connection; ``model_id`` is what the config calls it, ``model`` its provider."""

    def __init__(self, model_id: str, model: str, dialect: Dialect, connection: Connection) -> None:
        self._id, self._model = model_id, model
        self._dialect, self._connection = dialect, connection

    @property
    def id(self) -> str:
        """What the config calls this model."""
        return self._id

    @property
    def remembers(self) -> bool:
        """The provider keeps no record that can be asked."""
        return False

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - no protocol has a name for it
        """Ask once and read the reply to its end.

        Raises:
            ModelError: see the tree; ``unbilled`` where the provider certainly did not begin a reply.
        """
        dialect, taken = self._dialect, call_ids(request)
        answer = Answer(
            assembly=partial(dialect.assembly, taken=taken),
            whole=partial(dialect.whole, taken=taken),
            refusal=dialect.refusal,
            request_id=dialect.request_id,
        )
        body, headers = dialect.body(request, self._model), dialect.headers(request)
        return await self._connection.ask(dialect.path, body, answer, headers=headers)

    async def recall(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider keeps no record to ask
        """Return None: the provider does not answer twice."""
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()
