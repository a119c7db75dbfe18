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
from support.gateway.billed_clients import provided
from support.gateway.jobs import PATHS, admitted, asked, journal, run
from support.llm.provider import server as provider
from support.llm.provider.exchange import Exchange

TIMEOUTS_S = {"connect": 20.0, "read": 20.0, "write": 20.0, "pool": 20.0}
HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class Served:
    """A server that gives one answer to whatever comes, and counts what came."""

    def __init__(self, answer: bytes, *, hang_up: bool = False) -> None:
        self.answer, self.hang_up, self.port = answer, hang_up, 0
        self.connections = 0
        self.heard = b""

    async def handle(self, stream: ByteStream) -> None:
        self.connections += 1
        async with stream:
            try:
                while True:
                    self.heard += await stream.receive()
                    if self.heard.endswith(b"body"):
                        await stream.send(self.answer)
                        if self.hang_up:
                            return
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return


@asynccontextmanager
async def serving(server: Served, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server.port = listener.listeners[0].extra(anyio.abc.SocketAttribute.local_port)
    serve = listener.serve if tls is None else TLSListener(listener, tls, standard_compatible=False).serve
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, server.handle)
        yield server
        tasks.cancel_scope.cancel()
    await listener.aclose()


async def posted(
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
    async with serving(Served(HELLO)) as server:
        connections = ProviderConnections(None)
        for _ in range(3):
            assert await posted(connections, host, server.port) == (200, b"hello")
        assert server.connections == 3


@pytest.mark.anyio
async def test_tls_connection_is_reused_and_untrusted_certificate_is_free(
    tmp_path: Path, require: Callable[..., None]
) -> None:
    require("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost"]
    await anyio.run_process([*made, "-addext", "subjectAltName=DNS:localhost"])
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(certificate, key)
    ours = ssl.create_default_context(cafile=certificate)
    async with serving(Served(HELLO), theirs) as server:
        connections = ProviderConnections(ours)
        for _ in range(3):
            assert await posted(connections, "localhost", server.port, secure=True) == (200, b"hello")
        await connections.aclose()
        assert server.connections == 1
        strict = ProviderConnections(ssl.create_default_context())
        with pytest.raises(ModelUnavailable, match="cannot be reached") as failed:
            await posted(strict, "localhost", server.port, secure=True)
        await strict.aclose()
    assert failed.value.unbilled


@pytest.mark.anyio
async def test_refused_connection_is_not_billed() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(ModelUnavailable, match="cannot be reached") as failed:
            await posted(ProviderConnections(None), "127.0.0.1", port)
    assert failed.value.unbilled


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(b"", "before it answered", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhel", "in the middle", id="half"),
        pytest.param(b"no HTTP\r\n\r\n", "before it answered", id="noise"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n", "before it answered", id="only a hint"),
    ],
)
async def test_an_answer_that_breaks_off_may_have_been_billed(answer: bytes, why: str) -> None:
    async with serving(Served(answer, hang_up=True)) as server:
        with pytest.raises(ModelUnavailable, match=why) as failed:
            await posted(ProviderConnections(None), "127.0.0.1", server.port)
    assert not failed.value.unbilled


@pytest.mark.anyio
async def test_unrequested_content_encoding_is_decoded_or_refused() -> None:
    data = gzip.compress(b"hello" * 100)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\ncontent-encoding: %s\r\n\r\n"
    async with serving(Served(head % (len(data), b"gzip") + data)) as server:
        connections = ProviderConnections(None)
        assert await posted(connections, "127.0.0.1", server.port) == (200, b"hello" * 100)
        server.answer = head % (len(data), b"br") + data
        with pytest.raises(MalformedReply, match="compressed by br"):
            await posted(connections, "127.0.0.1", server.port)
        server.answer = head % (4, b"gzip") + b"none"
        with pytest.raises(MalformedReply, match="cannot be decompressed"):
            await posted(connections, "127.0.0.1", server.port)


@pytest.mark.anyio
async def test_request_is_sent_only_after_reservation_is_durable(
    tmp_path: Path,
) -> None:
    reserved: list[int] = []

    async def act(exchange: Exchange) -> None:
        # The whole request has come: its line must have been there before.
        reserved.append(sum(line["event"] == "reserved" for line in journal(tmp_path)))
        await provider.reply(provider.text("hello"))(exchange)

    with provider.serving() as server:
        server.default = act

        async def body(ctx: JobContext, gateway: Gateway) -> Json:
            async with admitted(ctx, gateway, "openai-chat", ["expensive"]) as (_, client):
                for _ in range(5):
                    answer = await client.post(PATHS["openai-chat"], json=asked("openai-chat", stream=True))
                    assert answer.status_code == 200
            return None

        outcome, _ = await run(tmp_path, [provided("openai-chat", server.url, tmp_path)], body)
    assert outcome.status is Status.DONE, outcome.error
    assert reserved == [1, 2, 3, 4, 5]


@pytest.mark.anyio
async def test_a_request_that_its_budget_refuses_makes_no_connection(tmp_path: Path) -> None:
    async with serving(Served(HELLO)) as server:

        async def body(ctx: JobContext, gateway: Gateway) -> Json:
            async with admitted(ctx, gateway, "openai-chat", ["expensive"]) as (_, client):
                return (await client.post(PATHS["openai-chat"], json=asked("openai-chat"))).status_code

        there = f"http://127.0.0.1:{server.port}"
        outcome, _ = await run(tmp_path, [provided("openai-chat", there, tmp_path)], body, usd="0.0001")
    assert outcome.value in {402, 403}
    assert server.connections == 0
