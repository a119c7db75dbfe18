"""Connections of the filtering proxy to allowed hosts, directly or by the proxy of the host machine.

A name is resolved on the host, its addresses are checked, and one that passed is connected to: a name that
resolves differently a moment later has no effect.
"""

from __future__ import annotations

import base64
import socket
import urllib.parse
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio
import h11
from anyio import to_thread
from anyio.abc import SocketAttribute

from codetaste.errors import ConfigError
from codetaste.sandbox.proxy.connection import PEER_ERRORS, HttpPeer
from codetaste.sandbox.proxy.rules import HostNotAllowed, is_address, is_public_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyio.abc import SocketStream

    from codetaste.sandbox.proxy.rules import AllowEntry

CONNECT_S = 30.0
_OK = range(200, 300)
_MAX_ADDRESSES = 8
"""Number of addresses of a name that are tried."""


@dataclass(frozen=True, slots=True)
class _HostProxy:
    host: str
    port: int
    headers: tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class HostProxies:
    """The proxies of the host machine, from its environment; "" where there is none."""

    http: str = ""
    https: str = ""
    bypass: str = ""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> HostProxies:
        """Read ``environ`` as other programs do; the lower-case name takes precedence.

        Raises:
            ConfigError: it names a proxy that does not speak plain HTTP.
        """

        def value(name: str) -> str:
            return environ.get(name) or environ.get(name.upper()) or ""

        # HTTP_PROXY in capitals may come from a request header, under CGI.
        found = cls(environ.get("http_proxy", ""), value("https_proxy"), value("no_proxy"))
        for address in (found.http, found.https):
            if address:
                _parse_proxy(address)
        return found

    def proxy_for(self, host: str, *, tunnel: bool) -> _HostProxy | None:
        """Return the proxy by which ``host`` is reached, None if directly."""
        address = self.https if tunnel else self.http
        suffixes = [part.strip().lower().lstrip("*.") for part in self.bypass.split(",") if part.strip()]
        bypassed = any(not suffix or host == suffix or host.endswith("." + suffix) for suffix in suffixes)
        return _parse_proxy(address) if address and not bypassed else None


def _parse_proxy(address: str) -> _HostProxy:
    parts = urllib.parse.urlsplit(address if "://" in address else f"http://{address}")
    try:
        port = parts.port or 80
    except ValueError:
        port = 0
    if parts.scheme != "http" or not parts.hostname or not port:
        raise ConfigError(
            "http_proxy and https_proxy must be http://HOST:PORT for the egress of a sandbox to use them"
        )
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if parts.username is not None:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers = ((b"proxy-authorization", b"Basic " + base64.b64encode(pair.encode())),)
    return _HostProxy(parts.hostname, port, headers)


@dataclass(frozen=True, slots=True)
class UpstreamConnection:
    """A connection to a host. ``early_data`` arrived with it; ``headers`` are for the proxy in between."""

    stream: SocketStream
    early_data: bytes = b""
    via_proxy: bool = False
    headers: tuple[tuple[bytes, bytes], ...] = ()


async def connect_upstream(
    entry: AllowEntry,
    host: str,
    port: int,
    proxies: HostProxies,
    lookups: anyio.CapacityLimiter,
    *,
    tunnel: bool,
) -> UpstreamConnection:
    """Connect to ``host``, which ``entry`` allows; ``lookups`` bounds concurrent name look-ups.

    Raises:
        HostNotAllowed: it resolves to an address that the entry does not allow.
        OSError: it cannot be reached. TimeoutError: … in 30 s.
    """
    proxy = None if entry.private else proxies.proxy_for(host, tunnel=tunnel)
    with anyio.fail_after(CONNECT_S):
        if proxy is None:
            return UpstreamConnection(await _connect_directly(entry, host, port, lookups))
        stream = await anyio.connect_tcp(proxy.host, proxy.port)
        if not tunnel:
            return UpstreamConnection(stream, via_proxy=True, headers=proxy.headers)
        try:
            return UpstreamConnection(stream, await _open_tunnel(stream, host, port, proxy))
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise


async def _connect_directly(
    entry: AllowEntry, host: str, port: int, lookups: anyio.CapacityLimiter
) -> SocketStream:
    fault: OSError = OSError("it has no address")
    for address in await _resolve(entry, host, lookups):
        try:
            stream = await anyio.connect_tcp(address, entry.address_port or port)
        except OSError as failed:
            fault = failed
            continue
        if not entry.private and _is_this_host(stream):
            await stream.aclose()
            raise HostNotAllowed(f"{host} is an address of this host")
        return stream
    raise fault


async def _resolve(entry: AllowEntry, host: str, lookups: anyio.CapacityLimiter) -> list[str]:
    if entry.address or is_address(host):
        return [entry.address or host]
    # Not in the shared threads: a slow name requested by a sandbox would delay model calls.
    found = await to_thread.run_sync(
        partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM),
        abandon_on_cancel=True,
        limiter=lookups,
    )
    addresses = list(dict.fromkeys(str(socket_address[0]) for *_, socket_address in found))
    public = [address for address in addresses if entry.private or is_public_address(address)]
    if addresses and not public:
        raise HostNotAllowed(f"{host} resolves to a private network")
    return public[:_MAX_ADDRESSES]


def _is_this_host(stream: SocketStream) -> bool:
    """Whether the other end is this host: a connection to an own address also comes from it."""
    attributes, names = stream.extra_attributes, SocketAttribute
    return bool(attributes[names.local_address]()[0] == attributes[names.remote_address]()[0])


async def _open_tunnel(stream: SocketStream, host: str, port: int, proxy: _HostProxy) -> bytes:
    peer = HttpPeer(stream, h11.CLIENT)
    authority = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode()
    try:
        await peer.send(
            h11.Request(method=b"CONNECT", target=authority, headers=[(b"host", authority), *proxy.headers])
        )
        await peer.send(h11.EndOfMessage())
        event = await peer.next_event()
        while isinstance(event, h11.InformationalResponse):
            event = await peer.next_event()
    except PEER_ERRORS as fault:
        raise OSError(f"the proxy of this machine sent no response: {fault}") from fault
    if not isinstance(event, h11.Response) or event.status_code not in _OK:
        status = event.status_code if isinstance(event, h11.Response) else "nothing"
        raise OSError(f"the proxy of this machine answered with {status}")
    return peer.http.trailing_data[0]
