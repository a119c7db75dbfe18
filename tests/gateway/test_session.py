"""Which requests a gateway session accepts, and how all others are refused."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from codetaste.environment.leak_search.secrets import GATEWAY_TOKEN
from codetaste.errors import ConfigError
from codetaste.gateway import app
from codetaste.gateway.gateway import Gateway
from codetaste.llm.messages import Request
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from support.gateway.billed_clients import make_gateway_model
from support.gateway.jobs import (
    PATHS,
    PROTOCOLS,
    admit_client,
    connect,
    make_request,
    make_scripted_model,
    open_client,
    read_transcript_lines,
    run_job,
)
from support.llm.provider import server as provider

FORBIDDEN = {"anthropic": 403, "openai": 400, "openai-chat": 403}
"""The status at which each agent stops at once."""


def introduce(name: str) -> Any:
    def script(_: Request) -> str:
        return f"I am {name}"

    return script


async def run_to_end(tmp_path: Path, body: Any, models: list[str] | None = None, **more: Any) -> Json:
    """Run one job, which must succeed, and return its value."""
    gateway_models = [make_scripted_model(tmp_path, introduce(name), name) for name in models or ["m"]]
    outcome, _ = await run_job(tmp_path, gateway_models, body, **more)
    assert outcome.status is Status.DONE, (outcome.error, outcome.traceback)
    return outcome.value


async def send_raw(gateway: Gateway, request: bytes) -> bytes:
    """Send raw bytes; return what is received to the end of the headers or of the connection."""
    async with await connect(gateway) as connection:
        await connection.send(request)
        response = b""
        with anyio.move_on_after(60.0):
            while b"\r\n\r\n" not in response:
                try:
                    response += await connection.receive()
                except anyio.EndOfStream:
                    break
        return response


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_token_is_valid_in_three_places_until_its_job_ends(tmp_path: Path, protocol: str) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        path, statuses = PATHS[protocol], []
        async with admit_client(ctx, gateway, protocol) as (access, _), open_client(gateway, "") as client:
            for headers in ({"x-api-key": access.token}, {"authorization": f"Bearer {access.token}"}):
                statuses.append(
                    (await client.post(path, json=make_request(protocol), headers=headers)).status_code
                )
            assert re.fullmatch(GATEWAY_TOKEN, access.token)  # the search for secrets in images knows it
            inside = f"/token/{access.token}{path}"
            statuses.append((await client.post(inside, json=make_request(protocol))).status_code)
            wrong = await client.post(f"/token/x{access.token[1:]}{path}", json={})
            assert wrong.status_code == FORBIDDEN[protocol]
            assert access.usage.requests == 3
        async with open_client(gateway, access.token) as client:
            late = await client.post(path, json=make_request(protocol))
            assert late.status_code == FORBIDDEN[protocol]
            assert late.headers["x-should-retry"] == "false"
            assert "token" in late.text
        return statuses

    assert await run_to_end(tmp_path, body) == [200, 200, 200]


@pytest.mark.anyio
async def test_concurrent_sessions_have_own_models_usage_and_transcript(tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with (
            admit_client(ctx, gateway, models=["one"], name="one.jsonl") as (first, one),
            admit_client(ctx, gateway, models=["two"], name="two.jsonl") as (second, two),
        ):
            assert first.token != second.token
            own = await one.post(PATHS["anthropic"], json=make_request("anthropic", model="one"))
            foreign = await one.post(PATHS["anthropic"], json=make_request("anthropic", model="two"))
            other = await two.post(
                PATHS["anthropic"], json=make_request("anthropic", model="claude-haiku-4-5")
            )
            assert own.json()["content"][0]["text"] == "I am one"
            assert foreign.status_code == 403
            assert other.json()["content"][0]["text"] == "I am two"
            assert (first.usage.requests, second.usage.requests) == (1, 1)
        return None

    await run_to_end(tmp_path, body, ["one", "two"])
    transcripts = [(tmp_path / "run" / name).read_text() for name in ("one.jsonl", "two.jsonl")]
    assert ["I am one" in transcripts[0], "I am two" in transcripts[0]] == [True, False]
    assert ["I am one" in transcripts[1], "I am two" in transcripts[1]] == [False, True]


@pytest.mark.anyio
@pytest.mark.parametrize(("side_calls", "turns"), [(True, 1), (False, 2)])
async def test_requests_without_tools_are_turns_of_an_agent_without_side_calls(
    tmp_path: Path, side_calls: bool, turns: int
) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (session, client):
            session.side_calls = side_calls
            request = make_request("anthropic", model="m")
            for tools in ([], [{"name": "f", "input_schema": {}}]):
                assert (await client.post(PATHS["anthropic"], json=request | {"tools": tools})).is_success
            assert (session.usage.requests, session.usage.turns) == (2, turns)
            body = request | {"tools": [], "mcp_servers": [{"url": "x"}]}
            refused = await client.post(PATHS["anthropic"], json=body)
            assert not refused.is_success
            assert (session.usage.last_failure is None) == side_calls
        return None

    await run_to_end(tmp_path, body, usd="1")
    assert (tmp_path / "run/transcript.jsonl").read_text().count('"side_call":true') == 2 - turns


@pytest.mark.anyio
@pytest.mark.parametrize("model", ["m", "m-of-provider", "haiku", "anything"])
async def test_model_name_from_client_maps_to_allowed_model(tmp_path: Path, model: str) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, models=["m", "n"]) as (_, client):
            response = await client.post(PATHS["anthropic"], json=make_request("anthropic", model=model))
            return [response.json()["content"][0]["text"], response.json()["model"]]

    assert await run_to_end(tmp_path, body, ["m", "n"]) == ["I am m", model]


@pytest.mark.anyio
async def test_other_paths_and_methods_are_refused_and_not_forwarded(tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (access, client):
            head = await client.head("/")
            assert (head.status_code, head.content) == (200, b"")
            for path in ("/api/event_logging/batch", "/v1/models", "/v1/complete", "/v1/messages/batches"):
                response = await client.post(path, json={})
                assert response.status_code == 404
                assert response.json()["type"] == "error"
            assert (await client.get(PATHS["anthropic"])).status_code == 405
            assert (await client.post(PATHS["openai"], json=make_request("openai"))).status_code == 404
            host = b"host: example.invalid\r\nx-api-key: " + access.token.encode() + b"\r\n"
            for line in (b"CONNECT example.invalid:443", b"POST http://example.invalid/v1/messages"):
                reply = await send_raw(
                    gateway, line + b" HTTP/1.1\r\n" + host + b"content-length: 2\r\n\r\n{}"
                )
                assert reply.startswith(b"HTTP/1.1 40"), reply
            assert (await send_raw(gateway, b"\x16\x03\x01\x02\x00\x01\x00")).startswith(b"HTTP/1.1 400")
            assert access.usage.requests == 0
            return (
                await client.post(f"{PATHS['anthropic']}/count_tokens", json=make_request("anthropic"))
            ).json()

    counted = await run_to_end(tmp_path, body)
    assert isinstance(counted, dict)
    assert counted.keys() == {"input_tokens"}


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_malformed_request_is_rejected_and_costs_nothing(tmp_path: Path, protocol: str) -> None:
    bad = [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"model": "m"}',
        b"\xff",
        b'{"model": 5, "messages": [], "input": []}',
    ]
    bad.append(b"[" * 100_000)
    bad.append(json.dumps(make_request(protocol, max_tokens=-1, max_output_tokens="many")).encode())

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol) as (access, client):
            for content in bad:
                response = await client.post(PATHS[protocol], content=content)
                assert response.status_code == 400, (content[:50], response.text)
                assert response.json()["error"]["message"]
                assert "Traceback" not in response.text
            assert (access.usage.requests, access.usage.budget_refusal) == (0, "")
            return (await client.post(PATHS[protocol], json=make_request(protocol))).status_code

    assert await run_to_end(tmp_path, body) == 200


@pytest.mark.anyio
async def test_too_large_or_too_slow_request_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MAX_REQUEST_BYTES", 100_000)
    monkeypatch.setattr(app, "_CHUNK_TIMEOUT_S", 1.0)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (access, client):
            large = await client.post(PATHS["anthropic"], json=make_request("anthropic", "x" * 200_000))
            head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {access.token}\r\n"
            slow = await send_raw(gateway, f"{head}content-length: 5\r\n\r\n{{".encode())
            return [large.status_code, slow[:12].decode()]

    assert await run_to_end(tmp_path, body) == [413, "HTTP/1.1 408"]


@pytest.mark.anyio
async def test_gateway_socket_is_open_to_all_and_folder_is_removed(tmp_path: Path) -> None:
    deep = tmp_path / ("long-" * 15) / ("path-" * 15)
    sockets: list[Path] = []

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        sockets.append(gateway.socket)
        assert stat.S_IMODE(gateway.socket.stat().st_mode) == 0o666
        assert stat.S_IMODE(gateway.socket.parent.stat().st_mode) == 0o755
        assert [path.name for path in gateway.socket.parent.iterdir()] == ["gateway.sock"]
        async with (
            admit_client(ctx, gateway) as (access, _),
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}") as client,
        ):
            headers = {"x-api-key": access.token}
            response = await client.post(PATHS["anthropic"], json=make_request("anthropic"), headers=headers)
            return response.status_code

    assert await run_to_end(deep, body, loopback=True) == 200
    assert len(str(sockets[0])) > 108
    assert not sockets[0].parent.exists()


@pytest.mark.anyio
async def test_unknown_model_is_a_config_error(tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        with pytest.raises(ConfigError, match="it serves m"):
            async with admit_client(ctx, gateway, models=["x"]):
                pass
        return None

    await run_to_end(tmp_path, body)


@pytest.mark.anyio
async def test_concurrent_requests_of_a_session_are_limited(tmp_path: Path) -> None:
    at_once = most = 0

    async def slow(_: Request) -> str:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await anyio.sleep(0.05)
        at_once -= 1
        return "well"

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        statuses: list[int] = []

        async def send(client: httpx.AsyncClient) -> None:
            statuses.append(
                (await client.post(PATHS["anthropic"], json=make_request("anthropic"))).status_code
            )

        async with admit_client(ctx, gateway) as (_, client), anyio.create_task_group() as tasks:
            for _ in range(120):
                tasks.start_soon(send, client)
        return sorted(set(statuses))

    outcome, _ = await run_job(tmp_path, [make_scripted_model(tmp_path, slow, permits=100)], body)
    assert outcome.status is Status.DONE, outcome
    assert outcome.value in ([200], [200, 429])
    assert most <= 32
    replies = [line["status"] for line in read_transcript_lines(tmp_path) if "reply" in line]
    assert set(replies) == {200}


@pytest.mark.anyio
async def test_unsendable_request_costs_nothing_and_job_continues(
    tmp_path: Path,
) -> None:
    with provider.serving() as server:
        server.default = provider.reply(provider.text("hello"))

        async def body(ctx: JobContext, gateway: Gateway) -> Json:
            async with admit_client(ctx, gateway, "openai-chat", ["expensive"]) as (access, client):
                path, statuses = PATHS["openai-chat"], []
                odd = make_request("openai-chat", stream=True, stream_options=5)
                statuses.append((await client.post(path, json=odd)).status_code)
                odd_name = {"user-agent": "é".encode("latin-1")}
                good = await client.post(path, json=make_request("openai-chat"), headers=odd_name)
                statuses.append(good.status_code)
                assert not access.usage.unknown.usd
            return statuses

        outcome, _ = await run_job(tmp_path, [make_gateway_model("openai-chat", server.url, tmp_path)], body)
    assert (outcome.status, outcome.value) == (Status.DONE, [400, 200]), outcome.traceback
