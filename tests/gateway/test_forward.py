"""Requests forwarded to a provider: what the gateway sends, and the response, byte for byte."""

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
from support.gateway.billed_clients import make_gateway_model
from support.gateway.jobs import (
    PATHS,
    admit_client,
    make_request,
    open_client,
    read_journal,
    read_transcript_lines,
    run_job,
)
from support.llm.bill_run import KEY, RATES
from support.llm.provider import server as provider
from support.llm.provider.exchange import Exchange
from support.llm.provider.protocols import sse, whole_of
from support.llm.provider.server import PROTOCOLS, events_of

ENDS = {"anthropic": b"message_stop", "openai": b"response.completed", "openai-chat": b"[DONE]"}


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        running.default = provider.reply(provider.text("hello"))
        yield running


async def run_to_end(
    server: provider.Server, folder: Path, protocol: str, body: Any, **more: Any
) -> tuple[Outcome, BudgetSnapshot]:
    usd = more.pop("usd", None)
    outcome, spent = await run_job(
        folder, [make_gateway_model(protocol, server.url, folder, **more)], body, usd=usd
    )
    assert outcome.status is Status.DONE, (outcome.error, outcome.traceback)
    return outcome, spent


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that another thread or task makes true."""
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.01)


def make_stream(exchange: Exchange, words: str) -> tuple[bytes, dict[str, int]]:
    """Return a whole stream with pings and comments, as real ones have, and its usage."""
    blocks = [provider.text(words)]
    usage = provider.count_usage(exchange.body, blocks)
    events = events_of(exchange.body, blocks, "end_turn", usage, protocol=exchange.protocol)
    chunks = [sse(exchange.protocol, event) for event in events]
    ping = (
        b'event: ping\ndata: {"type": "ping"}\n\n'
        if exchange.protocol == "anthropic"
        else b": keep-alive\n\n"
    )
    end = b"data: [DONE]\n\n" if exchange.protocol == "openai-chat" else b""
    return chunks[0] + ping + b": a comment\r\n\r\n" + ping.join(chunks[1:]) + end, usage


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_stream_is_forwarded_byte_for_byte_with_comments_and_pings(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    sent: list[bytes] = []

    async def handle(exchange: Exchange) -> None:
        data, usage = make_stream(exchange, "ünïcode " * 50)
        exchange.charge(usage)
        sent.append(data)
        exchange.call.piece = lambda: 37
        await exchange.call.respond(200, data, {"content-type": "text/event-stream", **exchange.ids})

    server.default = handle

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (_, client):
            response = await client.post(PATHS[protocol], json=make_request(protocol, stream=True))
            assert response.content == sent[0]
            assert "req_1" in response.headers.values()
        return None

    _, spent = await run_to_end(server, tmp_path, protocol, body)
    assert spent.settled.usd == server.billed_usd > 0


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat"])
async def test_whole_reply_without_last_event_gets_one_and_is_billed(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    async def handle(exchange: Exchange) -> None:
        blocks = [provider.text("hello")]
        usage = provider.count_usage(exchange.body, blocks)
        exchange.charge(usage)
        events = events_of(exchange.body, blocks, "end_turn", usage, protocol=exchange.protocol)
        await exchange.stream(events[:-1], chunked=True, end=False)
        await anyio.sleep(3600)

    server.default = handle

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (_, client):
            with anyio.fail_after(60):
                response = await client.post(PATHS[protocol], json=make_request(protocol, stream=True))
            assert ENDS[protocol] in response.content
        return None

    _, spent = await run_to_end(server, tmp_path, protocol, body)
    assert spent.settled.usd == server.billed_usd > 0
    assert spent.unknown.usd == 0


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
async def test_client_gets_content_type_of_what_is_sent(
    server: provider.Server, tmp_path: Path, protocol: str, stream: bool
) -> None:
    sent = iter(["text/plain", "", "application/octet-stream", "text/event-stream", "application/json"])

    async def handle(exchange: Exchange) -> None:
        data, usage = make_stream(exchange, "hello")
        if not stream:
            whole = whole_of(
                exchange.body, [provider.text("x")], "end_turn", usage, protocol=exchange.protocol
            )
            data = json.dumps(whole).encode()
        exchange.charge(usage)
        await exchange.call.respond(200, data, {"content-type": next(sent)})

    server.default = handle

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (_, client):
            for _ in range(5):
                response = await client.post(PATHS[protocol], json=make_request(protocol, stream=stream))
                expected = "text/event-stream" if stream else "application/json"
                assert (response.status_code, response.headers["content-type"]) == (200, expected)
        return None

    _, spent = await run_to_end(server, tmp_path, protocol, body)
    assert spent.settled.usd == server.billed_usd > 0


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [False, True])
async def test_server_that_never_answers_ends_after_read_timeout(
    server: provider.Server, tmp_path: Path, stream: bool
) -> None:
    server.default = provider.delayed(provider.reply(provider.text("late")), 3600.0)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, "openai-chat", ["expensive"]) as (access, client):
            with anyio.fail_after(60):
                await client.post(PATHS["openai-chat"], json=make_request("openai-chat", stream=stream))
            assert "ReadTimeout" in str(access.usage.last_failure)
        return None

    _, spent = await run_to_end(server, tmp_path, "openai-chat", body, read_timeout=0.2)
    assert spent.unknown.usd > 0


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_each_part_of_a_stream_is_forwarded_at_once(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    """The provider sends the rest only after the client has received the first part."""
    received = threading.Event()

    async def handle(exchange: Exchange) -> None:
        data, usage = make_stream(exchange, "hello")
        exchange.charge(usage)
        first = data.index(b"\n\n") + 2
        await exchange.call.head(200, {"content-type": "text/event-stream", "content-length": str(len(data))})
        await exchange.call.send(data[:first])
        while not received.is_set():  # noqa: ASYNC110 - another thread sets it
            await anyio.sleep(0.005)
        await exchange.call.send(data[first:])

    server.default = handle

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with (
            admit_client(ctx, gateway, protocol, ["expensive"]) as (_, client),
            client.stream("POST", PATHS[protocol], json=make_request(protocol, stream=True)) as response,
        ):
            assert response.status_code == 200
            with anyio.fail_after(200):
                async for _ in response.aiter_raw():
                    received.set()
        return None

    await run_to_end(server, tmp_path, protocol, body)


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
async def test_forwarded_request_has_provider_key_and_original_body(
    server: provider.Server, tmp_path: Path, protocol: str, stream: bool
) -> None:
    tokens: list[str] = []
    more = {"odd": {"nested": ["ü", 1.0, None]}, "metadata": {"user_id": "u"}, "stream": stream}

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (access, client):
            tokens.append(access.token)
            headers = {"anthropic-beta": "a-beta,another", "x-secret": access.token, "cookie": "c=1"}
            request_body = make_request(protocol, "hellö", model="claude-sonnet", **more)
            path = f"{PATHS[protocol]}?beta=true&token={access.token}"
            response = await client.post(path, json=request_body, headers=headers)
            assert response.status_code == 200, response.text
            assert ENDS[protocol] in response.content or not stream
        return None

    await run_to_end(server, tmp_path, protocol, body)
    [received_body], [headers] = server.bodies, server.headers
    sent = make_request(protocol, "hellö", **more)
    caps = {"max_tokens", "max_output_tokens", "max_completion_tokens", "stream_options"}
    assert {**received_body, "model": "m"} == {
        **sent,
        **{name: received_body[name] for name in caps & received_body.keys()},
    }
    assert received_body["model"] == "expensive"
    assert [name for name in received_body if name not in caps] == [name for name in sent if name not in caps]
    assert tokens[0] not in json.dumps([received_body, headers, *server.raw_bodies], default=str)
    assert "cookie" not in headers
    key = headers["x-api-key"] if protocol == "anthropic" else headers["authorization"]
    assert key.removeprefix("Bearer ") == KEY
    assert headers.get("anthropic-beta") == ("a-beta,another" if protocol == "anthropic" else None)
    if protocol == "openai-chat" and stream:
        assert received_body["stream_options"] == {"include_usage": True}


@pytest.mark.anyio
async def test_missing_or_costly_cap_is_lowered_and_recorded(server: provider.Server, tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, "anthropic", ["expensive"]) as (_, client):
            thinking = {"type": "enabled", "budget_tokens": 20_000}
            request_body = make_request("anthropic", max_tokens=30_000, thinking=thinking)
            assert (await client.post(PATHS["anthropic"], json=request_body)).status_code == 200
            assert (await client.post(PATHS["anthropic"], json=make_request("anthropic"))).status_code == 200
        return None

    await run_to_end(server, tmp_path, "anthropic", body, usd="0.1")
    first, second = server.bodies
    assert 1024 <= first["max_tokens"] < 7000
    assert 1024 <= first["thinking"]["budget_tokens"] < first["max_tokens"]
    assert second["max_tokens"] == 2000
    [reply, _] = [line for line in read_transcript_lines(tmp_path) if "reply" in line]
    [request, _] = [line for line in read_transcript_lines(tmp_path) if "request" in line]
    assert (request["max_output_tokens"], reply["max_output_tokens"]) == (30_000, first["max_tokens"])
    assert any("instead of 30000" in line.get("text", "") for line in read_journal(tmp_path))


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["openai", "openai-chat"])
async def test_request_without_cap_gets_one(server: provider.Server, tmp_path: Path, protocol: str) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (_, client):
            request_body = {
                name: value for name, value in make_request(protocol).items() if name != "max_tokens"
            }
            assert (await client.post(PATHS[protocol], json=request_body)).status_code == 200
        return None

    await run_to_end(server, tmp_path, protocol, body, max_output_tokens=5000)
    caps = {name: cap for name, cap in server.bodies[0].items() if name.startswith("max_")}
    assert set(caps.values()) == {5000}


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_cap_is_sent_by_every_name_that_the_server_may_know(
    server: provider.Server, tmp_path: Path, name: str
) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, "openai-chat", ["expensive"]) as (_, client):
            sent = {**make_request("openai-chat"), "max_tokens": None, name: 3000}
            assert (await client.post(PATHS["openai-chat"], json=sent)).status_code == 200
        return None

    await run_to_end(server, tmp_path, "openai-chat", body)
    assert [server.bodies[0][each] for each in ("max_tokens", "max_completion_tokens")] == [3000, 3000]


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_failure_before_first_byte_is_retried_unseen_by_client(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    server.handlers.extend([provider.status(500), provider.reset, provider.status(429, retry_after="0.01")])

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (access, client):
            response = await client.post(PATHS[protocol], json=make_request(protocol, stream=True))
            assert ENDS[protocol] in response.content
        assert access.usage.unknown.usd > 0
        return [response.status_code, access.usage.requests, access.usage.turns]

    outcome, spent = await run_to_end(server, tmp_path, protocol, body)
    assert outcome.value == [200, 1, 1]
    assert len(server.bodies) == 4
    assert spent.settled.usd == server.billed_usd
    assert sum(line["event"] == "call_retry" for line in read_journal(tmp_path)) == 3
    assert any(line["event"] == "wait_ended" for line in read_journal(tmp_path))


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("reset", [False, True])
async def test_truncated_stream_ends_with_error_of_protocol(
    server: provider.Server, tmp_path: Path, protocol: str, reset: bool
) -> None:
    server.handlers.append(provider.cut(provider.text("hello"), after=2, reset=reset))

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (access, client):
            response = await client.post(PATHS[protocol], json=make_request(protocol, stream=True))
            assert response.status_code == 200
            error = b"response.failed" if protocol == "openai" else b'"error"'
            assert error in response.content
            assert ENDS[protocol] not in response.content or protocol == "openai-chat"
            assert access.usage.last_failure
            assert (await client.post(PATHS[protocol], json=make_request(protocol))).status_code == 200
        assert access.usage.last_failure is None
        return None

    _, spent = await run_to_end(server, tmp_path, protocol, body)
    assert len(server.bodies) == 2
    assert spent.unknown.usd > 0
    assert spent.settled.usd == server.bill[1].usd


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_outage_ends_an_agent_that_goes_on_asking(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    """Three requests may have been billed; each further one gets the same answer, and none is sent."""
    html = provider.status(502, "<html>Bad gateway</html>", content_type="text/html")
    cut = provider.cut(provider.text("hello"), after=2)
    server.handlers.extend([provider.reply(provider.text("ok")), cut, provider.status(500), html, html])

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (access, client):
            answers = []
            while len(answers) < 7:
                stopped = access.usage.stopped.is_set()
                answers.append(await client.post(PATHS[protocol], json=make_request(protocol, stream=True)))
                assert stopped == (len(answers) > 3)
            assert "got no reply" in str(access.usage.last_failure)
        assert access.usage.budget_refusal == ""
        return [answer.status_code for answer in answers]

    outcome, spent = await run_to_end(server, tmp_path, protocol, body, usd="1")
    assert outcome.value == [200, 200, *[400 if protocol == "openai" else 403] * 5]
    assert len(server.bodies) == 5
    assert 0 < spent.unknown.usd < 1


@pytest.mark.anyio
async def test_truncated_stream_that_reported_more_than_reserved_ends_the_model(
    server: provider.Server, tmp_path: Path
) -> None:
    async def handle(exchange: provider.Exchange) -> None:
        usage = {"input_tokens": 10**6, "output_tokens": 1}
        events = events_of(exchange.body, [provider.text("x")], "end_turn", usage, protocol="anthropic")
        await exchange.stream(events[:2], end=False)
        await exchange.call.hang_up()

    server.default = handle

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, "anthropic", ["expensive"]) as (_, client):
            for _ in range(3):
                request = make_request("anthropic", stream=True)
                response = await client.post(PATHS["anthropic"], json=request)
            return response.text

    outcome, spent = await run_to_end(server, tmp_path, "anthropic", body, usd="1")
    assert "is not called again in this run" in str(outcome.value)
    assert len(server.bodies) == 1
    assert spent.settled.tokens == 10**6 + 1


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_request_refusal_is_forwarded_and_key_refusal_ends_agent(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": f"no beta {KEY}"}}
    server.handlers.extend([provider.status(400, error), provider.status(401)])

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (access, client):
            first = await client.post(PATHS[protocol], json=make_request(protocol, stream=True))
            assert (first.status_code, access.usage.refusals) == (400, 0)
            assert first.json()["error"]["message"] == "no beta …"
            second = await client.post(PATHS[protocol], json=make_request(protocol, stream=True))
            assert second.headers["x-should-retry"] == "false"
            assert "401" in str(access.usage.last_failure)
            return second.status_code

    outcome, spent = await run_to_end(server, tmp_path, protocol, body)
    assert outcome.value == (400 if protocol == "openai" else 403)
    assert spent.settled.usd == spent.unknown.usd == 0


@pytest.mark.anyio
async def test_failure_of_retired_model_says_so(
    server: provider.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RATES, "claude-opus-4-1", RATES["expensive"])
    server.default = provider.status(404, {"error": {"message": "model: claude-opus-4-1"}})

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, "anthropic", ["claude-opus-4-1"]) as (access, client):
            request = make_request("anthropic") | {"model": "claude-opus-4-1"}
            await client.post(PATHS["anthropic"], json=request)
            return str(access.usage.last_failure)

    outcome, _ = await run_to_end(server, tmp_path, "anthropic", body, name="claude-opus-4-1")
    assert "claude-opus-4-1 retired on 2026-08-05; current: claude-sonnet" in str(outcome.value)


@pytest.mark.anyio
async def test_request_cancelled_before_sending_costs_nothing(
    server: provider.Server, tmp_path: Path
) -> None:
    """With one permit, the second request waits for the first, and its client hangs up."""
    release = threading.Event()

    async def reply_late(exchange: Exchange) -> None:
        await wait_until(release.is_set)
        await provider.reply(provider.text("late"))(exchange)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, "anthropic", ["expensive"]) as (access, client):
            server.handlers.append(reply_late)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.post(PATHS["anthropic"], json=make_request("anthropic")))
                await wait_until(lambda: len(server.bodies) == 1)
                async with (
                    open_client(gateway, access.token) as second_client,
                    anyio.create_task_group() as leaving,
                ):
                    leaving.start_soon(
                        lambda: second_client.post(PATHS["anthropic"], json=make_request("anthropic"))
                    )
                    await wait_until(lambda: access.usage.requests == 2)
                    leaving.cancel_scope.cancel()
                record = tmp_path / "run" / "transcript.jsonl"
                await wait_until(record.exists)
                await wait_until(
                    lambda: 499 in [line.get("status") for line in read_transcript_lines(tmp_path)]
                )
                release.set()
            return access.usage.requests

    outcome, spent = await run_to_end(server, tmp_path, "anthropic", body, permits=1)
    assert outcome.value == 2
    assert len(server.bodies) == 1
    assert spent.settled.usd == server.billed_usd
    assert sorted(line["status"] for line in read_transcript_lines(tmp_path) if "reply" in line) == [200, 499]


@pytest.mark.anyio
async def test_response_in_flight_at_job_end_is_read_completely(
    server: provider.Server, tmp_path: Path
) -> None:
    server.default = provider.delayed(provider.reply(provider.text("late")), 0.3)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with open_client(gateway, "") as client:
            async with admit_client(ctx, gateway, "anthropic", ["expensive"]) as (access, _):
                headers = {"x-api-key": access.token}
                request = partial(
                    client.post, PATHS["anthropic"], json=make_request("anthropic"), headers=headers
                )
                async with anyio.create_task_group() as leaving:
                    leaving.start_soon(request)
                    await wait_until(lambda: len(server.bodies) == 1)
                    leaving.cancel_scope.cancel()
            return [access.usage.turns, str(access.usage.unknown.usd)]

    outcome, spent = await run_to_end(server, tmp_path, "anthropic", body)
    assert outcome.value == [1, "0"]
    assert spent.settled.usd == server.billed_usd > 0


@pytest.mark.anyio
async def test_model_with_other_protocol_is_refused(server: provider.Server, tmp_path: Path) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        with pytest.raises(ConfigError, match="uses the protocol openai, the agent anthropic"):
            async with admit_client(ctx, gateway, "anthropic", ["expensive"]):
                pass
        return None

    await run_to_end(server, tmp_path, "openai", body)
