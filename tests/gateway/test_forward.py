"""Requests that are passed on to a real provider: what it is sent, and what comes back, byte for byte."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import ConfigError
from codetaste.gateway.gateway import Gateway
from codetaste.orchestration.budget.cost import BudgetSnapshot
from codetaste.orchestration.job import JobContext, Outcome, Status
from codetaste.orchestration.journal.journal import Json
from support.gateway.billed_clients import provided
from support.gateway.jobs import PATHS, admitted, asked, client_of, journal, run, transcript
from support.llm.bill_run import KEY
from support.llm.provider import server as provider
from support.llm.provider.exchange import Exchange
from support.llm.provider.protocols import sse
from support.llm.provider.server import PROTOCOLS, events_of

ENDS = {"anthropic": b"message_stop", "openai": b"response.completed", "openai-chat": b"[DONE]"}


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        running.default = provider.reply(provider.text("hello"))
        yield running


async def works(
    server: provider.Server, folder: Path, protocol: str, body: Any, **more: Any
) -> tuple[Outcome, BudgetSnapshot]:
    usd = more.pop("usd", None)
    outcome, spent = await run(folder, [provided(protocol, server.url, folder, **more)], body, usd=usd)
    assert outcome.status is Status.DONE, (outcome.error, outcome.traceback)
    return outcome, spent


async def until(true: Callable[[], bool]) -> None:
    """Wait for what happens in another thread, or in nobody's sight."""
    with anyio.fail_after(60):
        while not true():  # noqa: ASYNC110
            await anyio.sleep(0.01)


def spoken(exchange: Exchange, words: str) -> tuple[bytes, dict[str, int]]:
    """A whole stream with what real ones have in it beside events."""
    blocks = [provider.text(words)]
    usage = provider.count_usage(exchange.body, blocks)
    events = events_of(exchange.body, blocks, "end_turn", usage, protocol=exchange.protocol)
    pieces = [sse(exchange.protocol, event) for event in events]
    ping = (
        b'event: ping\ndata: {"type": "ping"}\n\n'
        if exchange.protocol == "anthropic"
        else b": keep-alive\n\n"
    )
    end = b"data: [DONE]\n\n" if exchange.protocol == "openai-chat" else b""
    return pieces[0] + ping + b": a comment\r\n\r\n" + ping.join(pieces[1:]) + end, usage


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stream_is_passed_on_byte_for_byte_with_its_comments_and_pings(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    sent: list[bytes] = []

    async def act(exchange: Exchange) -> None:
        data, usage = spoken(exchange, "ünïcode " * 50)
        exchange.charge(usage)
        sent.append(data)
        exchange.call.piece = lambda: 37
        await exchange.call.respond(200, data, {"content-type": "text/event-stream", **exchange.ids})

    server.default = act

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol, ["expensive"]) as (_, client):
            answer = await client.post(PATHS[protocol], json=asked(protocol, stream=True))
            assert answer.content == sent[0]
            assert "req_1" in answer.headers.values()
        return None

    _, spent = await works(server, tmp_path, protocol, body)
    assert spent.settled.usd == server.billed_usd > 0


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_comes_is_passed_on_at_once(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    """The provider says no more until the program has had what it said before."""
    heard = threading.Event()

    async def act(exchange: Exchange) -> None:
        data, usage = spoken(exchange, "hello")
        exchange.charge(usage)
        first = data.index(b"\n\n") + 2
        await exchange.call.head(200, {"content-type": "text/event-stream", "content-length": str(len(data))})
        await exchange.call.send(data[:first])
        while not heard.is_set():  # noqa: ASYNC110 - another thread sets it
            await anyio.sleep(0.005)
        await exchange.call.send(data[first:])

    server.default = act

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with (
            admitted(ctx, gateway, protocol, ["expensive"]) as (_, client),
            client.stream("POST", PATHS[protocol], json=asked(protocol, stream=True)) as answer,
        ):
            with anyio.fail_after(200):
                async for _ in answer.aiter_raw():
                    heard.set()
        return None

    await works(server, tmp_path, protocol, body)


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
async def test_forwarded_request_has_provider_key_and_original_body(
    server: provider.Server, tmp_path: Path, protocol: str, stream: bool
) -> None:
    tokens: list[str] = []
    more = {"odd": {"nested": ["ü", 1.0, None]}, "metadata": {"user_id": "u"}, "stream": stream}

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol, ["expensive"]) as (access, client):
            tokens.append(access.token)
            headers = {"anthropic-beta": "a-beta,another", "x-secret": access.token, "cookie": "c=1"}
            body_ = asked(protocol, "hellö", model="claude-sonnet", **more)
            path = f"{PATHS[protocol]}?beta=true&token={access.token}"
            answer = await client.post(path, json=body_, headers=headers)
            assert answer.status_code == 200, answer.text
            assert ENDS[protocol] in answer.content or not stream
        return None

    await works(server, tmp_path, protocol, body)
    [seen], [headers] = server.bodies, server.headers
    asked_ = asked(protocol, "hellö", **more)
    caps = {"max_tokens", "max_output_tokens", "max_completion_tokens", "stream_options"}
    assert {**seen, "model": "m"} == {**asked_, **{name: seen[name] for name in caps & seen.keys()}}
    assert seen["model"] == "expensive"
    assert [name for name in seen if name not in caps] == [name for name in asked_ if name not in caps]
    assert tokens[0] not in json.dumps([seen, headers, *server.raw_bodies], default=str)
    assert "cookie" not in headers
    key = headers["x-api-key"] if protocol == "anthropic" else headers["authorization"]
    assert key.removeprefix("Bearer ") == KEY
    assert headers["anthropic-beta"] == "a-beta,another"
    if protocol == "openai-chat" and stream:
        assert seen["stream_options"] == {"include_usage": True}


@pytest.mark.anyio
async def test_missing_or_costly_cap_is_lowered_and_recorded(server: provider.Server, tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, "anthropic", ["expensive"]) as (_, client):
            thinking = {"type": "enabled", "budget_tokens": 20_000}
            body_ = asked("anthropic", max_tokens=30_000, thinking=thinking)
            assert (await client.post(PATHS["anthropic"], json=body_)).status_code == 200
            assert (await client.post(PATHS["anthropic"], json=asked("anthropic"))).status_code == 200
        return None

    await works(server, tmp_path, "anthropic", body, usd="0.1")
    first, second = server.bodies
    assert 1024 <= first["max_tokens"] < 7000
    assert 1024 <= first["thinking"]["budget_tokens"] < first["max_tokens"]
    assert second["max_tokens"] == 2000
    [reply, _] = [line for line in transcript(tmp_path) if "reply" in line]
    [request, _] = [line for line in transcript(tmp_path) if "request" in line]
    assert (request["max_output_tokens"], reply["max_output_tokens"]) == (30_000, first["max_tokens"])
    assert any("instead of 30000" in line.get("text", "") for line in journal(tmp_path))


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["openai", "openai-chat"])
async def test_a_program_without_a_cap_gets_one(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol, ["expensive"]) as (_, client):
            body_ = {name: value for name, value in asked(protocol).items() if name != "max_tokens"}
            assert (await client.post(PATHS[protocol], json=body_)).status_code == 200
        return None

    await works(server, tmp_path, protocol, body, max_output_tokens=5000)
    caps = {name: cap for name, cap in server.bodies[0].items() if name.startswith("max_")}
    assert set(caps.values()) == {5000}


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_failure_before_first_byte_is_retried_unseen_by_client(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    server.handlers.extend([provider.status(500), provider.reset, provider.status(429, retry_after="0.01")])

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol, ["expensive"]) as (access, client):
            answer = await client.post(PATHS[protocol], json=asked(protocol, stream=True))
            assert ENDS[protocol] in answer.content
        assert access.usage.unknown_usd > 0
        return [answer.status_code, access.usage.requests, access.usage.turns]

    outcome, spent = await works(server, tmp_path, protocol, body)
    assert outcome.value == [200, 1, 1]
    assert len(server.bodies) == 4
    assert spent.settled.usd == server.billed_usd
    assert sum(line["event"] == "call_retry" for line in journal(tmp_path)) == 3
    assert any(line["event"] == "wait_ended" for line in journal(tmp_path))


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("reset", [False, True])
async def test_a_stream_that_breaks_off_ends_with_the_protocols_own_error(
    server: provider.Server, tmp_path: Path, protocol: str, reset: bool
) -> None:
    server.handlers.append(provider.cut(provider.text("hello"), after=2, reset=reset))

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol, ["expensive"]) as (access, client):
            answer = await client.post(PATHS[protocol], json=asked(protocol, stream=True))
            assert answer.status_code == 200
            error = b"response.failed" if protocol == "openai" else b'"error"'
            assert error in answer.content
            assert ENDS[protocol] not in answer.content or protocol == "openai-chat"
            assert access.usage.provider_failure
            assert (await client.post(PATHS[protocol], json=asked(protocol))).status_code == 200
        assert not access.usage.provider_failure
        return None

    _, spent = await works(server, tmp_path, protocol, body)
    assert len(server.bodies) == 2
    assert spent.unknown.usd > 0
    assert spent.settled.usd == server.bill[1].usd


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_request_refusal_is_forwarded_and_key_refusal_ends_agent(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    said = {"type": "error", "error": {"type": "invalid_request_error", "message": f"no beta {KEY}"}}
    server.handlers.extend([provider.status(400, said), provider.status(401)])

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol, ["expensive"]) as (access, client):
            first = await client.post(PATHS[protocol], json=asked(protocol, stream=True))
            assert (first.status_code, access.usage.provider_failure) == (400, "")
            assert first.json()["error"]["message"] == "no beta …"
            second = await client.post(PATHS[protocol], json=asked(protocol, stream=True))
            assert second.headers["x-should-retry"] == "false"
            assert "401" in access.usage.provider_failure
            return second.status_code

    outcome, spent = await works(server, tmp_path, protocol, body)
    assert outcome.value == (400 if protocol == "openai" else 403)
    assert spent.settled.usd == spent.unknown.usd == 0


@pytest.mark.anyio
async def test_a_program_that_leaves_before_its_request_was_sent_costs_nothing(
    server: provider.Server, tmp_path: Path
) -> None:
    """One slot: the second request waits for it, and nobody waits for the second."""
    release = threading.Event()

    async def late(exchange: Exchange) -> None:
        await until(release.is_set)
        await provider.reply(provider.text("late"))(exchange)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, "anthropic", ["expensive"]) as (access, client):
            server.handlers.append(late)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.post(PATHS["anthropic"], json=asked("anthropic")))
                await until(lambda: len(server.bodies) == 1)
                async with client_of(gateway, access.token) as other, anyio.create_task_group() as leaving:
                    leaving.start_soon(lambda: other.post(PATHS["anthropic"], json=asked("anthropic")))
                    await until(lambda: access.usage.requests == 2)
                    leaving.cancel_scope.cancel()
                record = tmp_path / "run" / "transcript.jsonl"
                await until(record.exists)
                await until(lambda: 499 in [line.get("status") for line in transcript(tmp_path)])
                release.set()
            return access.usage.requests

    outcome, spent = await works(server, tmp_path, "anthropic", body, slots=1)
    assert outcome.value == 2
    assert len(server.bodies) == 1
    assert spent.settled.usd == server.billed_usd
    assert sorted(line["status"] for line in transcript(tmp_path) if "reply" in line) == [200, 499]


@pytest.mark.anyio
async def test_what_is_in_flight_when_a_job_ends_is_read_to_its_end(
    server: provider.Server, tmp_path: Path
) -> None:
    server.default = provider.delayed(provider.reply(provider.text("late")), 0.3)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with client_of(gateway, "") as client:
            async with admitted(ctx, gateway, "anthropic", ["expensive"]) as (access, _):
                headers = {"x-api-key": access.token}
                request = partial(client.post, PATHS["anthropic"], json=asked("anthropic"), headers=headers)
                async with anyio.create_task_group() as leaving:
                    leaving.start_soon(request)
                    await until(lambda: len(server.bodies) == 1)
                    leaving.cancel_scope.cancel()
            return [access.usage.turns, str(access.usage.unknown_usd)]

    outcome, spent = await works(server, tmp_path, "anthropic", body)
    assert outcome.value == [1, "0"]
    assert spent.settled.usd == server.billed_usd > 0


@pytest.mark.anyio
async def test_model_with_other_protocol_is_refused(server: provider.Server, tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        with pytest.raises(ConfigError, match="uses the protocol openai, the agent anthropic"):
            async with admitted(ctx, gateway, "anthropic", ["expensive"]):
                pass
        return None

    await works(server, tmp_path, "openai", body)
