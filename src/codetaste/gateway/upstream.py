"""A provider that requests are passed on to as a program wrote them, and how its answers are understood."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from codetaste.llm.client import CONNECT_S, certificates, key_of
from codetaste.llm.wire.openai_chat import CAPS
from codetaste.llm.wire.serving import SERVING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from httpcore2 import URL

    from codetaste.gateway.line import Line, Lines
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.wire.request import Protocol

_ASKED = frozenset({"accept", "user-agent", "anthropic-version", "anthropic-beta", "openai-beta", "x-app"})
"""Headers of a program that a provider is to see; nothing else that it says, and never its token."""
_BETA = "beta=true"
_VERSION = {"anthropic-version": "2023-06-01"}
_SAID = {"accept": "*/*", "user-agent": "codetaste"}
"""What is said where a program says nothing."""

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
        self._lines: Lines | None = None
        self._urls: dict[str, tuple[URL, bytes]] = {}

    async def ready(self) -> Line:
        """Return a line for one request; nothing that costs anything is done for it.

        Raises:
            ModelUnavailable: the provider cannot be reached.
        """
        if self._lines is None:
            from codetaste.gateway.line import Lines  # noqa: PLC0415 - heavy

            url, _ = self.url("")
            tls = certificates() if url.scheme == b"https" else None
            self._lines = Lines(url.origin, tls, min(self.timeout_s, CONNECT_S))
        return await self._lines.ready()

    def url(self, query: str) -> tuple[URL, bytes]:
        """Return where a request goes whose own query was ``query``, and the host as a header names it."""
        beta = f"?{_BETA}" if self.protocol == "anthropic" and _BETA in query.split("&") else ""
        if beta not in self._urls:
            self._urls[beta] = _parsed(f"{self._address}{_PATHS[self.protocol]}{beta}")
        return self._urls[beta]

    def headers(self, asked: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request, given those of the program (names in lower case)."""
        passed = {name: value for name, value in asked.items() if name in _ASKED and value.isascii()}
        own = {"content-type": "application/json", "accept-encoding": "identity"}
        if self.protocol == "anthropic":
            return {**_SAID, **_VERSION, **passed, **own, "x-api-key": self.secret}
        key = {"authorization": f"Bearer {self.secret}"} if self.secret else {}
        return {**_SAID, **passed, **own, **key}

    def quiet_s(self, *, streamed: bool) -> dict[str, float]:
        """Return how long it may say nothing; before what is not streamed, as long as it takes."""
        silence_s = min(self.timeout_s, self._silence_s) if streamed else self.timeout_s
        connect_s = min(self.timeout_s, CONNECT_S)
        return {"connect": connect_s, "read": silence_s, "write": silence_s, "pool": silence_s}

    async def aclose(self) -> None:
        """Close all connections that are kept."""
        if self._lines is not None:
            await self._lines.aclose()


def _parsed(address: str) -> tuple[URL, bytes]:
    """Read an address as the official clients do: names in any script, and what has to be escaped."""
    import httpcore2  # noqa: PLC0415 - heavy
    import httpx2  # noqa: PLC0415 - heavy

    url = httpx2.URL(address)
    core = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    return core, url.netloc
