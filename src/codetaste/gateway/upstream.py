"""The models that the gateway serves, and the providers to which it forwards requests verbatim."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.core.paths import trust_store
from codetaste.gateway.prompt.bound import TokenCounts
from codetaste.llm.price import ROUTING_OPTIONS, STANDARD_OPTIONS
from codetaste.llm.providers.sdk_client import CONNECT_TIMEOUT_S, api_key_for
from codetaste.llm.wire.allow_lists import ALLOW_LISTS
from codetaste.llm.wire.codecs import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from httpcore2 import URL

    from codetaste.gateway.connection import ProviderConnections, ProviderResponse
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.llm.wire.protocols import WireProtocol


_DEFAULT_HEADERS = {"accept": "*/*", "user-agent": "codetaste"}
"""Headers sent if the client has none of that name."""

_PRICE_OPTIONS = (*STANDARD_OPTIONS, *ROUTING_OPTIONS)
"""Options that decide a model's price: a value in the config overrides the client's."""


class Upstream:
    """A provider; connections are opened on first use.

    Attributes:
        protocol: its protocol.
        model: its name for the model.
        caps: its names for the output cap.
        api_key: must not appear in a message.
        timeout_s: time limit of one request, in seconds.
    """

    def __init__(self, protocol: WireProtocol, config: ModelConfig) -> None:
        self.protocol, self.model = protocol, config.model
        self.api_key, self.timeout_s = api_key_for(config), config.timeout
        self._address, self._read_timeout_s = config.address.rstrip("/"), config.read_timeout
        cap = config.options.get("output_cap")
        self.caps = (cap,) if cap else protocol.caps_at(config.address)
        self._allowed = ALLOW_LISTS[protocol.name]
        self._connections: ProviderConnections | None = None
        self._urls: dict[str, tuple[URL, bytes]] = {}

    async def post(self, content: bytes, *, headers: Mapping[str, str], query: str) -> ProviderResponse:
        """Send ``content`` with what is forwarded of a client's headers and query; return the response.

        Raises:
            ModelUnavailable: there is none; ``unbilled`` if the request was certainly never sent.
        """
        parameters = "&".join(sorted(self._allowed.query.intersection(query.split("&"))))
        if parameters not in self._urls:
            address = f"{self._address}{self.protocol.path}"
            self._urls[parameters] = _parsed(f"{address}?{parameters}" if parameters else address)
        url, host = self._urls[parameters]
        if self._connections is None:
            from codetaste.gateway.connection import ProviderConnections  # noqa: PLC0415 - heavy

            self._connections = ProviderConnections(trust_store() if url.scheme == b"https" else None)

        forwarded = {name: headers[name] for name in self._allowed.headers if name in headers}
        forwarded = {name: value for name, value in forwarded.items() if value.isascii()}
        own = {"content-type": "application/json", "accept-encoding": "identity"}
        default = {**_DEFAULT_HEADERS, **self.protocol.default_headers}
        sent = {**default, **forwarded, **own, **CLIENTS[self.protocol.name].key_headers(self.api_key)}
        encoded = [(name.encode(), text.encode()) for name, text in sent.items()]

        read_s = min(self.timeout_s, self._read_timeout_s)
        connect_s = min(self.timeout_s, CONNECT_TIMEOUT_S)
        timeouts_s = {"connect": connect_s, "read": read_s, "write": read_s, "pool": read_s}
        return await self._connections.post(url, [(b"host", host), *encoded], content, timeouts_s)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._connections is not None:
            await self._connections.aclose()


def _parsed(address: str) -> tuple[URL, bytes]:
    """Parse an address as the official clients do: internationalised names, escaped characters."""
    import httpcore2  # noqa: PLC0415 - heavy
    import httpx2  # noqa: PLC0415 - heavy

    url = httpx2.URL(address)
    core = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    return core, url.netloc


@dataclass(frozen=True, slots=True, eq=False)
class GatewayModel:
    """A model that CLI agents may use.

    Attributes:
        metered: the metered model, with price, permits and retries.
        name: the provider's name for it.
        upstream: the provider to which requests are forwarded; None if the model is called in neutral form.
        fixed_options: options that only the config may set.
        token_counts: the provider's token counts, for bounds.
        allow: what requests may have besides the allow list, with its price in US dollars.
    """

    metered: MeteredModel
    name: str
    upstream: Upstream | None = None
    fixed_options: Mapping[str, Any] = field(default_factory=dict)
    token_counts: TokenCounts = field(default_factory=TokenCounts)
    allow: Mapping[str, Decimal] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The model's id in the config."""
        return self.metered.id


def gateway_model(config: ModelConfig, metered: MeteredModel) -> GatewayModel:
    """Return the gateway's model for one ``[[models]]`` entry; it is closed with the gateway.

    Scripted, replayed and recorded models are called in neutral form, so that agents of any protocol can use
    them. Other requests are forwarded verbatim to the provider of the same protocol.

    Raises:
        ConfigError: the provider's key is not set.
    """
    if config.protocol is None or config.cassette is not None:
        return GatewayModel(metered, config.model, allow=config.allow)
    upstream = Upstream(config.protocol, config)
    configured = {name: config.options[name] for name in _PRICE_OPTIONS if name in config.options}
    fixed = {**config.protocol.options_at(config.address), **configured}
    return GatewayModel(metered, config.model, upstream, fixed, allow=config.allow)
