"""Limits of the gateway's server for untrusted clients, and its end: connections, time-outs, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.gateway import server
from codetaste.gateway.gateway import Gateway
from codetaste.llm.messages import Request
from codetaste.orchestration.budget.cost import Cost
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from support.gateway.jobs import (
    PATHS,
    admit_client,
    connect,
    make_request,
    make_scripted_model,
    read_transcript_lines,
    run_job,
)


async def is_closed(connection: Any) -> bool:
    """Return whether the gateway closes a connection within some time."""
    with anyio.move_on_after(10):
        try:
            await connection.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return True
    return False


async def trickle(connection: Any) -> None:
    """Send a header section without end."""
    for _ in range(1000):
        await connection.send(b"x: y\r\n")
        await anyio.sleep(0.01)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.anyio
async def test_idle_or_incomplete_connection_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_HEAD_TIMEOUT_S", 2.0)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with await connect(gateway) as connection:
            assert await is_closed(connection)
        async with await connect(gateway) as connection:
            # The first request is complete, the second one is not.
            await connection.send(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await connection.receive()).startswith(b"HTTP/1.1 200")
            await connection.send(b"POST /v1/messages HTTP/1.1\r\n")
            assert await is_closed(connection)
        async with await connect(gateway) as connection:
            with pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)):
                await trickle(connection)
        return None

    outcome, _ = await run_job(tmp_path, [make_scripted_model(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.DONE, outcome


@pytest.mark.anyio
async def test_many_idle_connections_do_not_block_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MAX_CONNECTIONS", 20)
    started, release = anyio.Event(), anyio.Event()

    async def slow(_: Request) -> str:
        started.set()
        await release.wait()
        return "well"

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        statuses: list[int] = []

        async def send(client: Any) -> None:
            statuses.append(
                (await client.post(PATHS["anthropic"], json=make_request("anthropic"))).status_code
            )

        async with admit_client(ctx, gateway) as (_, client), anyio.create_task_group() as tasks:
            tasks.start_soon(send, client)
            await started.wait()
            idle_connections = [await connect(gateway) for _ in range(60)]
            tasks.start_soon(send, client)
            await anyio.sleep(0.1)
            release.set()
        for connection in idle_connections:
            await connection.aclose()
        return statuses

    outcome, _ = await run_job(tmp_path, [make_scripted_model(tmp_path, slow)], body)
    assert (outcome.status, outcome.value) == (Status.DONE, [200, 200])


@pytest.mark.anyio
async def test_closed_gateway_with_waiting_clients_leaves_nothing(tmp_path: Path) -> None:
    connections: list[Any] = []
    before = open_files()

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (access, client):
            assert (await client.post(PATHS["anthropic"], json=make_request("anthropic"))).status_code == 200
            for data in (b"", b"POST /v1/messages HTTP/1.1\r\nhost", _head(access.token)):
                connections.append(await connect(gateway))
                await connections[-1].send(data or b"\r\n")
            await anyio.sleep(0.05)
        return str(gateway.socket)

    with anyio.fail_after(200):
        outcome, _ = await run_job(tmp_path, [make_scripted_model(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.DONE, outcome
    assert not Path(str(outcome.value)).parent.exists()
    for connection in connections:
        await connection.aclose()
    # A worker thread's pipe, and a file opened by the journal's import, may remain.
    with anyio.fail_after(200):
        while open_files() > before + 2:  # noqa: ASYNC110 - closed by the loop, a little later
            await anyio.sleep(0.05)


def _head(token: str) -> bytes:
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {token}\r\ncontent-length: 500\r\n\r\n{{"
    return head.encode()


@pytest.mark.anyio
async def test_request_in_flight_after_grace_stays_charged(tmp_path: Path) -> None:
    started = anyio.Event()

    async def endless(_: Request) -> str:
        started.set()
        await anyio.sleep(60)
        return "never"

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (access, client), anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.post(PATHS["anthropic"], json=make_request("anthropic")))
            await started.wait()
            tasks.cancel_scope.cancel()
        return access.usage.turns

    outcome, spent = await run_job(tmp_path, [make_scripted_model(tmp_path, endless)], body, grace_s=0.3)
    assert (outcome.status, outcome.value) == (Status.DONE, 0)
    assert spent.settled == Cost()
    assert spent.unknown.usd > 0
    assert [line["status"] for line in read_transcript_lines(tmp_path) if "reply" in line] == [499]


@pytest.mark.anyio
async def test_unwritable_transcript_fails_job_with_message(tmp_path: Path) -> None:
    (tmp_path / "run" / "transcript.jsonl").mkdir(parents=True)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (access, client):
            with anyio.fail_after(200):
                await access.usage.stopped.wait()
            response = await client.post(PATHS["anthropic"], json=make_request("anthropic"))
            assert response.status_code == 402
            assert "journal write failed" in response.text
        return None

    outcome, _ = await run_job(tmp_path, [make_scripted_model(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.FAILED
    assert "transcript.jsonl" in outcome.error
    assert not outcome.traceback


@pytest.mark.anyio
async def test_internal_error_is_hidden_from_client_and_fails_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("an internal mistake")

    monkeypatch.setattr("codetaste.gateway.exchange.SERVERS", {"anthropic": broken})

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (access, client):
            response = await client.post(PATHS["anthropic"], json=make_request("anthropic"))
            assert response.status_code == 403
            assert "mistake" not in response.text
            assert access.usage.stopped.is_set()
        return None

    outcome, _ = await run_job(tmp_path, [make_scripted_model(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.FAILED
    assert outcome.traceback
