"""A filtering HTTP proxy on a Unix socket: the egress of a sandbox whose policy is an allow-list.

It accepts what ``http_proxy`` clients send: HTTP/1.1 requests with an absolute URL, and CONNECT.
``rules.py`` decides what may be reached, ``upstream.py`` connects to it. Input from the sandbox
is hostile: each connection carries one request, whose head and body are parsed by h11 and written again, so
that nothing can be smuggled past; a web tunnel must begin with a TLS hello for the requested host.

Why not a library: proxy.py and mitmproxy are frameworks with their own threads or loops and certificates, and
check no address; the risky part, the parser, is a library.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import h11

from codetaste.sandbox.proxy.connection import CHUNK_BYTES, PEER_ERRORS, HttpPeer, end_to_end_request
from codetaste.sandbox.proxy.rules import (
    HTTP_PORT,
    HTTPS_PORT,
    HostNotAllowed,
    is_address,
    match_entry,
    normalize_host,
)
from codetaste.sandbox.proxy.tls import MAX_HELLO_BYTES, NotTls, parse_server_name
from codetaste.sandbox.proxy.upstream import UpstreamConnection, connect_upstream

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import SocketListener, SocketStream

    from codetaste.sandbox.proxy.rules import AllowEntry
    from codetaste.sandbox.proxy.upstream import HostProxies

MAX_CONNECTIONS = 64
"""At once; more wait to be accepted."""
HEAD_S = 20.0
IDLE_S = 300.0
"""Without a byte in either direction: a server may need long to answer."""
_MAX_NOTED = 1000
_MAX_LOOKUPS = 4
_MAX_HELLO_PIECES = 64
_ACCEPT_PAUSE_S = 0.2
_ABSOLUTE_URL = re.compile(rb"http://(?P<authority>[^/?#@\\\s]+)(?P<path>[^#\s]*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[^]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")


class _Malformed(Exception):
    """A request that no well-behaved client sends."""


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A requested host; ``refusal`` is why it was not allowed, "" if it was."""

    host: str
    port: int
    refusal: str = ""

    def __str__(self) -> str:
        if self.refusal:
            return f"refused {self.host}:{self.port}: {self.refusal}"
        return f"allowed {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Proxy:
    """Forwards what ``entries`` allow; ``note`` gets each distinct request once, up to a bound."""

    entries: tuple[AllowEntry, ...]
    upstream: HostProxies
    note: Callable[[HostRequest], None]
    _seen: set[HostRequest] = field(default_factory=set)
    _lookups: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_MAX_LOOKUPS))

    async def serve(self, listener: SocketListener) -> None:
        """Serve until cancelled."""
        limiter = anyio.Semaphore(MAX_CONNECTIONS)
        accepted: set[SocketStream] = set()  # a task that is cancelled before it begins closes nothing
        try:
            await self._accept_all(listener, limiter, accepted)
        finally:
            with anyio.CancelScope(shield=True):
                for client in accepted:
                    await anyio.aclose_forcefully(client)

    async def _accept_all(
        self, listener: SocketListener, limiter: anyio.Semaphore, accepted: set[SocketStream]
    ) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                await limiter.acquire()
                try:
                    client = await listener.accept()
                except OSError:  # no descriptor left: wait until other connections end
                    limiter.release()
                    await anyio.sleep(_ACCEPT_PAUSE_S)
                    continue
                accepted.add(client)
                tasks.start_soon(self._serve_one, client, limiter, accepted)

    async def _serve_one(
        self, client: SocketStream, limiter: anyio.Semaphore, accepted: set[SocketStream]
    ) -> None:
        try:
            async with client:
                peer = HttpPeer(client, h11.SERVER)
                with contextlib.suppress(*PEER_ERRORS):
                    request = None
                    with anyio.move_on_after(HEAD_S):
                        request = await peer.read_request()
                    if request is not None:
                        await self._forward(peer, request)
        except Exception as fault:  # noqa: BLE001 - what one connection does must not end the others
            self._note_once(HostRequest("?", 0, f"the proxy failed: {type(fault).__name__}: {fault}"))
        finally:
            accepted.discard(client)
            limiter.release()

    async def _forward(self, client: HttpPeer, request: h11.Request) -> None:
        tunnel = request.method == b"CONNECT"
        try:
            host, port, path = _connect_target(request) if tunnel else _url_target(request)
        except _Malformed as fault:
            await client.send_text(400, str(fault))
            return
        try:
            entry = match_entry(self.entries, host, port, tunnel=tunnel)
            reached = await connect_upstream(entry, host, port, self.upstream, self._lookups, tunnel=tunnel)
        except HostNotAllowed as refusal:
            self._note_once(HostRequest(host, port, str(refusal)))
            await client.send_text(403, f"codetaste: {refusal}")
            return
        except (OSError, TimeoutError) as fault:
            await client.send_text(502, f"codetaste: {host}:{port} cannot be reached: {fault or 'timeout'}")
            return
        async with reached.stream:
            self._note_once(HostRequest(host, port))
            with anyio.CancelScope(deadline=anyio.current_time() + IDLE_S) as idle:
                if tunnel:
                    await self._tunnel(client, reached, host, tls_only=entry.port is None, idle=idle)
                else:
                    await _exchange(client, reached, request, path, idle)

    async def _tunnel(
        self,
        client: HttpPeer,
        reached: UpstreamConnection,
        host: str,
        *,
        tls_only: bool,
        idle: anyio.CancelScope,
    ) -> None:
        received = await client.accept_connect()
        if tls_only:
            try:
                received = await _read_hello(client.stream, received, host)
            except NotTls as fault:
                self._note_once(
                    HostRequest(host, HTTPS_PORT, f"the tunnel did not begin with TLS for this host: {fault}")
                )
                return
        await reached.stream.send(received)
        if reached.early_data:
            await client.stream.send(reached.early_data)
        async with anyio.create_task_group() as tasks:

            async def carry(source: SocketStream, sink: SocketStream) -> None:
                try:
                    await _copy(source, sink, idle)
                except PEER_ERRORS:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(carry, client.stream, reached.stream)
            tasks.start_soon(carry, reached.stream, client.stream)

    def _note_once(self, request: HostRequest) -> None:
        if request not in self._seen and len(self._seen) < _MAX_NOTED:
            self._seen.add(request)
            self.note(request)


def _connect_target(request: h11.Request) -> tuple[str, int, bytes]:
    if any(name in {b"content-length", b"transfer-encoding"} for name, _ in request.headers):
        raise _Malformed("CONNECT has no body")
    return *_authority(request.target, None), b""


def _url_target(request: h11.Request) -> tuple[str, int, bytes]:
    match = _ABSOLUTE_URL.fullmatch(request.target)
    if match is None:
        raise _Malformed("this is a proxy: it accepts CONNECT and absolute http:// URLs")
    host, port = _authority(match["authority"], HTTP_PORT)
    if any(
        _authority(value, HTTP_PORT) != (host, port) for name, value in request.headers if name == b"host"
    ):
        raise _Malformed("the Host header names another host than the URL")
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
        raise _Malformed("a request has Content-Length or Transfer-Encoding, not both")
    path = match["path"]
    return host, port, path if path.startswith(b"/") else b"/" + path


def _authority(text: bytes, default: int | None) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text.decode("latin-1"))
    port = int(match["port"]) if match and match["port"] else default
    if match is None or not port:
        raise _Malformed(f"not HOST:PORT: {text[:80]!r}")
    try:
        return normalize_host(match["host"]), port
    except HostNotAllowed as fault:
        raise _Malformed(str(fault)) from None


async def _read_hello(stream: SocketStream, received: bytes, host: str) -> bytes:
    """Read a complete TLS client hello, and return it if it is for ``host``.

    Raises:
        NotTls: it is not a hello, or for another host.
    """
    for _ in range(_MAX_HELLO_PIECES):
        name = parse_server_name(received)
        if name is not None:
            if name.removesuffix(".") not in {"", host} or (name and is_address(host)):
                raise NotTls(f"its server name is {name!r}")
            return received
        received += await stream.receive(MAX_HELLO_BYTES)
    raise NotTls("its client hello comes in too many pieces")


async def _copy(source: SocketStream, sink: SocketStream, idle: anyio.CancelScope) -> None:
    with contextlib.suppress(anyio.EndOfStream):
        while True:
            data = await source.receive(CHUNK_BYTES)
            idle.deadline = anyio.current_time() + IDLE_S
            await sink.send(data)
    await sink.send_eof()


async def _exchange(
    client: HttpPeer, reached: UpstreamConnection, request: h11.Request, path: bytes, idle: anyio.CancelScope
) -> None:
    """Forward one request and its response, both parsed and written again."""
    server = HttpPeer(reached.stream, h11.CLIENT)
    target = request.target if reached.via_proxy else path
    await server.send(end_to_end_request(request, target, reached.headers))

    def alive() -> None:
        idle.deadline = anyio.current_time() + IDLE_S

    async def send_body() -> None:
        with contextlib.suppress(*PEER_ERRORS):  # the response may still arrive
            await client.forward_body(server, alive)

    complete = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_body)
        with contextlib.suppress(*PEER_ERRORS):
            await server.forward_response(client, alive)
            complete = True
        tasks.cancel_scope.cancel()
    if not complete:
        await client.send_text(502, "codetaste: the response of the server was incomplete or invalid")
