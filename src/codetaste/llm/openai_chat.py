"""Provider "openai-chat": Chat Completions through the official client, for all who speak them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codetaste.llm.client import key_of
from codetaste.llm.connection import Answer
from codetaste.llm.openai import BASE_URL, REQUEST_ID, openai_connection, standard_options
from codetaste.llm.wire.calls import call_ids
from codetaste.llm.wire.openai_chat import CAPS, request_body, whole_reply
from codetaste.llm.wire.openai_chat_stream import Assembly
from codetaste.llm.wire.openai_errors import error_from

if TYPE_CHECKING:
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Reply, Request

_NEW_CAP_ONLY = (".openai.com", ".azure.com")
"""Hosts that take the newer name for the cap on a reply, and refuse both together."""


class OpenAIChatModel:
    """A model behind Chat Completions.

    Args:
        model_id: what the config calls this model.
        model: the provider's name for it.
        api_key: held in memory only; "" for a server that wants none.
        base_url: of anything that speaks the protocol, as a rule with ``/v1`` at its end.
        timeout_s: what one call may take in all.
    """

    def __init__(
        self, model_id: str, model: str, *, api_key: str, base_url: str = BASE_URL, timeout_s: float = 1800.0
    ) -> None:
        self._id, self._model, self._key = model_id, model, api_key
        host = urlsplit(base_url).hostname or ""
        self._caps = CAPS[1:] if host.endswith(_NEW_CAP_ONLY) else CAPS
        self._standard = standard_options(base_url)
        self._connection = openai_connection(api_key, base_url, timeout_s)

    @classmethod
    def from_config(cls, config: ModelConfig) -> OpenAIChatModel:
        """Make the model of a ``[[models]]`` entry, with the key from its environment variable.

        Raises:
            ConfigError: the variable is not set, or holds no key.
        """
        return cls(
            config.id,
            config.model,
            api_key=key_of(config),
            base_url=config.base_url or BASE_URL,
            timeout_s=config.timeout,
        )

    @property
    def id(self) -> str:
        """What the config calls this model."""
        return self._id

    @property
    def remembers(self) -> bool:
        """The provider keeps no record that can be asked."""
        return False

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - the protocol has no name for it
        """Ask once and read the reply to its end.

        Raises:
            ModelError: see the tree; ``unbilled`` where the provider certainly did not begin a reply.
        """
        body = {**self._standard, **request_body(request, self._model, caps=self._caps)}
        taken = call_ids(request)
        answer = Answer(
            assembly=partial(Assembly, secret=self._key, taken=taken),
            whole=partial(whole_reply, secret=self._key, taken=taken),
            refusal=partial(error_from, secret=self._key),
            request_id=REQUEST_ID,
        )
        return await self._connection.ask("/chat/completions", body, answer)

    async def recall(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider keeps no record to ask
        """Return None: the provider does not answer twice."""
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()
