"""Tunnels of the filtering proxy: how they may start, and that they forward any data."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import SocketStream
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.sandbox.proxy.tls import NotTls, parse_server_name
from support.sandbox.proxy import TIMEOUT_S, HostServer, client_hello, open_proxy

pytestmark = pytest.mark.anyio


async def test_tunnel_requires_tls_hello_for_requested_host() -> None:
    async def echo(stream: SocketStream, _head: bytes) -> None:
        await stream.send(b"server's hello")

    async with (
        HostServer(echo).listening() as server,
        open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy,
    ):
        for name in ("web.test", ""):
            sent = client_hello(name)
            stream = await proxy.tunnel("web.test:443")
            with anyio.fail_after(TIMEOUT_S):
                async with stream:
                    for start in range(0, len(sent), 100):
                        await stream.send(sent[start : start + 100])
                    await stream.send(b"\n\r\n\r\n")
                    assert await stream.receive() == b"server's hello"
            assert server.received[-1].startswith(sent)
        count = len(server.received)
        for first in (
            client_hello("other.test"),
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"SSH-2.0-x\r\n",
            b"\x16\x03\x01\x00\x01\x02",
        ):
            stream = await proxy.tunnel("web.test:443")
            with anyio.fail_after(TIMEOUT_S):
                async with stream:
                    await stream.send(first)
                    with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                        await stream.receive()
        assert b"".join(server.received[count:]) == b""
        assert sum("not begin with TLS" in request.refusal for request in proxy.requests) >= 2


async def test_tunnel_to_an_allowed_port_forwards_any_data_and_half_close() -> None:
    async def count(stream: SocketStream, head: bytes) -> None:
        total = len(head)
        try:
            while True:
                total += len(await stream.receive())
        except anyio.EndOfStream:
            await stream.send(b"%d bytes" % total)
            await stream.aclose()

    async with (
        HostServer(count).listening() as server,
        open_proxy(f"any.test:9418=127.0.0.1:{server.port}") as proxy,
    ):
        request = b"CONNECT any.test:9418 HTTP/1.1\r\nHost: any.test:9418\r\n\r\n"
        response = await proxy.exchange(request + b"early\n\r\n\r\n", b"x" * 1_000_000, half_close=True)
        assert response.endswith(b"1000010 bytes")


@given(st.binary(max_size=600), st.integers(0, 600))
@settings(max_examples=300)
def test_random_bytes_are_parsed_or_refused(noise: bytes, cut: int) -> None:
    hello = client_hello("web.test")
    for data in (noise, hello[:cut] + noise, b"\x16\x03\x01" + noise):
        try:
            assert isinstance(parse_server_name(data), str | None)
        except NotTls:
            continue


def test_client_hello_is_parsed_from_incomplete_and_split_records() -> None:
    hello = client_hello("Web.Test")
    assert parse_server_name(hello) == "web.test"
    assert all(parse_server_name(hello[:cut]) is None for cut in range(len(hello)))
    message = hello[5:]
    split = b"".join(
        hello[:3] + len(part).to_bytes(2, "big") + part for part in (message[:7], message[7:90], message[90:])
    )
    assert parse_server_name(split) == "web.test"
    assert parse_server_name(client_hello("")) == ""
