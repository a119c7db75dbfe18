"""Schema of the section about GitHub's API: where it is, which token it gets, and how much is asked of it."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from codetaste.core.section import Section
from codetaste.core.units import Seconds
from codetaste.errors import ConfigError


class GitHubConfig(Section):
    """GitHub's API, which completes records and gives the texts that descriptions are made of."""

    api_url: str = "https://api.github.com"
    """Address of the API; of a GitHub Enterprise Server it is "https://HOST/api/v3"."""
    token_env: str = Field(default="GITHUB_TOKEN", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The environment variable that has the token. A token without any scope can read all that is public."""
    in_flight: int = Field(default=2, ge=1, le=32)
    """Requests at the same time. GitHub asks for few."""
    batch: int = Field(default=100, ge=1, le=100)
    """The most pull requests, commits or repositories in one request; the first requests have 40."""
    timeout: Seconds = 30.0
    """Time limit of one request; GitHub itself ends a query after about ten seconds."""
    wait_limit: Seconds = 3900.0
    """The longest wait for a rate limit; if GitHub asks for more, records stay incomplete."""
    cache_age: Seconds = 30 * 86400.0
    """How long a cached answer counts. Stars and licences change slowly, merged pull requests never."""

    @field_validator("api_url")
    @classmethod
    def _check_api_url(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            host = parts.hostname
            _ = parts.port
        except ValueError as error:
            raise ValueError(f"not an address: {error}") from None
        if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment or "@" in value:
            raise ValueError('not an address such as "https://api.github.com"')
        if parts.scheme == "http" and not _is_loopback(host):
            raise ValueError("must begin with https://, because the token is sent to it")
        return value.rstrip("/")


def web_host(config: GitHubConfig) -> str:
    """Return the host that repositories are cloned from: "github.com" of "https://api.github.com"."""
    return (urlsplit(config.api_url).hostname or "").removeprefix("api.")


def read_token(config: GitHubConfig) -> str:
    """Return the token from the environment variable that ``config`` names; "" if it is not set.

    Raises:
        ConfigError: the value of the variable cannot be a token.
    """
    token = os.environ.get(config.token_env, "").strip()
    if not (token.isascii() and (token.isalnum() or all(c.isalnum() or c in "_-." for c in token))):
        raise ConfigError(f"the value of the environment variable {config.token_env} is not a GitHub token")
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
