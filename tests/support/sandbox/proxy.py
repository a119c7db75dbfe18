"""A filtering proxy of the test's own, and what stands on both sides of it."""

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
ENOUGH_S = 30.0


@dataclass
class Server:
    """A server of the host: keeps what it is sent, and answers with ``answer`` once there is a head."""

    answer: bytes | Callable[[SocketStream, bytes], Awaitable[None]] = OK
    heard: list[bytes] = field(default_factory=list)
    port: int = 0

    async def _talk(self, stream: SocketStream) -> None:
        async with stream:
            self.heard.append(b"")
            at = len(self.heard) - 1
            with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while b"\r\n\r\n" not in self.heard[at] and b"\n" not in self.heard[at][-1:]:
                    self.heard[at] += await stream.receive()
                if callable(self.answer):
                    await self.answer(stream, self.heard[at])
                else:
                    await stream.send(self.answer)
                while True:
                    self.heard[at] += await stream.receive()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Server]:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, self._talk)
            yield self
            tasks.cancel_scope.cancel()


@dataclass
class Stand:
    """A running proxy: ``ask`` sends it bytes and returns all that comes back."""

    socket: Path
    env: Mapping[str, str]
    visits: list[HostRequest]

    async def ask(self, *pieces: bytes, half_close: bool = False) -> bytes:
        said = b""
        with anyio.fail_after(ENOUGH_S):
            async with await anyio.connect_unix(self.socket) as stream:
                with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    for piece in pieces:
                        await stream.send(piece)
                    if half_close:
                        await stream.send_eof()
                    while True:
                        said += await stream.receive()
        return said

    async def tunnel(self, authority: str) -> SocketStream:
        """Open a tunnel; close it yourself."""
        stream = await anyio.connect_unix(self.socket)
        await stream.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        said = b""
        with anyio.fail_after(ENOUGH_S):
            while b"\r\n\r\n" not in said:
                said += await stream.receive(1)
        assert said.startswith(b"HTTP/1.1 200"), said
        return stream


@contextlib.asynccontextmanager
async def stand(*hosts: str, environ: Mapping[str, str] | None = None) -> AsyncIterator[Stand]:
    visits: list[HostRequest] = []
    async with open_allowlist_egress(hosts, note=visits.append, environ=environ or {}) as egress:
        (way,) = egress.forwards
        yield Stand(way.socket, egress.env, visits)


def get(url: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    host = url.partition("://")[2].partition("/")[0]
    lines = [f"{method} {url} HTTP/1.1", f"Host: {host}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


@functools.lru_cache
def hello(name: str) -> bytes:
    """The first bytes of a TLS client that asks for ``name``, "" for one that names nobody."""
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
