"""Tunnels of the filtering proxy: what may begin one, and that it carries whatever comes then."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import SocketStream
from hypothesis import given, settings
from hypothesis import strategies as some

from codetaste.sandbox.proxy.tls import NotTls, parse_server_name
from support.sandbox.proxy import ENOUGH_S, Server, hello, stand

pytestmark = pytest.mark.anyio


async def test_tunnel_requires_tls_hello_for_requested_host() -> None:
    async def echo(stream: SocketStream, _head: bytes) -> None:
        await stream.send(b"server's hello")

    async with Server(echo).listening() as server, stand(f"web.test=127.0.0.1:{server.port}") as proxy:
        for name in ("web.test", ""):
            sent = hello(name)
            stream = await proxy.tunnel("web.test:443")
            with anyio.fail_after(ENOUGH_S):
                async with stream:
                    for at in range(0, len(sent), 100):
                        await stream.send(sent[at : at + 100])
                    await stream.send(b"\n\r\n\r\n")
                    assert await stream.receive() == b"server's hello"
            assert server.heard[-1].startswith(sent)
        count = len(server.heard)
        for first in (
            hello("other.test"),
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"SSH-2.0-x\r\n",
            b"\x16\x03\x01\x00\x01\x02",
        ):
            stream = await proxy.tunnel("web.test:443")
            with anyio.fail_after(ENOUGH_S):
                async with stream:
                    await stream.send(first)
                    with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                        await stream.receive()
        assert b"".join(server.heard[count:]) == b""
        assert sum("not begin with TLS" in visit.refusal for visit in proxy.visits) >= 2


async def test_a_tunnel_to_a_named_port_carries_anything_and_half_closes() -> None:
    async def count(stream: SocketStream, head: bytes) -> None:
        total = len(head)
        try:
            while True:
                total += len(await stream.receive())
        except anyio.EndOfStream:
            await stream.send(b"%d bytes" % total)
            await stream.aclose()

    async with Server(count).listening() as server, stand(f"any.test:9418=127.0.0.1:{server.port}") as proxy:
        request = b"CONNECT any.test:9418 HTTP/1.1\r\nHost: any.test:9418\r\n\r\n"
        said = await proxy.ask(request + b"early\n\r\n\r\n", b"x" * 1_000_000, half_close=True)
        assert said.endswith(b"1000010 bytes")


@given(some.binary(max_size=600), some.integers(0, 600))
@settings(max_examples=300)
def test_tunnel_other_bytes_are_distinguished_from_hello(noise: bytes, cut: int) -> None:
    real = hello("web.test")
    for data in (noise, real[:cut] + noise, b"\x16\x03\x01" + noise):
        try:
            assert isinstance(parse_server_name(data), str | None)
        except NotTls:
            continue


def test_client_hello_is_parsed_across_any_records() -> None:
    real = hello("Web.Test")
    assert parse_server_name(real) == "web.test"
    assert all(parse_server_name(real[:cut]) is None for cut in range(len(real)))
    message = real[5:]
    split = b"".join(
        real[:3] + len(part).to_bytes(2, "big") + part for part in (message[:7], message[7:90], message[90:])
    )
    assert parse_server_name(split) == "web.test"
    assert parse_server_name(hello("")) == ""
