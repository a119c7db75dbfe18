"""Provider "anthropic": the Messages API through the official client, always streamed.

The client is told everything: it takes no key, address, header, proxy or tracing from the environment by
itself, and it retries nothing. What the protocol says is in ``wire/``; here is only the connection.
"""

from __future__ import annotations

import json
import os
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.errors import ConfigError, MalformedReply, ModelUnavailable
from codetaste.llm.wire.anthropic import error_from, error_in_stream, reply_from, request_body
from codetaste.llm.wire.anthropic_stream import Assembly
from codetaste.llm.wire.http import one_line, read_json

if TYPE_CHECKING:
    import ssl

    from anthropic import AsyncAnthropic, AsyncStream
    from httpx2 import Response

    from codetaste.errors import ModelError
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Reply, Request

BASE_URL = "https://api.anthropic.com"
KEY_ENV = "ANTHROPIC_API_KEY"
CONNECT_S = 30.0
SILENCE_S = 300.0
"""How long a provider may say nothing at all; a live stream has a ping every few seconds."""
_CLOSING_S = 5.0


class AnthropicModel:
    """A model behind the Messages API.

    Args:
        model_id: what the config calls this model.
        model: the provider's name for it.
        api_key: held in memory only.
        base_url: of the provider, or of anything that speaks its protocol.
        timeout_s: what one call may take in all.
    """

    def __init__(
        self, model_id: str, model: str, *, api_key: str, base_url: str = BASE_URL, timeout_s: float = 1800.0
    ) -> None:
        self._id, self._model, self._key = model_id, model, api_key
        self._timeout_s = timeout_s
        self._client = _client(api_key, base_url, timeout_s)

    @classmethod
    def from_config(cls, config: ModelConfig) -> AnthropicModel:
        """Make the model of a ``[[models]]`` entry, with the key from its environment variable.

        Raises:
            ConfigError: the variable is not set, or holds no key.
        """
        name = config.api_key_env or KEY_ENV
        key = os.environ.get(name, "").strip()
        if not key:
            raise ConfigError(f"models[{config.id}].api_key_env: the environment variable {name} is not set")
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ConfigError(f"models[{config.id}].api_key_env: what {name} holds is no API key")
        return cls(
            config.id,
            config.model,
            api_key=key,
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
        with anyio.move_on_after(self._timeout_s) as scope:
            return await self._complete(request)
        if scope.cancelled_caught:
            raise ModelUnavailable(f"no whole reply within {self._timeout_s:.0f} s")
        raise AssertionError("unreachable")

    async def recall(self, call: str) -> Reply | None:  # noqa: ARG002 - the provider keeps no record to ask
        """Return None: the provider does not answer twice."""
        return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _complete(self, request: Request) -> Reply:
        import anthropic  # noqa: PLC0415 - heavy

        try:
            stream = await self._post(request)
        except anthropic.APIStatusError as error:
            raise self._refusal(error) from None
        except anthropic.APIConnectionError as error:
            raise _lost(error) from error
        try:
            return await self._read(stream.response)
        finally:
            with anyio.move_on_after(_CLOSING_S, shield=True):
                await stream.close()

    async def _post(self, request: Request) -> AsyncStream[object]:
        from anthropic import AsyncStream  # noqa: PLC0415 - heavy

        headers = {"content-type": "application/json"}
        if betas := request.options.get("betas"):
            headers["anthropic-beta"] = ",".join(betas)
        # Written here and not by the client: what is priced is what is sent, and raw blocks stay as they are.
        text = json.dumps(request_body(request, self._model), ensure_ascii=False, separators=(",", ":"))
        return await self._client.post(
            "/v1/messages",
            cast_to=object,
            content=text.encode("utf-8", "replace"),
            options={"headers": headers},
            stream=True,
            stream_cls=AsyncStream[object],
        )

    async def _read(self, response: Response) -> Reply:
        """Read a response that is a success, an event stream or one whole message."""
        import httpx2  # noqa: PLC0415 - heavy

        request_id = response.headers.get("request-id", "")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            if kind == "text/event-stream":
                return await self._read_stream(response, request_id)
            body = (await response.aread()).decode("utf-8", "replace")
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise ModelUnavailable(
                f"the connection was lost in the middle of the reply ({_named(error)})"
            ) from error
        except UnicodeDecodeError as error:
            raise MalformedReply("the reply is not UTF-8") from error
        if kind != "application/json":
            raise MalformedReply(
                f"not a reply but {kind or 'nothing known'}: {one_line(body, secret=self._key)}"
            )
        message = read_json(body)
        if not isinstance(message, dict) or message.get("type") == "error":
            raise error_in_stream(message, started=False, secret=self._key)
        return reply_from(message, request_id=request_id)

    async def _read_stream(self, response: Response, request_id: str) -> Reply:
        from anthropic import AsyncStream  # noqa: PLC0415 - heavy

        assembly = Assembly(request_id=request_id, secret=self._key)
        # Closed here and not by the garbage collector, whatever ends the reading.
        async with aclosing(_as_generator(AsyncStream.raw_events(response))) as events:
            async for event in events:
                if event.data:
                    assembly.feed(event.data)
                if assembly.complete:
                    break
        return assembly.reply()

    def _refusal(self, error: Any) -> ModelError:  # noqa: ANN401 - the client's class is imported on use
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        return error_from(error.status_code, error.body, headers, secret=self._key)


def _as_generator(events: Any) -> Any:  # noqa: ANN401 - an async generator that is typed as an iterator
    return events


def _lost(error: Exception) -> ModelUnavailable:
    """Return the error for a request without a response; unbilled when it was certainly never sent."""
    import httpx2  # noqa: PLC0415 - heavy

    cause = error.__cause__ or error
    unsent = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
    what = "cannot be reached" if unsent else "was lost before it answered"
    return ModelUnavailable(f"the provider {what} ({_named(cause)})", unbilled=unsent)


def _named(error: BaseException) -> str:
    said = one_line(str(error))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _client(api_key: str, base_url: str, timeout_s: float) -> AsyncAnthropic:
    """Make the official client, deaf to the environment."""
    import httpx2  # noqa: PLC0415 - heavy
    from anthropic import AsyncAnthropic  # noqa: PLC0415 - heavy

    timeout = httpx2.Timeout(min(timeout_s, SILENCE_S), connect=min(timeout_s, CONNECT_S))
    # Slots bound the requests in flight, so the pool needs no bound of its own.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=32)
    http = httpx2.AsyncClient(
        base_url=base_url,
        timeout=timeout,
        limits=limits,
        trust_env=False,
        follow_redirects=False,
        verify=_certificates() if base_url.startswith("https:") else False,
    )
    client = AsyncAnthropic(
        api_key=api_key,
        base_url=base_url,
        webhook_key="",
        timeout=timeout,
        max_retries=0,
        open_telemetry=False,
        http_client=http,
    )
    # ANTHROPIC_CUSTOM_HEADERS got in here, and may replace the key; there is no argument that keeps it out.
    client._custom_headers = {}  # noqa: SLF001
    return client


def _certificates() -> ssl.SSLContext:
    """Trust what this machine trusts (SSL_CERT_FILE included), and the bundle that came with the client."""
    import ssl  # noqa: PLC0415 - only for https

    import certifi  # noqa: PLC0415 - only for https

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
