"""A filtering proxy for tests, with a client and a server."""

from __future__ import annotations

import contextlib
import functools
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import SocketStream

from codetaste.sandbox.egress import open_allowlist_egress
from codetaste.sandbox.proxy.server import HostRequest

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
TIMEOUT_S = 200.0


@dataclass
class HostServer:
    """A server of the host: records the bytes it receives, and sends ``response`` after a head."""

    response: bytes | Callable[[SocketStream, bytes], Awaitable[None]] = OK
    received: list[bytes] = field(default_factory=list)
    port: int = 0

    async def _talk(self, stream: SocketStream) -> None:
        async with stream:
            self.received.append(b"")
            index = len(self.received) - 1
            with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while b"\r\n\r\n" not in self.received[index] and b"\n" not in self.received[index][-1:]:
                    self.received[index] += await stream.receive()
                if callable(self.response):
                    await self.response(stream, self.received[index])
                else:
                    await stream.send(self.response)
                while True:
                    self.received[index] += await stream.receive()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[HostServer]:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, self._talk)
            yield self
            tasks.cancel_scope.cancel()


@dataclass
class ProxyClient:
    """A client of a running proxy."""

    socket: Path
    env: Mapping[str, str]
    requests: list[HostRequest]

    async def exchange(self, *pieces: bytes, half_close: bool = False) -> bytes:
        response = b""
        with anyio.fail_after(TIMEOUT_S):
            async with await anyio.connect_unix(self.socket) as stream:
                with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    for piece in pieces:
                        await stream.send(piece)
                    if half_close:
                        await stream.send_eof()
                    while True:
                        response += await stream.receive()
        return response

    async def tunnel(self, authority: str) -> SocketStream:
        """Open a tunnel; the caller closes it."""
        stream = await anyio.connect_unix(self.socket)
        await stream.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        response = b""
        with anyio.fail_after(TIMEOUT_S):
            while b"\r\n\r\n" not in response:
                response += await stream.receive(1)
        assert response.startswith(b"HTTP/1.1 200"), response
        return stream


@contextlib.asynccontextmanager
async def open_proxy(*hosts: str, environ: Mapping[str, str] | None = None) -> AsyncIterator[ProxyClient]:
    requests: list[HostRequest] = []
    async with open_allowlist_egress(hosts, note=requests.append, environ=environ or {}) as egress:
        (forward,) = egress.forwards
        yield ProxyClient(forward.socket, egress.env, requests)


def get(url: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    host = url.partition("://")[2].partition("/")[0]
    lines = [f"{method} {url} HTTP/1.1", f"Host: {host}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


@functools.lru_cache
def client_hello(name: str) -> bytes:
    """Return the ClientHello of a TLS client for the server ``name``, or without a name if it is ""."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    client = context.wrap_bio(incoming, outgoing, server_hostname=name or None)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
