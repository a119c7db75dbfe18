"""A model as the gateway serves it: its money and slots, and whether requests are passed on as they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.gateway.bound import Counts
from codetaste.gateway.upstream import PASSED_ON, Upstream
from codetaste.llm.pricing import ROUTES, STANDARD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.metered import MeteredModel

_PRICED_BY = (*STANDARD, *ROUTES)
"""Options that decide a model's price: where the config has them, it decides, and not the program."""
_STANDARD = {"api.openai.com": {"service_tier": "default"}}
"""What is asked of a provider where the config says nothing: otherwise a project's settings decide."""


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A model that programs may ask for.

    Attributes:
        metered: its price, slots and retries.
        name: its provider's name for it.
        upstream: where requests are passed on to; None where the model itself is asked, in neutral form.
        fixed: options that are the config's alone.
        counts: what its provider has counted, for bounds.
    """

    metered: MeteredModel
    name: str
    upstream: Upstream | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)

    @property
    def id(self) -> str:
        """What the config calls it."""
        return self.metered.id


def served(config: ModelConfig, metered: MeteredModel) -> Served:
    """Return the model of one ``[[models]]`` entry as the gateway serves it; closed with the gateway.

    Scripted, replayed and recorded models are asked in neutral form, so that programs of any protocol can use
    them. A provider gets the requests of programs that speak its own protocol, as they are.

    Raises:
        ConfigError: the provider's key is not set.
    """
    if config.provider not in PASSED_ON or config.cassette is not None:
        return Served(metered, config.model)
    upstream = Upstream(config)
    chosen = {name: config.options[name] for name in _PRICED_BY if name in config.options}
    fixed = {**_STANDARD.get(upstream.host, {}), **chosen}
    return Served(metered, config.model, upstream, fixed)
