"""No job bills more through the gateway than its budget has, however many requests it makes at once."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.gateway.gateway import Gateway
from codetaste.llm.messages import Request, Usage
from codetaste.llm.providers.scripted import ScriptedReply
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from support.gateway.jobs import PATHS, PROTOCOLS, admitted, asked, run, scripted, transcript

STOPS = {"anthropic": 402, "openai": 400, "openai-chat": 402}
"""Measured: with these each of the programs stops at once."""


def bill(folder: Path) -> list[Decimal]:
    """What the provider's own ledger says, summed by nobody else; dollars 3 and 15 a million tokens."""
    lines = (folder / "m.ledger.jsonl").read_text().splitlines()
    usages = [json.loads(line)["usage"] for line in lines]
    return [Decimal(3 * usage["input"] + 15 * usage["output"]) / 1_000_000 for usage in usages]


@given(
    usd=st.integers(5, 200),
    caps=st.lists(st.integers(1024, 9000) | st.integers(1, 1023), min_size=1, max_size=14),
    sizes=st.lists(st.integers(1, 9000), min_size=14, max_size=14),
    share=st.floats(0.0, 1.0),
)
@settings(max_examples=15)
def test_a_burst_of_requests_never_bills_above_the_budget(
    usd: int, caps: list[int], sizes: list[int], share: float
) -> None:
    """Each reply costs a share of all that was allowed for it, and takes as long as chance has it."""

    async def costly(request: Request) -> ScriptedReply:
        await anyio.sleep(0.001 * (request.max_output_tokens % 7))
        said = json.dumps(request.messages[-1].text)
        output = int(request.max_output_tokens * share)
        return ScriptedReply("well", usage=Usage(input=int(len(said) * share) + 1, output=output))

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        statuses: list[int] = []

        async def ask(client: httpx.AsyncClient, cap: int, size: int) -> None:
            request = asked("anthropic", "x" * size, max_tokens=cap)
            statuses.append((await client.post(PATHS["anthropic"], json=request)).status_code)

        async with admitted(ctx, gateway) as (access, client), anyio.create_task_group() as tasks:
            for cap, size in zip(caps, sizes, strict=False):
                tasks.start_soon(ask, client, cap, size)
        assert {*statuses} <= {200, 402}
        assert (402 in statuses) == bool(access.usage.budget_refusal) == access.usage.stopped.is_set()
        return str(access.usage.settled_usd)

    with TemporaryDirectory() as name:
        folder = Path(name)
        limit = Decimal(usd) / 1000
        outcome, spent = anyio.run(
            lambda: run(folder, [scripted(folder, costly)], body, usd=str(limit)), backend="asyncio"
        )
        assert outcome.status is Status.DONE, outcome
        billed = bill(folder) if (folder / "m.ledger.jsonl").exists() else []
        assert sum(billed) == spent.settled.usd == Decimal(str(outcome.value))
        assert sum(billed) <= limit
        assert spent.unknown.usd == 0


def told(protocol: str, body: dict[str, Any]) -> str:
    """The words of a refusal, whose shape must be the protocol's own."""
    if protocol == "anthropic":
        assert (body["type"], body["error"]["type"]) == ("error", "permission_error")
    else:
        assert body["error"]["code"] == "insufficient_quota"
    return str(body["error"]["message"])


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
async def test_budget_refusal_stops_agent_and_later_requests(
    tmp_path: Path, protocol: str, stream: bool
) -> None:
    asked_for: list[Request] = []

    def dear(request: Request) -> ScriptedReply:
        asked_for.append(request)
        return ScriptedReply("well", usage=Usage(input=1000, output=1024))

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol) as (access, client):
            ask: Callable[[], Awaitable[httpx.Response]] = lambda: client.post(  # noqa: E731
                PATHS[protocol], json=asked(protocol, stream=stream)
            )
            assert (await ask()).status_code == 200
            assert not access.usage.stopped.is_set()
            first = await ask()
            assert access.usage.stopped.is_set()
            later = [await ask() for _ in range(5)]
            for answer in [first, *later]:
                assert answer.status_code == STOPS[protocol]
                assert answer.headers["content-type"] == "application/json"
                assert answer.headers["x-should-retry"] == "false"
                assert "budget of" in told(protocol, answer.json())
            assert access.usage.requests == 2
            return access.usage.budget_refusal

    outcome, spent = await run(tmp_path, [scripted(tmp_path, dear)], body, usd="0.03")
    assert outcome.status is Status.DONE, outcome
    assert "left of $0.03" in str(outcome.value)
    assert len(asked_for) == 1
    assert sum(bill(tmp_path)) == spent.settled.usd
    assert [line["status"] for line in transcript(tmp_path) if "reply" in line] == [200, STOPS[protocol]]


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["web_search_20250305", "code_execution_20250825"])
async def test_separately_billed_feature_is_refused_under_budget(tmp_path: Path, tool: str) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway) as (access, client):
            dear = asked("anthropic", tools=[{"type": tool, "name": "x"}])
            statuses = [(await client.post(PATHS["anthropic"], json=dear)).status_code]
            statuses.append((await client.post(PATHS["anthropic"], json=asked("anthropic"))).status_code)
            assert not access.usage.budget_refusal
            return statuses

    for usd, statuses in (("1", [400, 200]), (None, [200, 200])):
        folder = tmp_path / str(usd)
        outcome, _ = await run(folder, [scripted(folder, lambda _: "well")], body, usd=usd)
        assert (outcome.status, outcome.value) == (Status.DONE, statuses)


@pytest.mark.anyio
async def test_next_turn_is_bounded_by_reported_counts_not_bytes(
    tmp_path: Path,
) -> None:
    """A system prompt of 60 kB, whose first block is another one each time, as one of the programs has it."""
    usage = Usage(input=15_000, output=100)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway) as (access, client):
            for turn in range(6):
                system = [
                    {"type": "text", "text": f"billing {turn}"},
                    {"type": "text", "text": "x" * 60_000, "cache_control": {"type": "ephemeral"}},
                ]
                answer = await client.post(
                    PATHS["anthropic"], json=asked("anthropic", f"{turn}", system=system)
                )
                assert answer.status_code == 200, (turn, answer.text)
            return access.usage.budget_refusal

    outcome, spent = await run(
        tmp_path, [scripted(tmp_path, lambda _: ScriptedReply("ok", usage=usage))], body, usd="0.36"
    )
    assert (outcome.status, outcome.value) == (Status.DONE, "")
    assert Decimal("0.27") < spent.settled.usd < Decimal("0.36")
