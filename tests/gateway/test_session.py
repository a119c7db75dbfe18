"""Who may ask for what at the gateway, and how everything else is refused."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from codetaste.errors import ConfigError
from codetaste.gateway import app
from codetaste.gateway.gateway import Gateway
from codetaste.llm.messages import Request
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from support.gateway.billed_clients import provided
from support.gateway.jobs import (
    PATHS,
    PROTOCOLS,
    admitted,
    asked,
    client_of,
    connected,
    run,
    scripted,
    transcript,
)
from support.llm.provider import server as provider

FORBIDDEN = {"anthropic": 403, "openai": 400, "openai-chat": 403}
"""What makes each program stop at once."""


def named(name: str) -> Any:
    def script(_: Request) -> str:
        return f"I am {name}"

    return script


async def works(tmp_path: Path, body: Any, models: list[str] | None = None, **more: Any) -> Json:
    """Run one job to its end, which must be good."""
    served = [scripted(tmp_path, named(name), name) for name in models or ["m"]]
    outcome, _ = await run(tmp_path, served, body, **more)
    assert outcome.status is Status.DONE, (outcome.error, outcome.traceback)
    return outcome.value


async def raw(gateway: Gateway, request: bytes) -> bytes:
    """Send bytes as they are, and return all that comes until the end, or nothing within a second."""
    async with await connected(gateway) as wire:
        await wire.send(request)
        answer = b""
        with anyio.move_on_after(1.0):
            while True:
                try:
                    answer += await wire.receive()
                except anyio.EndOfStream:
                    break
        return answer


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_token_is_good_in_three_places_for_its_own_job_and_dies_with_it(
    tmp_path: Path, protocol: str
) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        path, statuses = PATHS[protocol], []
        async with admitted(ctx, gateway, protocol) as (access, _), client_of(gateway, "") as client:
            for headers in ({"x-api-key": access.token}, {"authorization": f"Bearer {access.token}"}):
                statuses.append((await client.post(path, json=asked(protocol), headers=headers)).status_code)
            inside = f"/token/{access.token}{path}"
            statuses.append((await client.post(inside, json=asked(protocol))).status_code)
            wrong = await client.post(f"/token/x{access.token[1:]}{path}", json={})
            assert wrong.status_code == FORBIDDEN[protocol]
            assert access.usage.requests == 3
        async with client_of(gateway, access.token) as client:
            late = await client.post(path, json=asked(protocol))
            assert late.status_code == FORBIDDEN[protocol]
            assert late.headers["x-should-retry"] == "false"
            assert "token" in late.text
        return statuses

    assert await works(tmp_path, body) == [200, 200, 200]


@pytest.mark.anyio
async def test_two_jobs_at_once_do_not_see_each_others_models_money_or_words(tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with (
            admitted(ctx, gateway, models=["one"], name="one.jsonl") as (first, one),
            admitted(ctx, gateway, models=["two"], name="two.jsonl") as (second, two),
        ):
            assert first.token != second.token
            mine = await one.post(PATHS["anthropic"], json=asked("anthropic", model="one"))
            theirs = await one.post(PATHS["anthropic"], json=asked("anthropic", model="two"))
            other = await two.post(PATHS["anthropic"], json=asked("anthropic", model="claude-haiku-4-5"))
            assert mine.json()["content"][0]["text"] == "I am one"
            assert theirs.status_code == 403
            assert other.json()["content"][0]["text"] == "I am two"
            assert (first.usage.requests, second.usage.requests) == (1, 1)
        return None

    await works(tmp_path, body, ["one", "two"])
    said = [(tmp_path / "run" / name).read_text() for name in ("one.jsonl", "two.jsonl")]
    assert ["I am one" in said[0], "I am two" in said[0]] == [True, False]
    assert ["I am one" in said[1], "I am two" in said[1]] == [False, True]


@pytest.mark.anyio
@pytest.mark.parametrize("model", ["m", "m-of-provider", "haiku", "anything"])
async def test_model_name_from_client_maps_to_allowed_model(tmp_path: Path, model: str) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, models=["m", "n"]) as (_, client):
            answer = await client.post(PATHS["anthropic"], json=asked("anthropic", model=model))
            return [answer.json()["content"][0]["text"], answer.json()["model"]]

    assert await works(tmp_path, body, ["m", "n"]) == ["I am m", model]


@pytest.mark.anyio
async def test_nothing_else_is_there_and_nothing_is_sent_on(tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway) as (access, client):
            head = await client.head("/")
            assert (head.status_code, head.content) == (200, b"")
            for path in ("/api/event_logging/batch", "/v1/models", "/v1/complete", "/v1/messages/batches"):
                answer = await client.post(path, json={})
                assert answer.status_code == 404
                assert answer.json()["type"] == "error"
            assert (await client.get(PATHS["anthropic"])).status_code == 405
            assert (await client.post(PATHS["openai"], json=asked("openai"))).status_code == 404
            host = b"host: example.invalid\r\nx-api-key: " + access.token.encode() + b"\r\n"
            for line in (b"CONNECT example.invalid:443", b"POST http://example.invalid/v1/messages"):
                answer_ = await raw(gateway, line + b" HTTP/1.1\r\n" + host + b"content-length: 2\r\n\r\n{}")
                assert answer_.startswith(b"HTTP/1.1 40"), answer_
            assert (await raw(gateway, b"\x16\x03\x01\x02\x00\x01\x00")).startswith(b"HTTP/1.1 400")
            assert access.usage.requests == 0
            return (await client.post(f"{PATHS['anthropic']}/count_tokens", json=asked("anthropic"))).json()

    counted = await works(tmp_path, body)
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
    bad.append(json.dumps(asked(protocol, max_tokens=-1, max_output_tokens="many")).encode())

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol) as (access, client):
            for content in bad:
                answer = await client.post(PATHS[protocol], content=content)
                assert answer.status_code == 400, (content[:50], answer.text)
                assert answer.json()["error"]["message"]
                assert "Traceback" not in answer.text
            assert (access.usage.requests, access.usage.budget_refusal) == (0, "")
            return (await client.post(PATHS[protocol], json=asked(protocol))).status_code

    assert await works(tmp_path, body) == 200


@pytest.mark.anyio
async def test_a_request_that_is_too_large_or_too_slow_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MAX_REQUEST_BYTES", 100_000)
    monkeypatch.setattr(app, "_CHUNK_TIMEOUT_S", 0.1)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway) as (access, client):
            large = await client.post(PATHS["anthropic"], json=asked("anthropic", "x" * 200_000))
            head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {access.token}\r\n"
            slow = await raw(gateway, f"{head}content-length: 5\r\n\r\n{{".encode())
            return [large.status_code, slow[:12].decode()]

    assert await works(tmp_path, body) == [413, "HTTP/1.1 408"]


@pytest.mark.anyio
async def test_gateway_socket_is_open_to_all_and_folder_is_removed(tmp_path: Path) -> None:
    deep = tmp_path / ("long-" * 15) / ("path-" * 15)
    seen: list[Path] = []

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        seen.append(gateway.socket)
        assert stat.S_IMODE(gateway.socket.stat().st_mode) == 0o666
        assert stat.S_IMODE(gateway.socket.parent.stat().st_mode) == 0o755
        assert [path.name for path in gateway.socket.parent.iterdir()] == ["gateway.sock"]
        async with (
            admitted(ctx, gateway) as (access, _),
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}") as client,
        ):
            headers = {"x-api-key": access.token}
            answer = await client.post(PATHS["anthropic"], json=asked("anthropic"), headers=headers)
            return answer.status_code

    assert await works(deep, body, loopback=True) == 200
    assert len(str(seen[0])) > 108
    assert not seen[0].parent.exists()


@pytest.mark.anyio
async def test_a_model_that_is_not_served_is_a_mistake_of_the_config(tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        with pytest.raises(ConfigError, match="it serves m"):
            async with admitted(ctx, gateway, models=["x"]):
                pass
        return None

    await works(tmp_path, body)


@pytest.mark.anyio
async def test_a_client_that_asks_without_end_gets_no_more_than_its_places(tmp_path: Path) -> None:
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

        async def ask(client: httpx.AsyncClient) -> None:
            statuses.append((await client.post(PATHS["anthropic"], json=asked("anthropic"))).status_code)

        async with admitted(ctx, gateway) as (_, client), anyio.create_task_group() as tasks:
            for _ in range(120):
                tasks.start_soon(ask, client)
        return sorted(set(statuses))

    outcome, _ = await run(tmp_path, [scripted(tmp_path, slow, slots=100)], body)
    assert outcome.status is Status.DONE, outcome
    assert outcome.value in ([200], [200, 429])
    assert most <= 32
    replies = [line["status"] for line in transcript(tmp_path) if "reply" in line]
    assert set(replies) == {200}


@pytest.mark.anyio
async def test_unsendable_request_costs_nothing_and_job_continues(
    tmp_path: Path,
) -> None:
    with provider.serving() as server:
        server.default = provider.reply(provider.text("hello"))

        async def body(ctx: JobContext, gateway: Gateway) -> Json:
            async with admitted(ctx, gateway, "openai-chat", ["expensive"]) as (access, client):
                path, statuses = PATHS["openai-chat"], []
                odd = asked("openai-chat", stream=True, stream_options=5)
                statuses.append((await client.post(path, json=odd)).status_code)
                odd_name = {"user-agent": "é".encode("latin-1")}
                good = await client.post(path, json=asked("openai-chat"), headers=odd_name)
                statuses.append(good.status_code)
                assert not access.usage.unknown_usd
            return statuses

        outcome, _ = await run(tmp_path, [provided("openai-chat", server.url, tmp_path)], body)
    assert (outcome.status, outcome.value) == (Status.DONE, [400, 200]), outcome.traceback
