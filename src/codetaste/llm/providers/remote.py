"""``RemoteModel``: a model behind an HTTP connection, with the codec of its protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.llm.providers.connection import SdkConnection
from codetaste.llm.providers.sdk_client import anthropic_client, api_key_for, openai_client
from codetaste.llm.wire.codecs import CLIENTS
from codetaste.llm.wire.common.tool_calls import call_ids

if TYPE_CHECKING:
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.wire.protocols import WireProtocol


def remote_model(protocol: WireProtocol, config: ModelConfig) -> RemoteModel:
    """Return the model of a ``[[models]]`` entry; its API key is held in memory only.

    Raises:
        ConfigError: the key is not set.
    """
    api_key = api_key_for(config)
    make_client = anthropic_client if protocol.name == "anthropic" else openai_client
    client = make_client(api_key, config.address, config.timeout, config.read_timeout)
    connection = SdkConnection(protocol, client, secret=api_key, timeout_s=config.timeout)
    return RemoteModel(config.id, config.model, protocol, connection, config.address)


class RemoteModel:
    """A model behind a connection.

    Args:
        model_id: its id in the config.
        model: the provider's name for it.
        protocol: of the provider.
        connection: to the provider.
        address: the base URL of the provider.
    """

    has_ledger = False

    def __init__(
        self, model_id: str, model: str, protocol: WireProtocol, connection: SdkConnection, address: str
    ) -> None:
        self.id, self._model = model_id, model
        self._codec, self._connection = CLIENTS[protocol.name], connection
        self._options, self._caps = protocol.options_at(address), protocol.caps_at(address)

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - no protocol has a field for it
        """Send the request once and read the complete reply.

        Raises:
            ModelError: see ``errors``; ``unbilled`` if the provider certainly did not begin a reply.
        """
        body = {**self._options, **self._codec.request_body(request, self._model, self._caps)}
        headers = self._codec.request_headers(request)
        return await self._connection.ask(body, headers=headers, taken=call_ids(request))

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider has no record
        """Return None: the provider has no record of earlier calls."""
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()
