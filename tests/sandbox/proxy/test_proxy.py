"""The filtering proxy: what it forwards, refuses and reports."""

from __future__ import annotations

import stat

import anyio
import pytest
from anyio.abc import SocketStream

from codetaste.errors import ConfigError
from codetaste.sandbox import egress
from codetaste.sandbox.proxy.server import MAX_CONNECTIONS, HostRequest
from support.sandbox.proxy import TIMEOUT_S, HostServer, closed_port, get, open_proxy

pytestmark = pytest.mark.anyio


async def test_request_with_absolute_url_reaches_the_host() -> None:
    async with HostServer().listening() as server, open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy:
        response = await proxy.exchange(
            get(
                "http://Web.test/a/b?c=d",
                "Connection: x-mine",
                "X-Mine: 1",
                "Proxy-Authorization: Basic c2VjcmV0",
            )
        )
        assert response.startswith(b"HTTP/1.1 200 OK\r\n")
        assert response.endswith(b"\r\n\r\nhello")
        assert b"connection: close" in response
        (received,) = server.received
        assert received.startswith(b"GET /a/b?c=d HTTP/1.1\r\n")
        assert b"Host: Web.test\r\n" in received.replace(b"host:", b"Host:")
        assert b"x-mine" not in received.lower()
        assert b"proxy-" not in received.lower()
        assert proxy.requests == [HostRequest("web.test", 80)]


async def test_proxy_passes_bodies_of_every_framing() -> None:
    body = bytes(range(256)) * 5000
    chunked_response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (
        len(body),
        body,
    )
    async with (
        HostServer(chunked_response).listening() as server,
        open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy,
    ):
        request = get("http://web.test/", f"Content-Length: {len(body)}", method="POST", body=body)
        response = await proxy.exchange(request)
        assert response.count(b"\r\n\r\n") >= 1
        assert body[:10_000] in response
        assert response.endswith(b"0\r\n\r\n")
        assert body in server.received[0]
        chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b"one", b"two")) + b"0\r\n\r\n"
        await proxy.exchange(
            get("http://web.test/", "Transfer-Encoding: chunked", method="PUT", body=chunked)
        )
        assert server.received[1].endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


async def test_proxy_passes_response_ended_by_close_or_without_body() -> None:
    async with HostServer().listening() as server, open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy:

        async def until_closed(stream: SocketStream, _head: bytes) -> None:
            await stream.send(b"HTTP/1.0 200 OK\r\n\r\nwhole body")
            await stream.aclose()

        server.response = until_closed
        assert (await proxy.exchange(get("http://web.test/"))).rstrip(b"\r\n0").endswith(b"whole body")
        server.response = b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"
        response = await proxy.exchange(get("http://web.test/", method="HEAD"))
        assert b"content-length: 1234" in response.lower()


async def test_event_stream_is_forwarded_without_delay() -> None:
    first_received = anyio.Event()

    async def events(stream: SocketStream, _head: bytes) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await first_received.wait()
        await stream.send(b"data: 2\n\n")
        await stream.aclose()

    async with (
        HostServer(events).listening() as server,
        open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy,
    ):
        with anyio.fail_after(TIMEOUT_S):
            async with await anyio.connect_unix(proxy.socket) as stream:
                await stream.send(get("http://web.test/"))
                response = b""
                while b"data: 1" not in response:
                    response += await stream.receive()
                first_received.set()
                while b"data: 2" not in response:
                    response += await stream.receive()


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(get("http://other.test/"), id="another name"),
        pytest.param(get("http://web.test.other.test/"), id="a name below another"),
        pytest.param(get("http://web.test:81/"), id="another port"),
        pytest.param(get("http://127.0.0.1:{port}/"), id="its address"),
        pytest.param(get("http://[::ffff:127.0.0.1]:{port}/"), id="its address as version 6"),
        pytest.param(get("http://localhost:{port}/"), id="localhost"),
        pytest.param(
            b"CONNECT web.test:80 HTTP/1.1\r\nHost: web.test:80\r\n\r\n", id="a tunnel for plain HTTP"
        ),
        pytest.param(b"CONNECT web.test:22 HTTP/1.1\r\nHost: web.test:22\r\n\r\n", id="a tunnel elsewhere"),
        pytest.param(b"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\n\r\n", id="a tunnel to an address"),
    ],
)
async def test_proxy_unlisted_host_is_refused_and_reported(request_: bytes) -> None:
    async with HostServer().listening() as server, open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy:
        response = await proxy.exchange(request_.replace(b"{port}", str(server.port).encode()))
        assert response.startswith(b"HTTP/1.1 403 "), response
        assert b"is not allowed from this sandbox" in response
        assert server.received == []
        (request,) = proxy.requests
        assert request.refusal
        assert request.host in str(request)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n", id="not a proxy request"),
        pytest.param(get("https://web.test/"), id="another scheme"),
        pytest.param(get("ftp://web.test/"), id="yet another scheme"),
        pytest.param(b"GET http://web.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", id="another host"),
        pytest.param(b"GET http://web.test/ HTTP/1.1\r\nHost: web.test\r\nHost: a\r\n\r\n", id="two hosts"),
        pytest.param(b"GET http://web.test/ HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(get("http://a@web.test/"), id="a user"),
        pytest.param(get("http://web.test@other.test/"), id="a user that looks like a host"),
        pytest.param(get("http://web.test\\@other.test/"), id="a backslash"),
        pytest.param(get("http://web.test:0/"), id="no port"),
        pytest.param(get("http://web.test:80:80/"), id="two ports"),
        pytest.param(get("http://"), id="no authority"),
        pytest.param(
            get("http://web.test/", "Content-Length: 1", "Content-Length: 2", method="POST"), id="two lengths"
        ),
        pytest.param(get("http://web.test/", "Content-Length: +5", method="POST"), id="an invalid length"),
        pytest.param(
            get("http://web.test/", "Content-Length: 4", "Transfer-Encoding: chunked", method="POST"),
            id="a length and chunks",
        ),
        pytest.param(
            get("http://web.test/", "Transfer-Encoding: xchunked", method="POST"), id="an unknown encoding"
        ),
        pytest.param(
            get("http://web.test/", "Transfer-Encoding: gzip, chunked", method="POST"), id="two encodings"
        ),
        pytest.param(
            b"GET http://web.test/ HTTP/1.1\r\nHost : web.test\r\n\r\n", id="a space before the colon"
        ),
        pytest.param(b"GET http://web.test/ HTTP/1.1\r\nHost: web.test\r\nA: b\0c\r\n\r\n", id="a zero"),
        pytest.param(get("http://web.test/", "A: " + "b" * 100_000), id="an endless head"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="TLS"),
        pytest.param(b"CONNECT web.test HTTP/1.1\r\nHost: web.test\r\n\r\n", id="a tunnel to no port"),
        pytest.param(
            b"CONNECT web.test:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
            id="a tunnel with a body",
        ),
    ],
)
async def test_proxy_malformed_request_is_refused_without_connecting(request_: bytes) -> None:
    async with HostServer().listening() as server, open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy:
        response = await proxy.exchange(request_, half_close=True)
        assert response.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ", b"HTTP/1.1 431 ")), response
        assert server.received == []


async def test_second_request_in_a_connection_is_not_forwarded() -> None:
    async with HostServer().listening() as server, open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy:
        first = get("http://web.test/first", "Content-Length: 2", method="POST", body=b"ab")
        response = await proxy.exchange(first + get("http://web.test/second"))
        assert response.count(b"HTTP/1.1 ") == 1
        assert [received.count(b"HTTP/1.1") for received in server.received] == [1]


async def test_proxy_private_address_requires_explicit_entry() -> None:
    async with HostServer().listening() as server:
        async with open_proxy(f"localhost:{server.port}") as proxy:
            response = await proxy.exchange(get(f"http://localhost:{server.port}/"))
            assert response.startswith(b"HTTP/1.1 403 ")
            assert b"private network" in response
            assert server.received == []
        async with open_proxy(f"localhost:{server.port}=private", f"127.0.0.1:{server.port}") as proxy:
            for host in ("localhost", "127.0.0.1"):
                response = await proxy.exchange(get(f"http://{host}:{server.port}/"))
                assert response.endswith(b"hello")


async def test_unreachable_or_invalid_server_gets_a_bad_gateway_response() -> None:
    async with (
        HostServer(b"SSH-2.0-nonsense\r\n\r\n").listening() as server,
        open_proxy(f"no.test=127.0.0.1:{closed_port()}", f"bad.test=127.0.0.1:{server.port}") as proxy,
    ):
        response = await proxy.exchange(get("http://no.test/"))
        assert response.startswith(b"HTTP/1.1 502 ")
        assert b"cannot be reached" in response
        assert (await proxy.exchange(get("http://bad.test/"))).startswith(b"HTTP/1.1 502 ")


async def test_proxy_excess_connections_wait_and_are_served() -> None:
    async with HostServer().listening() as server, open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy:
        idle = [await anyio.connect_unix(proxy.socket) for _ in range(MAX_CONNECTIONS)]
        responses: list[bytes] = []

        async def send_request() -> None:
            responses.append(await proxy.exchange(get("http://web.test/")))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(send_request)
            await anyio.sleep(0.2)
            assert responses == []
            for stream in idle:
                await stream.aclose()
        assert len(responses) == 5
        assert all(response.endswith(b"hello") for response in responses)


async def test_proxy_client_disconnect_closes_server_connection() -> None:
    disconnected = anyio.Event()

    async def send_until_closed(stream: SocketStream, _head: bytes) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000)
        try:
            while True:
                await stream.send(b"x" * 1000)
                await anyio.sleep(0.01)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            disconnected.set()

    async with (
        HostServer(send_until_closed).listening() as server,
        open_proxy(f"web.test=127.0.0.1:{server.port}") as proxy,
    ):
        async with await anyio.connect_unix(proxy.socket) as stream:
            await stream.send(get("http://web.test/"))
            await stream.receive()
        with anyio.fail_after(TIMEOUT_S):
            await disconnected.wait()


async def test_proxy_of_the_host_is_used_except_for_placed_hosts() -> None:
    async with HostServer().listening() as upstream_proxy, HostServer().listening() as server:
        environ = {
            "http_proxy": f"http://user:p%40ss@127.0.0.1:{upstream_proxy.port}",
            "no_proxy": "direct.test,.inner.test",
        }
        environ["HTTPS_PROXY"] = f"127.0.0.1:{upstream_proxy.port}"
        hosts = ("far.test", "far.test:22", f"near.test=127.0.0.1:{server.port}", "direct.test")
        async with open_proxy(*hosts, environ=environ) as proxy:
            assert (await proxy.exchange(get("http://far.test/x"))).endswith(b"hello")
            head = upstream_proxy.received[0].lower()
            assert head.startswith(b"get http://far.test/x http/1.1\r\n")
            assert b"proxy-authorization: basic dxnlcjpwqhnz" in head
            assert (await proxy.exchange(get("http://near.test/"))).endswith(b"hello")
            assert len(server.received) == 1
            assert (await proxy.exchange(get("http://direct.test/"))).startswith(b"HTTP/1.1 502 ")
            upstream_proxy.response = b"HTTP/1.1 200 fine\r\n\r\nbanner"
            stream = await proxy.tunnel("far.test:22")
            async with stream:
                with anyio.fail_after(TIMEOUT_S):
                    assert await stream.receive() == b"banner"
            assert upstream_proxy.received[1].startswith(b"CONNECT far.test:22 HTTP/1.1\r\n")
            upstream_proxy.response = b"HTTP/1.1 407 no\r\nContent-Length: 0\r\n\r\n"
            response = await proxy.exchange(b"CONNECT far.test:22 HTTP/1.1\r\nHost: a\r\n\r\n")
            assert response.startswith(b"HTTP/1.1 502 ")
            assert b"407" in response
        with pytest.raises(ConfigError, match="http://HOST:PORT"):
            async with open_proxy("a.test", environ={"https_proxy": "socks5://127.0.0.1:1"}):
                pass


async def test_proxy_socket_is_usable_by_sandbox_user_only() -> None:
    async with open_proxy("web.test") as proxy:
        assert stat.S_IMODE(proxy.socket.stat().st_mode) == 0o666
        assert stat.S_IMODE(proxy.socket.parent.stat().st_mode) == 0o711
        assert stat.S_IMODE(proxy.socket.parent.parent.stat().st_mode) == 0o700
        assert [each.name for each in proxy.socket.parent.iterdir()] == [proxy.socket.name]
        assert proxy.env["https_proxy"] == proxy.env["HTTPS_PROXY"] == "http://127.0.0.1:8788"
        assert "127.0.0.1" in proxy.env["no_proxy"]
    assert not proxy.socket.parent.parent.exists()


def test_egress_policies_can_be_joined() -> None:
    assert (
        egress.no_egress()
        == egress.join_egress()
        == egress.join_egress(egress.no_egress(), egress.no_egress())
    )
    assert egress.join_egress(egress.gateway_egress(egress.Path("/a")), egress.network_egress()).network


async def test_error_in_the_block_is_raised_unchanged() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with egress.open_allowlist_egress(["web.test"], environ={}):
            raise KeyError("mine")
