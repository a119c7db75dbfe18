"""Provider "openai": the Responses API through the official client, always streamed, nothing kept there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codetaste.llm.client import hidden_environment, http_client, key_of, silence
from codetaste.llm.connection import Answer, Connection
from codetaste.llm.wire.calls import call_ids
from codetaste.llm.wire.openai_errors import error_from
from codetaste.llm.wire.openai_responses import request_body, whole_reply
from codetaste.llm.wire.openai_responses_stream import Assembly

if TYPE_CHECKING:
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Reply, Request

BASE_URL = "https://api.openai.com/v1"
REQUEST_ID = "x-request-id"
_HOST = "api.openai.com"


class OpenAIModel:
    """A model behind the Responses API.

    Args:
        model_id: what the config calls this model.
        model: the provider's name for it.
        api_key: held in memory only.
        base_url: of the provider, or of anything that speaks its protocol, as a rule with ``/v1`` at its end.
        timeout_s: what one call may take in all.
    """

    def __init__(
        self, model_id: str, model: str, *, api_key: str, base_url: str = BASE_URL, timeout_s: float = 1800.0
    ) -> None:
        self._id, self._model, self._key = model_id, model, api_key
        self._standard = standard_options(base_url)
        self._connection = openai_connection(api_key, base_url, timeout_s)

    @classmethod
    def from_config(cls, config: ModelConfig) -> OpenAIModel:
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
        taken = call_ids(request)
        answer = Answer(
            assembly=partial(Assembly, secret=self._key, taken=taken),
            whole=partial(whole_reply, secret=self._key, taken=taken),
            refusal=partial(error_from, secret=self._key),
            request_id=REQUEST_ID,
        )
        body = {**self._standard, **request_body(request, self._model)}
        return await self._connection.ask("/responses", body, answer)

    async def recall(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider keeps no record to ask
        """Return None: the provider does not answer twice."""
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()


def standard_options(base_url: str) -> dict[str, str]:
    """Return what is asked of OpenAI itself unless the options say otherwise: its standard prices.

    Without it, the settings of a project may make all its calls dearer, and nobody here would know.
    """
    return {"service_tier": "default"} if urlsplit(base_url).hostname == _HOST else {}


def openai_connection(api_key: str, base_url: str, timeout_s: float) -> Connection:
    """Connect through the official client; without a key, none is sent.

    Args:
        api_key: the key, or "" for a server that wants none.
        base_url: where the protocol's paths begin.
        timeout_s: what one call may take in all.
    """
    with hidden_environment("OPENAI_"):
        from openai import AsyncOpenAI, AsyncStream, Omit  # noqa: PLC0415 - heavy

        client = AsyncOpenAI(
            api_key=api_key or "none",
            base_url=base_url,
            timeout=silence(timeout_s),
            max_retries=0,
            http_client=http_client(base_url, timeout_s),
        )
    return Connection(
        client,
        AsyncStream[object],
        headers={} if api_key else {"Authorization": Omit()},
        secret=api_key,
        timeout_s=timeout_s,
    )
