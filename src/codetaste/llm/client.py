"""What an official client is made of: it is told everything, and left nothing to find out by itself.

No key, address, header, proxy or log setting comes from the environment unless a config names it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from httpx2 import AsyncClient, Timeout

    from codetaste.llm.config import ModelConfig

CONNECT_S = 30.0
SILENCE_S = 300.0
"""How long a provider may say nothing at all, unless the config gives it longer."""


def key_of(config: ModelConfig) -> str:
    """Return the API key of a ``[[models]]`` entry, from its environment variable; "" where it needs none.

    Raises:
        ConfigError: the variable is not set, or holds no key.
    """
    name = config.provider_key_env
    if name is None:
        return ""
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigError(f"models[{config.id}].api_key_env: the environment variable {name} is not set")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(f"models[{config.id}].api_key_env: what {name} holds is no API key")
    return key


@contextmanager
def hidden_environment(prefix: str) -> Iterator[None]:
    """Hide the variables that begin with ``prefix``, while a client that reads them is imported and made."""
    hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith(prefix)}
    try:
        yield
    finally:
        os.environ.update(hidden)


def silence(timeout_s: float, silence_s: float) -> Timeout:
    """Return how long a provider may say nothing, for calls that may take ``timeout_s`` seconds in all."""
    import httpx2  # noqa: PLC0415 - heavy

    return httpx2.Timeout(min(timeout_s, silence_s), connect=min(timeout_s, CONNECT_S))


def http_client(base_url: str, quiet: Timeout) -> AsyncClient:
    """Make what an official client speaks HTTP with, deaf to the environment.

    Connections are kept where they are dear, behind TLS. Servers that are spoken to without it, llama.cpp's
    among them, close theirs after a streamed reply although they promise to keep it: a call that is sent at
    that moment is lost, and whether it was billed is not known.
    """
    import httpx2  # noqa: PLC0415 - heavy

    from codetaste.llm.refusal_body import bound_refusal  # noqa: PLC0415 - heavy

    secure = base_url.lower().startswith("https:")
    return httpx2.AsyncClient(
        base_url=base_url,
        timeout=quiet,
        # Slots bound the requests in flight, so the pool needs no bound of its own.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32 if secure else 0),
        trust_env=False,
        follow_redirects=False,
        event_hooks={"response": [bound_refusal]},
        verify=certificates() if secure else False,
    )


def certificates() -> ssl.SSLContext:
    """Trust what this machine trusts (SSL_CERT_FILE included), and the bundle that came with the client."""
    import ssl  # noqa: PLC0415 - only for https

    import certifi  # noqa: PLC0415 - only for https

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
