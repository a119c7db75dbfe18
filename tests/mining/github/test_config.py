"""The section says what is wrong before a token is sent anywhere."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from codetaste.mining.github.config import GitHubConfig


@pytest.mark.parametrize(
    "address",
    [
        "http://api.github.com",
        "http://127.0.0.1.example.com",
        "https://",
        "https://user:pass@api.github.com",
        "https://api.github.com?x=1",
        "ftp://api.github.com",
        "https://[::1",
        "https://host:port",
        "api.github.com",
    ],
)
def test_an_address_that_must_not_get_a_token_is_refused(address: str) -> None:
    with pytest.raises(ValidationError):
        GitHubConfig(api_url=address)


@pytest.mark.parametrize(
    "address", ["https://github.example.com/api/v3/", "http://localhost:1", "http://[::1]:2"]
)
def test_enterprise_servers_and_the_loopback_are_addresses(address: str) -> None:
    assert GitHubConfig(api_url=address).api_url == address.rstrip("/")


@pytest.mark.parametrize("name", ["", "a b", "1A", "GITHUB-TOKEN", "ghp_x=y"])
def test_the_name_of_a_variable_is_a_name(name: str) -> None:
    with pytest.raises(ValidationError):
        GitHubConfig(token_env=name)
