"""The rate limiters of a run. Models with the same provider, address, key and name share one."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from codetaste.llm.ratelimit.limiter import RateLimiter

if TYPE_CHECKING:
    from codetaste.llm.config import ModelConfig


@dataclass(frozen=True, slots=True)
class LimiterKey:
    """Identifies a limiter. ``key`` is a hash of the API key, and is excluded from the repr."""

    provider: str
    address: str
    model: str
    key: str = field(repr=False)


def limiter_key_for(config: ModelConfig) -> LimiterKey:
    """Return the limiter key of ``config``; a model without a remote provider has one of its own."""
    if config.protocol is None or (config.cassette and config.mode == "replay"):
        return LimiterKey(config.provider, "", config.id, "")
    key = os.environ.get(config.key_env or "", "").strip().encode("utf-8", "replace")
    return LimiterKey(config.provider, config.address.rstrip("/"), config.model, sha256(key).hexdigest())


class LimiterRegistry:
    """The limiters of one run, created on first use."""

    def __init__(self) -> None:
        self._of: dict[LimiterKey, RateLimiter] = {}

    def limiter_for(self, config: ModelConfig) -> RateLimiter:
        """Return the limiter of ``config``; models that share one get the smallest of their limits."""
        key = limiter_key_for(config)
        limiter = self._of.get(key)
        if limiter is None:
            limiter = self._of[key] = RateLimiter(
                config.id, maximum=config.permits, patience_s=config.rate_limit_timeout
            )
            return limiter
        limiter.name += f" and {config.id}"
        limiter.maximum = min(limiter.maximum, config.permits)
        congestion = limiter.adaptive_limit
        congestion.patience_s = min(congestion.patience_s, config.rate_limit_timeout)
        return limiter
