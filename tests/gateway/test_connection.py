"""The connections to a provider: used once without TLS, only after the reservation, replies decompressed."""

from __future__ import annotations

import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpcore2
import pytest
from anyio.abc import ByteStream
from anyio.streams.tls import TLSListener

from codetaste.errors import MalformedReply, ModelUnavailable
from codetaste.gateway.connection import ProviderConnections
from codetaste.gateway.gateway import Gateway
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from support.gateway.billed_clients import make_gateway_model
from support.gateway.jobs import PATHS, admit_client, make_request, read_journal, run_job
from support.llm.provider import server as provider
from support.llm.provider.exchange import Exchange

TIMEOUTS_S = {"connect": 20.0, "read": 20.0, "write": 20.0, "pool": 20.0}
HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class FixedReplyServer:
    """A server that sends the same reply to every request, and counts connections."""

    def __init__(self, response: bytes, *, hang_up: bool = False) -> None:
        self.response, self.hang_up, self.port = response, hang_up, 0
        self.connections = 0
        self.received = b""

    async def handle(self, stream: ByteStream) -> None:
        self.connections += 1
        async with stream:
            try:
                while True:
                    self.received += await stream.receive()
                    if self.received.endswith(b"body"):
                        await stream.send(self.response)
                        if self.hang_up:
                            return
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return


@asynccontextmanager
async def serving(
    server: FixedReplyServer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FixedReplyServer]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server.port = listener.listeners[0].extra(anyio.abc.SocketAttribute.local_port)
    serve = listener.serve if tls is None else TLSListener(listener, tls, standard_compatible=False).serve
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, server.handle)
        yield server
        tasks.cancel_scope.cancel()
    await listener.aclose()


async def post(
    connections: ProviderConnections, host: str, port: int, *, secure: bool = False
) -> tuple[int, bytes]:
    url = httpcore2.URL(scheme=b"https" if secure else b"http", host=host.encode(), port=port, target=b"/v1")
    response = await connections.post(url, [(b"host", host.encode())], b"body", TIMEOUTS_S)
    try:
        return response.status, b"".join([piece async for piece in response.chunks()])
    finally:
        await response.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_plain_http_requests_use_one_connection_each(
    host: str,
) -> None:
    async with serving(FixedReplyServer(HELLO)) as server:
        connections = ProviderConnections(None)
        for _ in range(3):
            assert await post(connections, host, server.port) == (200, b"hello")
        assert server.connections == 3


@pytest.mark.anyio
async def test_tls_connection_is_reused_and_untrusted_certificate_is_free(
    tmp_path: Path, require: Callable[..., None]
) -> None:
    require("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost"]
    await anyio.run_process([*command, "-addext", "subjectAltName=DNS:localhost"])
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificate, key)
    client_context = ssl.create_default_context(cafile=certificate)
    async with serving(FixedReplyServer(HELLO), server_context) as server:
        connections = ProviderConnections(client_context)
        for _ in range(3):
            assert await post(connections, "localhost", server.port, secure=True) == (200, b"hello")
        await connections.aclose()
        assert server.connections == 1
        strict = ProviderConnections(ssl.create_default_context())
        with pytest.raises(ModelUnavailable, match="cannot be reached") as failed:
            await post(strict, "localhost", server.port, secure=True)
        await strict.aclose()
    assert failed.value.unbilled


@pytest.mark.anyio
async def test_refused_connection_is_not_billed() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(ModelUnavailable, match="cannot be reached") as failed:
            await post(ProviderConnections(None), "127.0.0.1", port)
    assert failed.value.unbilled


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("response", "message"),
    [
        pytest.param(b"", "before it answered", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhel", "in the middle", id="half"),
        pytest.param(b"no HTTP\r\n\r\n", "before it answered", id="noise"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n", "before it answered", id="only a hint"),
    ],
)
async def test_truncated_response_may_have_been_billed(response: bytes, message: str) -> None:
    async with serving(FixedReplyServer(response, hang_up=True)) as server:
        with pytest.raises(ModelUnavailable, match=message) as failed:
            await post(ProviderConnections(None), "127.0.0.1", server.port)
    assert not failed.value.unbilled


@pytest.mark.anyio
async def test_unrequested_content_encoding_is_decoded_or_refused() -> None:
    data = gzip.compress(b"hello" * 100)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\ncontent-encoding: %s\r\n\r\n"
    async with serving(FixedReplyServer(head % (len(data), b"gzip") + data)) as server:
        connections = ProviderConnections(None)
        assert await post(connections, "127.0.0.1", server.port) == (200, b"hello" * 100)
        server.response = head % (len(data), b"br") + data
        with pytest.raises(MalformedReply, match="compressed by br"):
            await post(connections, "127.0.0.1", server.port)
        server.response = head % (4, b"gzip") + b"none"
        with pytest.raises(MalformedReply, match="cannot be decompressed"):
            await post(connections, "127.0.0.1", server.port)


@pytest.mark.anyio
async def test_request_is_sent_only_after_reservation_is_durable(
    tmp_path: Path,
) -> None:
    reserved: list[int] = []

    async def handle_exchange(exchange: Exchange) -> None:
        # The request is complete here, so its journal line must already exist.
        reserved.append(sum(line["event"] == "reserved" for line in read_journal(tmp_path)))
        await provider.reply(provider.text("hello"))(exchange)

    with provider.serving() as server:
        server.default = handle_exchange

        async def body(ctx: JobContext, gateway: Gateway) -> Json:
            async with admit_client(ctx, gateway, "openai-chat", ["expensive"]) as (_, client):
                for _ in range(5):
                    response = await client.post(
                        PATHS["openai-chat"], json=make_request("openai-chat", stream=True)
                    )
                    assert response.status_code == 200
            return None

        outcome, _ = await run_job(tmp_path, [make_gateway_model("openai-chat", server.url, tmp_path)], body)
    assert outcome.status is Status.DONE, outcome.error
    assert reserved == [1, 2, 3, 4, 5]


@pytest.mark.anyio
async def test_request_refused_by_budget_opens_no_connection(tmp_path: Path) -> None:
    async with serving(FixedReplyServer(HELLO)) as server:

        async def body(ctx: JobContext, gateway: Gateway) -> Json:
            async with admit_client(ctx, gateway, "openai-chat", ["expensive"]) as (_, client):
                return (await client.post(PATHS["openai-chat"], json=make_request("openai-chat"))).status_code

        url = f"http://127.0.0.1:{server.port}"
        outcome, _ = await run_job(
            tmp_path, [make_gateway_model("openai-chat", url, tmp_path)], body, usd="0.0001"
        )
    assert outcome.value in {402, 403}
    assert server.connections == 0
