"""The hosts and addresses that the filtering proxy allows."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.sandbox.proxy.rules import (
    AllowEntry,
    HostNotAllowed,
    is_public_address,
    match_entry,
    normalize_host,
    parse_allow_list,
)


def is_allowed(text: str, host: str, port: int, *, tunnel: bool = True) -> bool:
    try:
        match_entry(parse_allow_list([text]), normalize_host(host), port, tunnel=tunnel)
    except HostNotAllowed:
        return False
    return True


def test_name_allows_the_web_ports_of_that_host_only() -> None:
    assert is_allowed("example.org", "example.org", 443)
    assert is_allowed("Example.org.", "EXAMPLE.ORG.", 80, tunnel=False)
    for host, port, tunnel in (
        ("example.org", 80, True),
        ("example.org", 443, False),
        ("example.org", 22, True),
        ("www.example.org", 443, True),
        ("notexample.org", 443, True),
        ("example.org.evil.net", 443, True),
    ):
        assert not is_allowed("example.org", host, port, tunnel=tunnel), host


def test_wildcard_allows_subdomains_but_not_the_domain() -> None:
    assert is_allowed("*.example.org", "a.example.org", 443)
    assert is_allowed("*.example.org", "a.b.example.org", 443)
    for host in ("example.org", "aexample.org", "example.org.net"):
        assert not is_allowed("*.example.org", host, 443)


def test_proxy_rule_port_matches_any_protocol_on_that_port() -> None:
    for tunnel in (True, False):
        assert is_allowed("example.org:8443", "example.org", 8443, tunnel=tunnel)
        assert not is_allowed("example.org:8443", "example.org", 443, tunnel=tunnel)


def test_entry_may_have_an_address() -> None:
    assert parse_allow_list(["a.test=10.0.0.1", "a.test:81=[::1]:8081", "a.test=::1", "a.test=private"]) == (
        AllowEntry("a.test", None, "10.0.0.1", private=True),
        AllowEntry("a.test", 81, "::1", 8081, private=True),
        AllowEntry("a.test", None, "::1", private=True),
        AllowEntry("a.test", None, private=True),
    )


def test_all_invalid_entries_are_reported_at_once() -> None:
    bad = ["a b", "*", "127.1", "a.0x7f", "a:0", "a:65536", "a=b", "*.10.0.0.1", "-a", "a..b", "", "http://a"]
    with pytest.raises(ConfigError) as caught:
        parse_allow_list(["good.org", *bad])
    assert len(caught.value.problems) == len(bad)
    for text, problem in zip(bad, caught.value.problems, strict=True):
        assert repr(text) in problem


@pytest.mark.parametrize(
    "text",
    ["127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "127.0.0.1.", "[fe80::1%eth0]", "a\0b", "ä.de", ""],
)
def test_disguised_address_is_not_a_host_name(text: str) -> None:
    try:
        name = normalize_host(text)
    except HostNotAllowed:
        return
    assert ipaddress.ip_address(name)  # it is matched as an address


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "240.0.0.1",
        "192.88.99.1",
        "198.18.0.1",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::7f00:1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:0:1::1",
        "2001:db8::1",
    ],
)
def test_private_loopback_metadata_and_translated_addresses_are_not_public(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_internet_addresses_are_public_in_every_notation(address: str) -> None:
    assert is_public_address(address)


@given(st.ip_addresses(v=4))
def test_translated_address_is_public_if_the_original_is(address: ipaddress.IPv4Address) -> None:
    low = int(address)
    assert is_public_address(f"::ffff:{address}") == is_public_address(str(address))
    assert is_public_address(str(ipaddress.IPv6Address((0x64FF9B << 96) | low))) == is_public_address(
        str(address)
    )


@given(st.text(max_size=40))
def test_proxy_rule_any_text_is_an_entry_or_a_problem(text: str) -> None:
    try:
        (entry,) = parse_allow_list([text])
    except ConfigError:
        return
    assert entry.name == entry.name.lower()
    assert entry.name.isascii()
