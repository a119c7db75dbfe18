"""What strangers may hold of the gateway: connections, time, and nothing after its end."""

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
from support.gateway.jobs import PATHS, admitted, asked, connected, run, scripted, transcript


async def closed_by(wire: Any) -> bool:
    """Whether the gateway closes a connection within a while."""
    with anyio.move_on_after(10):
        try:
            await wire.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return True
    return False


async def trickle(wire: Any) -> None:
    """Send a head that has no end."""
    for _ in range(1000):
        await wire.send(b"x: y\r\n")
        await anyio.sleep(0.01)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.anyio
async def test_a_connection_that_says_nothing_or_too_little_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_HEAD_TIMEOUT_S", 0.3)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with await connected(gateway) as wire:
            assert await closed_by(wire)
        async with await connected(gateway) as wire:
            # The first request is whole, the second one never is.
            await wire.send(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await wire.receive()).startswith(b"HTTP/1.1 200")
            await wire.send(b"POST /v1/messages HTTP/1.1\r\n")
            assert await closed_by(wire)
        async with await connected(gateway) as wire:
            with pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream)):
                await trickle(wire)
        return None

    outcome, _ = await run(tmp_path, [scripted(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.DONE, outcome


@pytest.mark.anyio
async def test_connections_without_end_do_not_keep_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MAX_CONNECTIONS", 20)
    under_way = anyio.Event()

    async def slow(_: Request) -> str:
        await under_way.wait()
        return "well"

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        statuses: list[int] = []

        async def ask(client: Any) -> None:
            statuses.append((await client.post(PATHS["anthropic"], json=asked("anthropic"))).status_code)

        async with admitted(ctx, gateway) as (_, client), anyio.create_task_group() as tasks:
            tasks.start_soon(ask, client)
            await anyio.sleep(0.1)
            silent = [await connected(gateway) for _ in range(60)]
            tasks.start_soon(ask, client)
            await anyio.sleep(0.1)
            under_way.set()
        for wire in silent:
            await wire.aclose()
        return statuses

    outcome, _ = await run(tmp_path, [scripted(tmp_path, slow)], body)
    assert (outcome.status, outcome.value) == (Status.DONE, [200, 200])


@pytest.mark.anyio
async def test_closed_gateway_with_waiting_clients_leaves_nothing(tmp_path: Path) -> None:
    wires: list[Any] = []
    before = open_files()

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway) as (access, client):
            assert (await client.post(PATHS["anthropic"], json=asked("anthropic"))).status_code == 200
            for said in (b"", b"POST /v1/messages HTTP/1.1\r\nhost", _head(access.token)):
                wires.append(await connected(gateway))
                await wires[-1].send(said or b"\r\n")
            await anyio.sleep(0.05)
        return str(gateway.socket)

    with anyio.fail_after(200):
        outcome, _ = await run(tmp_path, [scripted(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.DONE, outcome
    assert not Path(str(outcome.value)).parent.exists()
    for wire in wires:
        await wire.aclose()
    await anyio.sleep(0.05)
    # A worker thread's pipe, and what the journal's import has opened.
    assert open_files() <= before + 2


def _head(token: str) -> bytes:
    head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {token}\r\ncontent-length: 500\r\n\r\n{{"
    return head.encode()


@pytest.mark.anyio
async def test_what_is_still_in_flight_after_the_grace_stays_charged(tmp_path: Path) -> None:
    async def endless(_: Request) -> str:
        await anyio.sleep(60)
        return "never"

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway) as (access, client), anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.post(PATHS["anthropic"], json=asked("anthropic")))
            await anyio.sleep(0.2)
            tasks.cancel_scope.cancel()
        return access.usage.turns

    outcome, spent = await run(tmp_path, [scripted(tmp_path, endless)], body, grace_s=0.3)
    assert (outcome.status, outcome.value) == (Status.DONE, 0)
    assert spent.settled == Cost()
    assert spent.unknown.usd > 0
    assert [line["status"] for line in transcript(tmp_path) if "reply" in line] == [499]


@pytest.mark.anyio
async def test_a_transcript_that_cannot_be_written_ends_the_job_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "run" / "transcript.jsonl").mkdir(parents=True)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway) as (access, client):
            with anyio.fail_after(200):
                await access.usage.stopped.wait()
            answer = await client.post(PATHS["anthropic"], json=asked("anthropic"))
            assert answer.status_code == 402
            assert "journal write failed" in answer.text
        return None

    outcome, _ = await run(tmp_path, [scripted(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.FAILED
    assert "transcript.jsonl" in outcome.error
    assert not outcome.traceback


@pytest.mark.anyio
async def test_internal_error_is_hidden_from_client_and_fails_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr("codetaste.gateway.exchange.SERVERS", {"anthropic": broken})

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway) as (access, client):
            answer = await client.post(PATHS["anthropic"], json=asked("anthropic"))
            assert answer.status_code == 403
            assert "mistake" not in answer.text
            assert access.usage.stopped.is_set()
        return None

    outcome, _ = await run(tmp_path, [scripted(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.FAILED
    assert outcome.traceback
