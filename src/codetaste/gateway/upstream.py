"""A provider that requests are passed on to as a program wrote them, and how its answers are understood."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from codetaste.llm.client import http_client, key_of, silence
from codetaste.llm.wire.openai_chat import CAPS
from codetaste.llm.wire.serving import SERVING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from httpx2 import AsyncClient, Timeout

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.wire.request import Protocol

_ASKED = frozenset({"accept", "user-agent", "anthropic-version", "anthropic-beta", "openai-beta", "x-app"})
"""Headers of a program that a provider is to see; nothing else that it says, and never its token."""
_BETA = "beta=true"
_VERSION = {"anthropic-version": "2023-06-01"}


_PATHS = {"anthropic": "/v1/messages", "openai": "/responses", "openai-chat": "/chat/completions"}
PASSED_ON = frozenset(_PATHS)
"""Providers whose protocol programs speak, too."""
_NEW_CAP_ONLY = (".openai.com", ".azure.com")
"""Hosts that take the newer name for the cap on a reply, and refuse both together."""


class Upstream:
    """A provider; connections are made on first use.

    Attributes:
        protocol: which it speaks.
        serving: how that is understood.
        caps: the names that it knows the cap on a completion by.
        secret: the key, which must not stand in a message.
        timeout_s: what one request may take in all.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.protocol = cast("Protocol", config.provider)
        self.serving = SERVING[self.protocol]
        self.secret, self.timeout_s = key_of(config), config.timeout
        self.host = urlsplit(config.address).hostname or ""
        self._address, self._silence_s = config.address.rstrip("/"), config.silence
        self.caps = CAPS[1:] if self.host.endswith(_NEW_CAP_ONLY) else CAPS
        self._client: AsyncClient | None = None

    @property
    def client(self) -> AsyncClient:
        """What speaks HTTP with it."""
        if self._client is None:
            self._client = http_client(self._address, self.quiet(streamed=True))
        return self._client

    def url(self, query: str) -> str:
        """Return where a request goes whose own query was ``query``."""
        beta = f"?{_BETA}" if self.protocol == "anthropic" and _BETA in query.split("&") else ""
        return f"{self._address}{_PATHS[self.protocol]}{beta}"

    def headers(self, asked: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request, given those of the program (names in lower case)."""
        passed = {name: value for name, value in asked.items() if name in _ASKED and value.isascii()}
        own = {"content-type": "application/json", "accept-encoding": "identity"}
        if self.protocol == "anthropic":
            return {**_VERSION, **passed, **own, "x-api-key": self.secret}
        return {**passed, **own, **({"authorization": f"Bearer {self.secret}"} if self.secret else {})}

    def quiet(self, *, streamed: bool) -> Timeout:
        """Return how long it may say nothing; before what is not streamed, as long as it takes."""
        return silence(self.timeout_s, self._silence_s if streamed else self.timeout_s)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()
