"""A filtering proxy on a Unix socket: the only way out of a box whose policy is an allowlist.

It speaks HTTP/1.1 as programs expect of ``http_proxy``: requests with a whole URL, and CONNECT. What may be
reached is decided in ``proxy_rules.py``; how it is reached in ``proxy_upstream.py``. Here everything that
comes from inside is hostile: one request a connection, its head and body read by h11 and written anew, so
that nothing can be smuggled past; a tunnel for the web must begin with a TLS hello for the host asked for.

Why our own: proxy.py and mitmproxy are whole frameworks with threads or loops and certificates of their own,
and check no address; the parser, where the danger is, is a library.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from codetaste.sandbox.client_hello import HELLO_BYTES, NotTls, server_name
from codetaste.sandbox.proxy_peer import CHUNK, TROUBLE, Peer, end_to_end
from codetaste.sandbox.proxy_rules import HTTP, HTTPS, Refused, choose, host_name, is_address
from codetaste.sandbox.proxy_upstream import Reached, reach

if TYPE_CHECKING:
    from collections.abc import Callable

    import h11
    from anyio.abc import SocketListener, SocketStream

    from codetaste.sandbox.proxy_rules import Entry
    from codetaste.sandbox.proxy_upstream import HostProxies

CONNECTIONS = 64
"""At once; more wait to be accepted, and cost us nothing."""
HEAD_S = 20.0
IDLE_S = 300.0
"""Without a byte in either direction: a server may take its time to build an answer."""
_VISITS = 1000
_LOOKUPS = 4
_HELLO_PIECES = 64
_AFTER_FULL_S = 0.2
_URL = re.compile(rb"http://(?P<authority>[^/?#@\\\s]+)(?P<path>[^#\s]*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[^]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")


class _Malformed(Exception):
    """A request that no well-behaved client sends."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A host that was asked for; ``refused`` says why it was not let through, "" that it was."""

    host: str
    port: int
    refused: str = ""

    def __str__(self) -> str:
        if self.refused:
            return f"refused {self.host}:{self.port}: {self.refused}"
        return f"let through {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Proxy:
    """What is let through, and who is told of it: once for each different visit, and not without bound."""

    entries: tuple[Entry, ...]
    upstream: HostProxies
    note: Callable[[Visit], None]
    _noted: set[Visit] = field(default_factory=set)
    _lookups: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_LOOKUPS))

    async def serve(self, listener: SocketListener) -> None:
        """Serve until cancelled."""
        limiter = anyio.Semaphore(CONNECTIONS)
        async with anyio.create_task_group() as tasks:
            while True:
                await limiter.acquire()
                try:
                    client = await listener.accept()
                except OSError:  # no descriptor left: others may give theirs back
                    limiter.release()
                    await anyio.sleep(_AFTER_FULL_S)
                    continue
                tasks.start_soon(self._serve_one, client, limiter)

    async def _serve_one(self, client: SocketStream, limiter: anyio.Semaphore) -> None:
        try:
            async with client:
                peer = Peer.server(client)
                with contextlib.suppress(*TROUBLE):
                    await self._answer(peer)
        except Exception as fault:  # noqa: BLE001 - what one connection does must not end the others
            self._tell(Visit("?", 0, f"the proxy failed: {type(fault).__name__}: {fault}"))
        finally:
            limiter.release()

    async def _answer(self, client: Peer) -> None:
        """Answer one request, whatever it is."""
        request = None
        with anyio.move_on_after(HEAD_S):
            request = await client.request()
        if request is None:
            return
        try:
            await self._pass(client, request)
        except _Malformed as fault:
            await client.say(400, str(fault))

    async def _pass(self, client: Peer, request: h11.Request) -> None:
        tunnel = request.method == b"CONNECT"
        host, port, path = _connect_target(request) if tunnel else _url_target(request)
        try:
            entry = choose(self.entries, host, port, tunnel=tunnel)
            reached = await reach(entry, host, port, self.upstream, self._lookups, tunnel=tunnel)
        except Refused as refusal:
            self._tell(Visit(host, port, str(refusal)))
            await client.say(403, f"codetaste: {refusal}")
            return
        except (OSError, TimeoutError) as fault:
            await client.say(
                502, f"codetaste: {host}:{port} cannot be reached: {fault or 'it took too long'}"
            )
            return
        async with reached.stream:
            self._tell(Visit(host, port))
            with anyio.CancelScope(deadline=anyio.current_time() + IDLE_S) as idle:
                if tunnel:
                    await self._tunnel(client, reached, host, tls_only=entry.port is None, idle=idle)
                else:
                    await _exchange(client, reached, request, path, idle)

    async def _tunnel(
        self, client: Peer, reached: Reached, host: str, *, tls_only: bool, idle: anyio.CancelScope
    ) -> None:
        begun = await client.switch()
        if tls_only:
            try:
                begun = await _hello(client.stream, begun, host)
            except NotTls as fault:
                self._tell(
                    Visit(host, HTTPS, f"through its tunnel went something else than TLS for it: {fault}")
                )
                return
        await reached.stream.send(begun)
        if reached.already:
            await client.stream.send(reached.already)
        async with anyio.create_task_group() as tasks:

            async def carry(source: SocketStream, sink: SocketStream) -> None:
                try:
                    await _copy(source, sink, idle)
                except TROUBLE:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(carry, client.stream, reached.stream)
            tasks.start_soon(carry, reached.stream, client.stream)

    def _tell(self, visit: Visit) -> None:
        if visit not in self._noted and len(self._noted) < _VISITS:
            self._noted.add(visit)
            self.note(visit)


def _connect_target(request: h11.Request) -> tuple[str, int, bytes]:
    if any(name in {b"content-length", b"transfer-encoding"} for name, _ in request.headers):
        raise _Malformed("CONNECT has no body")
    return *_authority(request.target, None), b""


def _url_target(request: h11.Request) -> tuple[str, int, bytes]:
    match = _URL.fullmatch(request.target)
    if match is None:
        raise _Malformed("this is a proxy: it takes CONNECT and whole http:// URLs")
    host, port = _authority(match["authority"], HTTP)
    if any(_authority(value, HTTP) != (host, port) for name, value in request.headers if name == b"host"):
        raise _Malformed("the Host header names another host than the URL")
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
        raise _Malformed("a request's body has one length, and not two")
    path = match["path"]
    return host, port, path if path.startswith(b"/") else b"/" + path


def _authority(text: bytes, default: int | None) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text.decode("latin-1"))
    port = int(match["port"]) if match and match["port"] else default
    if match is None or not port:
        raise _Malformed(f"not HOST:PORT: {text[:80]!r}")
    try:
        return host_name(match["host"]), port
    except Refused as fault:
        raise _Malformed(str(fault)) from None


async def _hello(stream: SocketStream, begun: bytes, host: str) -> bytes:
    """Read a TLS client hello whole, and return it once it is one for ``host``.

    Raises:
        NotTls: it is none, or for another host.
    """
    for _ in range(_HELLO_PIECES):
        named = server_name(begun)
        if named is not None:
            if named.removesuffix(".") not in {"", host} or (named and is_address(host)):
                raise NotTls(f"it asks for {named!r}")
            return begun
        begun += await stream.receive(HELLO_BYTES)
    raise NotTls("its hello comes in crumbs")


async def _copy(source: SocketStream, sink: SocketStream, idle: anyio.CancelScope) -> None:
    with contextlib.suppress(anyio.EndOfStream):
        while True:
            data = await source.receive(CHUNK)
            idle.deadline = anyio.current_time() + IDLE_S
            await sink.send(data)
    await sink.send_eof()


async def _exchange(
    client: Peer, reached: Reached, request: h11.Request, path: bytes, idle: anyio.CancelScope
) -> None:
    """Pass one request on and its answer back, each written anew from what was understood of it."""
    server = Peer.client(reached.stream)
    target = request.target if reached.by_proxy else path
    await server.send(end_to_end(request, target, reached.headers))

    def alive() -> None:
        idle.deadline = anyio.current_time() + IDLE_S

    async def ask() -> None:
        with contextlib.suppress(*TROUBLE):  # the answer may come all the same
            await client.pass_body(server, alive)

    answered = False
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        with contextlib.suppress(*TROUBLE):
            await server.pass_answer(client, alive)
            answered = True
        tasks.cancel_scope.cancel()
    if not answered:
        await client.say(502, "codetaste: the server's answer broke off or made no sense")
