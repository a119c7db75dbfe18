"""A model as the gateway serves it: metered, and either forwarded verbatim or called in neutral form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.gateway.bound import TokenCounts
from codetaste.gateway.upstream import FORWARDED_PROVIDERS, Upstream
from codetaste.llm.pricing import ROUTING_OPTIONS, STANDARD_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.metered import MeteredModel

_PRICE_OPTIONS = (*STANDARD_OPTIONS, *ROUTING_OPTIONS)
"""Options that decide a model's price: a value in the config overrides the client's."""
_DEFAULT_OPTIONS = {"api.openai.com": {"service_tier": "default"}}
"""Options sent if the config does not set them; without them the provider's project settings decide."""


@dataclass(frozen=True, slots=True, eq=False)
class GatewayModel:
    """A model that CLI agents may use.

    Attributes:
        metered: the metered model, with price, permits and retries.
        name: the provider's name for it.
        upstream: the provider to which requests are forwarded; None if the model is called in neutral form.
        fixed_options: options that only the config may set.
        token_counts: the provider's token counts, for bounds.
    """

    metered: MeteredModel
    name: str
    upstream: Upstream | None = None
    fixed_options: Mapping[str, Any] = field(default_factory=dict)
    token_counts: TokenCounts = field(default_factory=TokenCounts)

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
    if config.provider not in FORWARDED_PROVIDERS or config.cassette is not None:
        return GatewayModel(metered, config.model)
    upstream = Upstream(config)
    configured = {name: config.options[name] for name in _PRICE_OPTIONS if name in config.options}
    fixed = {**_DEFAULT_OPTIONS.get(upstream.host, {}), **configured}
    return GatewayModel(metered, config.model, upstream, fixed)
