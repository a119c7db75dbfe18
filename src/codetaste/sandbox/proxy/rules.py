"""The allow-list of the filtering proxy: which hosts a sandbox may reach, and at which addresses.

An entry is ``NAME``, ``NAME:PORT``, or either followed by ``=ADDRESS`` or ``=private``. NAME is a host,
``*.suffix`` for all hosts below a suffix, or an address. Without a port the entry allows the web: plain HTTP
on port 80, TLS through a tunnel on port 443. With a port it allows any protocol there.

A name that resolves to an address of a private network, of this host, or of a cloud's metadata service is
refused, because the owner of the name could point it there. ``=private`` allows that; ``=ADDRESS`` or
``=ADDRESS:PORT`` sets the address of the name, regardless of DNS.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.errors import CodetasteError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

HTTP_PORT, HTTPS_PORT = 80, 443
_HIGHEST_PORT = 65535
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
# The last label is no number, in any notation: C libraries take "127.1" and "0x7f000001" for addresses.
_NAME = re.compile(rf"(?:{_LABEL}\.)*(?!(?:0x[0-9a-f]*|[0-9]+)$){_LABEL}")
_NAME_CHARACTERS = 253
_ENTRY = re.compile(r"(?P<name>\[[^]]*\]|[^:=\s]+)(?::(?P<port>[0-9]{1,5}))?(?:=(?P<address>\S+))?")
_ADDRESS = re.compile(
    r"(?P<address>\[[^]]*\]|[^:\[\]]+|[^\[\]]*:[^\[\]]*:[^\[\]]*?)(?::(?P<port>[0-9]{1,5}))?"
)
_UNICAST = ipaddress.ip_network("2000::/3")
_SIX_TO_FOUR = ipaddress.ip_network("2002::/16")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_OLD_RELAYS = ipaddress.ip_network("192.88.99.0/24")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class HostNotAllowed(CodetasteError):
    """The proxy does not allow this; the message has the reason, for the host and the sandbox."""


@dataclass(frozen=True, slots=True)
class AllowEntry:
    """What may be reached.

    ``port`` None allows the web; ``address`` "" uses DNS; ``address_port`` 0 uses the requested port.
    """

    name: str
    port: int | None = None
    address: str = ""
    address_port: int = 0
    private: bool = False

    def allows(self, host: str, port: int, *, tunnel: bool) -> bool:
        """Return whether this entry allows ``host``, normalised by ``normalize_host``, at ``port``."""
        matches = host.endswith(self.name[1:]) if self.name.startswith("*.") else host == self.name
        web = HTTPS_PORT if tunnel else HTTP_PORT
        return matches and port == (web if self.port is None else self.port)


def parse_allow_list(texts: Iterable[str]) -> tuple[AllowEntry, ...]:
    """Parse the entries of an allow-list.

    Raises:
        ConfigError: names every invalid entry.
    """
    entries, problems = [], []
    for text in texts:
        try:
            entries.append(_parse_entry(text))
        except (HostNotAllowed, ValueError) as fault:
            problems.append(
                f"{text!r} is not a valid host entry ({fault}): write NAME, *.SUFFIX or NAME:PORT, "
                f"followed by =ADDRESS or =private if the name resolves to a private network"
            )
    if problems:
        raise ConfigError(*problems)
    return tuple(entries)


def _parse_entry(text: str) -> AllowEntry:
    match = _ENTRY.fullmatch(text)
    if match is None:
        raise ValueError("its form is wrong")
    wildcard = match["name"].startswith("*.")
    name = normalize_host(match["name"][2:] if wildcard else match["name"], unicode=True)
    if wildcard and is_address(name):
        raise ValueError("an address has no suffix")
    port = _parse_port(match["port"]) if match["port"] else None
    name = f"*.{name}" if wildcard else name
    if match["address"] in {None, "private"}:
        return AllowEntry(name, port, private=bool(match["address"]) or is_address(name))
    where = _ADDRESS.fullmatch(match["address"])
    if where is None:
        raise ValueError(f"{match['address']} is not an address")
    address = str(_parse_address(where["address"].strip("[]"), where["address"]))
    return AllowEntry(name, port, address, _parse_port(where["port"]) if where["port"] else 0, private=True)


def _parse_port(text: str) -> int:
    if not 0 < int(text) <= _HIGHEST_PORT:
        raise ValueError(f"{text} is not a port")
    return int(text)


def normalize_host(text: str, *, unicode: bool = False) -> str:
    """Return a host's name or address in the normal form for comparisons.

    Raises:
        HostNotAllowed: it is neither.
    """
    if text.startswith("[") and text.endswith("]"):
        return str(_parse_address(text[1:-1], text))
    name = text.lower().removesuffix(".")
    if unicode and not name.isascii():
        name = name.encode("idna").decode()
    if name.isascii() and len(name) <= _NAME_CHARACTERS and _NAME.fullmatch(name):
        return name
    return str(_parse_address(name, text))


def _parse_address(text: str, original: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise HostNotAllowed(f"{original[:_NAME_CHARACTERS]!r} is not a host name") from None
    if getattr(address, "scope_id", None):
        raise HostNotAllowed(f"{original!r} has a scope")
    return address


def is_address(host: str) -> bool:
    """Return whether ``host``, normalised by ``normalize_host``, is an address."""
    return ":" in host or host.replace(".", "").isdigit()


def match_entry(entries: Iterable[AllowEntry], host: str, port: int, *, tunnel: bool) -> AllowEntry:
    """Return the entry that allows ``host``, normalised by ``normalize_host``.

    Raises:
        HostNotAllowed: there is none.
    """
    for entry in entries:
        if entry.allows(host, port, tunnel=tunnel):
            return entry
    how = "a tunnel to" if tunnel else "plain HTTP to"
    raise HostNotAllowed(f"{how} {host}:{port} is not allowed from this sandbox")


def is_public_address(text: str) -> bool:
    """Return whether an address belongs to the public internet."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is None:
            return address in _UNICAST and address.is_global and address not in _SIX_TO_FOUR
        address = inner
    unusual = address.is_multicast or address.is_reserved or address in _OLD_RELAYS
    return address.is_global and not unusual
