"""Build official SDK clients with explicit settings; nothing is read from the environment.

No key, address, header, proxy or log setting comes from the environment unless a config names it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from codetaste.core.paths import trust_store
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from codetaste.llm.config import ModelConfig


CONNECT_TIMEOUT_S = 30.0

MAX_ERROR_BYTES = 1024 * 1024
"""Larger than any provider's error message."""


@dataclass(frozen=True, slots=True)
class SdkClient:
    """An official SDK client; it reads nothing from the environment and retries nothing.

    Attributes:
        client: the client.
        stream_class: the SDK's class for a stream.
        headers: sent with every request in addition to the SDK's own.
    """

    client: Any
    stream_class: type[Any]
    headers: Mapping[str, Any] = field(default_factory=dict)


def api_key_for(config: ModelConfig) -> str:
    """Return the API key of a ``[[models]]`` entry from its environment variable; "" if it needs none.

    Raises:
        ConfigError: the variable is not set, or its value cannot be a key.
    """
    name = config.provider_key_env
    if name is None:
        return ""
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigError(f"models[{config.id}].api_key_env: the environment variable {name} is not set")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(f"models[{config.id}].api_key_env: the value of {name} is not an API key")
    return key


@contextmanager
def without_env(prefix: str) -> Iterator[None]:
    """Hide environment variables that begin with ``prefix`` while an SDK is imported and its client built."""
    hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith(prefix)}
    try:
        yield
    finally:
        os.environ.update(hidden)


def anthropic_client(api_key: str, base_url: str, timeout_s: float, read_timeout_s: float) -> SdkClient:
    """Return the client of the Anthropic SDK.

    Args:
        api_key: the key.
        base_url: the prefix of the protocol's path.
        timeout_s: time limit of one call.
        read_timeout_s: the longest time without any data from the provider.
    """
    timeout = _timeouts(timeout_s, read_timeout_s)
    with without_env("ANTHROPIC_"):
        from anthropic import AsyncAnthropic, AsyncStream  # noqa: PLC0415 - heavy

        client = AsyncAnthropic(
            api_key=api_key,
            base_url=base_url,
            webhook_key="",
            timeout=timeout,
            max_retries=0,
            open_telemetry=False,
            http_client=http_client(base_url, timeout),
        )
    return SdkClient(client, AsyncStream[object])


def openai_client(api_key: str, base_url: str, timeout_s: float, read_timeout_s: float) -> SdkClient:
    """Return the client of the OpenAI SDK, which sends no authorization header without a key.

    Arguments as ``anthropic_client``; the key is "" for a server that needs none.
    """
    timeout = _timeouts(timeout_s, read_timeout_s)
    with without_env("OPENAI_"):
        from openai import AsyncOpenAI, AsyncStream, Omit  # noqa: PLC0415 - heavy

        client = AsyncOpenAI(
            api_key=api_key or "none",
            base_url=base_url,
            timeout=timeout,
            max_retries=0,
            http_client=http_client(base_url, timeout),
        )
    return SdkClient(client, AsyncStream[object], {} if api_key else {"Authorization": Omit()})


def _timeouts(timeout_s: float, read_timeout_s: float) -> httpx2.Timeout:
    return httpx2.Timeout(min(timeout_s, read_timeout_s), connect=min(timeout_s, CONNECT_TIMEOUT_S))


def http_client(base_url: str, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    """Create the HTTP client for an SDK; proxy and SSL environment variables are ignored.

    Only TLS connections, which are expensive to open, are kept alive. Plain HTTP servers such as llama.cpp's
    close the connection after a streamed reply although they announce keep-alive; a call sent at that moment
    is lost, and it is unknown whether it was billed.
    """
    secure = base_url.lower().startswith("https:")
    return httpx2.AsyncClient(
        base_url=base_url,
        timeout=timeout,
        # Permits bound the requests in flight, so the pool needs no limit of its own.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32 if secure else 0),
        trust_env=False,
        follow_redirects=False,
        event_hooks={"response": [limit_error_body]},
        verify=trust_store() if secure else False,
    )


async def limit_error_body(response: httpx2.Response) -> None:
    """Truncate the body of an error response to ``MAX_ERROR_BYTES``; an httpx response hook."""
    if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _TruncatedStream(response.stream)


class _TruncatedStream(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_ERROR_BYTES
        async for chunk in self._whole:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()
