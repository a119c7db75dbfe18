"""Which models share a limiter: those that one provider counts together, by address, key and model."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from codetaste.llm.ratelimit import RateLimiter

if TYPE_CHECKING:
    from codetaste.llm.config import ModelConfig


@dataclass(frozen=True, slots=True)
class Account:
    """What a provider's limits are about. The key is here as a hash only, and that is not shown."""

    provider: str
    address: str
    model: str
    key: str = field(repr=False)


def account_of(config: ModelConfig) -> Account:
    """Return what the limits of ``config`` are about; a model without a provider stands for itself."""
    live = config.provider not in {"scripted", "replay"} and not (config.cassette and config.mode == "replay")
    if not live:
        return Account(config.provider, "", config.id, "")
    key = os.environ.get(config.key_env or "", "").strip()
    address = config.address.rstrip("/")
    return Account(config.provider, address, config.model, sha256(key.encode("utf-8", "replace")).hexdigest())


class Limiters:
    """The limiters of one run, made on first use."""

    def __init__(self) -> None:
        self._of: dict[Account, RateLimiter] = {}

    def limiter_for(self, config: ModelConfig) -> RateLimiter:
        """Return the limiter of ``config``; models that share one have the smallest of their limits."""
        account = account_of(config)
        found = self._of.get(account)
        if found is None:
            found = self._of[account] = RateLimiter(
                config.id, most=config.max_concurrency, patience_s=config.rate_limit_patience
            )
            return found
        found.name += f" and {config.id}"
        found.most = min(found.most, config.max_concurrency)
        congestion = found.congestion
        congestion.patience_s = min(congestion.patience_s, config.rate_limit_patience)
        return found
