"""A job is never billed more through the gateway than its budget, even with concurrent requests."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.gateway.gateway import Gateway, open_gateway
from codetaste.llm.messages import Request, Usage
from codetaste.llm.providers.scripted import ScriptedReply
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.gateway.billed_clients import make_gateway_model
from support.gateway.jobs import (
    PATHS,
    PROTOCOLS,
    admit_client,
    make_request,
    make_scripted_model,
    read_journal,
    read_transcript_lines,
    run_job,
)
from support.llm.provider import server as provider
from support.orchestration.closure_jobs import closure_job

STOPS = {"anthropic": 402, "openai": 400, "openai-chat": 402}
"""The status at which each agent stops at once, as measured."""


def read_bill(folder: Path) -> list[Decimal]:
    """Compute the costs from the provider's ledger alone, at 3 and 15 dollars per million tokens."""
    lines = (folder / "m.ledger.jsonl").read_text().splitlines()
    usages = [json.loads(line)["usage"] for line in lines]
    return [Decimal(3 * usage["input"] + 15 * usage["output"]) / 1_000_000 for usage in usages]


def read_events(folder: Path) -> list[str]:
    """Return the names of the events of the journal."""
    return [line["event"] for line in read_journal(folder)]


@given(
    usd=st.integers(5, 200),
    caps=st.lists(st.integers(1024, 9000) | st.integers(1, 1023), min_size=1, max_size=14),
    sizes=st.lists(st.integers(1, 9000), min_size=14, max_size=14),
    share=st.floats(0.0, 1.0),
)
@settings(max_examples=15)
def test_concurrent_requests_never_cost_more_than_budget(
    usd: int, caps: list[int], sizes: list[int], share: float
) -> None:
    """Each reply costs a share of its maximum and has a different latency."""

    async def reply(request: Request) -> ScriptedReply:
        await anyio.sleep(0.001 * (request.max_output_tokens % 7))
        prompt = json.dumps(request.messages[-1].text)
        output = int(request.max_output_tokens * share)
        return ScriptedReply("well", usage=Usage(input=int(len(prompt) * share) + 1, output=output))

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        statuses: list[int] = []

        async def send(client: httpx.AsyncClient, cap: int, size: int) -> None:
            request = make_request("anthropic", "x" * size, max_tokens=cap)
            statuses.append((await client.post(PATHS["anthropic"], json=request)).status_code)

        async with admit_client(ctx, gateway) as (access, client), anyio.create_task_group() as tasks:
            for cap, size in zip(caps, sizes, strict=False):
                tasks.start_soon(send, client, cap, size)
        assert {*statuses} <= {200, 402}
        assert (402 in statuses) == bool(access.usage.budget_refusal) == access.usage.stopped.is_set()
        return str(access.usage.settled_usd)

    with TemporaryDirectory() as name:
        folder = Path(name)
        limit = Decimal(usd) / 1000
        outcome, spent = anyio.run(
            lambda: run_job(folder, [make_scripted_model(folder, reply)], body, usd=str(limit)),
            backend="asyncio",
        )
        assert outcome.status is Status.DONE, outcome
        billed = read_bill(folder) if (folder / "m.ledger.jsonl").exists() else []
        assert sum(billed) == spent.settled.usd == Decimal(str(outcome.value))
        assert sum(billed) <= limit
        assert spent.unknown.usd == 0


def refusal_message(protocol: str, body: dict[str, Any]) -> str:
    """Check that a refusal has the protocol's shape; return its message."""
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
    requests: list[Request] = []

    def expensive(request: Request) -> ScriptedReply:
        requests.append(request)
        return ScriptedReply("well", usage=Usage(input=1000, output=1024))

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol) as (access, client):
            send: Callable[[], Awaitable[httpx.Response]] = lambda: client.post(  # noqa: E731
                PATHS[protocol], json=make_request(protocol, stream=stream)
            )
            assert (await send()).status_code == 200
            assert not access.usage.stopped.is_set()
            first = await send()
            assert access.usage.stopped.is_set()
            later = [await send() for _ in range(5)]
            for response in [first, *later]:
                assert response.status_code == STOPS[protocol]
                assert response.headers["content-type"] == "application/json"
                assert response.headers["x-should-retry"] == "false"
                assert "budget of" in refusal_message(protocol, response.json())
            assert access.usage.requests == 2
            return access.usage.budget_refusal

    outcome, spent = await run_job(tmp_path, [make_scripted_model(tmp_path, expensive)], body, usd="0.03")
    assert outcome.status is Status.DONE, outcome
    assert "left of $0.03" in str(outcome.value)
    assert len(requests) == 1
    assert sum(read_bill(tmp_path)) == spent.settled.usd
    assert [line["status"] for line in read_transcript_lines(tmp_path) if "reply" in line] == [
        200,
        STOPS[protocol],
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["web_search_20250305", "code_execution_20250825"])
async def test_feature_of_unknown_cost_is_refused_under_budget(tmp_path: Path, tool: str) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (access, client):
            request = make_request("anthropic", tools=[{"type": tool, "name": "x"}])
            first = await client.post(PATHS["anthropic"], json=request)
            if first.is_error:
                message = first.json()["error"]["message"]
                assert f'tools[0].type = "{tool}" is not allowed' in message
                assert f'allow = {{ "tools[].type={tool}" = … }} in [[models]] opens it' in message
                assert first.headers["x-should-retry"] == "false"
                assert access.usage.refused_request == message
            statuses = [first.status_code]
            statuses.append(
                (await client.post(PATHS["anthropic"], json=make_request("anthropic"))).status_code
            )
            assert not access.usage.budget_refusal
            return statuses

    cases: tuple[tuple[dict[str, Any], list[int]], ...] = (
        ({"usd": "1"}, [403, 200]),
        ({"tokens": 100_000}, [403, 200]),
        ({}, [200, 200]),
    )
    for limits, statuses in cases:
        folder = tmp_path / "-".join(limits)
        model = make_scripted_model(folder, lambda _: "well")
        outcome, _ = await run_job(folder, [model], body, **limits)
        assert (outcome.status, outcome.value) == (Status.DONE, statuses)


@pytest.mark.anyio
async def test_opened_feature_is_reserved_and_charged_in_addition(tmp_path: Path) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    usage = Usage(input=1000, output=100)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (_, client):
            requests = [make_request("anthropic", tools=[search]), make_request("anthropic")]
            for request in (*requests, requests[0]):
                response = await client.post(PATHS["anthropic"], json=request)
            return [response.status_code, response.text]

    model = make_scripted_model(tmp_path, lambda _: ScriptedReply("ok", usage=usage))
    opened = replace(model, allow={"tools[].type=web_search_20250305": Decimal("0.1")})
    outcome, spent = await run_job(tmp_path, [opened], body, usd="0.2")
    status, text = outcome.value
    assert (status, "budget of" in text) == (402, True), "the second search does not fit any more"
    assert spent.settled.usd == Decimal("0.1") + 2 * (3 * usage.input + 15 * usage.output) / Decimal(10**6)


@pytest.mark.anyio
async def test_next_turn_is_bounded_by_reported_counts_not_bytes(
    tmp_path: Path,
) -> None:
    """The system prompt has 60 kB, and its first block differs in each turn, as with a real agent."""
    usage = Usage(input=15_000, output=100)

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (access, client):
            for turn in range(6):
                system = [
                    {"type": "text", "text": f"billing {turn}"},
                    {"type": "text", "text": "x" * 60_000, "cache_control": {"type": "ephemeral"}},
                ]
                response = await client.post(
                    PATHS["anthropic"], json=make_request("anthropic", f"{turn}", system=system)
                )
                assert response.status_code == 200, (turn, response.text)
            return access.usage.budget_refusal

    outcome, spent = await run_job(
        tmp_path,
        [make_scripted_model(tmp_path, lambda _: ScriptedReply("ok", usage=usage))],
        body,
        usd="0.36",
    )
    assert (outcome.status, outcome.value) == (Status.DONE, "")
    assert Decimal("0.27") < spent.settled.usd < Decimal("0.36")


@pytest.mark.anyio
@pytest.mark.parametrize("permits", [1, 3])
async def test_reply_above_its_reservation_ends_the_model_in_all_jobs(tmp_path: Path, permits: int) -> None:
    """Only the calls in flight cost more than was reserved; with one permit (``strict``), one call."""
    requests: list[Request] = []
    all_in_flight = anyio.Event()

    async def expensive(request: Request) -> ScriptedReply:
        requests.append(request)
        if len(requests) == permits:
            all_in_flight.set()
        await all_in_flight.wait()
        return ScriptedReply("well", usage=Usage(input=1000, output=9000))

    model = make_scripted_model(tmp_path, expensive, permits=permits)
    statuses: list[int] = []
    messages: set[str] = set()

    async with (
        open_session(tmp_path / "run", BudgetLimits(usd=Decimal(100)), retries={}, grace_s=5.0) as session,
        open_gateway({model.id: model}, tmp_path / "run") as gateway,
    ):

        async def body(ctx: JobContext) -> Json:
            async with admit_client(ctx, gateway, name=f"{ctx.key}.jsonl") as (_, client):
                for _ in range(3):
                    answer = await client.post(PATHS["anthropic"], json=make_request("anthropic"))
                    statuses.append(answer.status_code)
                    if answer.is_error:
                        messages.add(answer.json()["error"]["message"])
            return None

        jobs = [closure_job(session, f"job-{n}", body, session.budget, "f") for n in range(5)]
        outcomes = await session.run(jobs)
        spent = session.budget.snapshot()
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    assert len(requests) == permits
    assert (statuses.count(200), len(statuses)) == (permits, 15)
    assert all("model m is not called again in this run" in message for message in messages)
    assert sum(read_bill(tmp_path)) == spent.settled.usd


@pytest.mark.anyio
@pytest.mark.parametrize(
    "variant",
    [
        {"headers": {"anthropic-version": "2026-10-21"}},
        {"headers": {"anthropic-beta": "effort-2025-11-24"}},
        {"params": {"beta": "true"}},
    ],
)
async def test_count_of_another_version_or_beta_is_not_used(
    tmp_path: Path, variant: dict[str, dict[str, str]]
) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (_, client):
            request = make_request("anthropic", "x" * 20_000)
            for more in ({"headers": {"anthropic-version": "2023-06-01"}}, variant, variant):
                assert (await client.post(PATHS["anthropic"], json=request, **more)).status_code == 200
        return None

    model = make_scripted_model(tmp_path, lambda _: ScriptedReply("ok", usage=Usage(input=5000, output=9)))
    await run_job(tmp_path, [model], body, usd="1")
    bounds = [line["note"]["prompt_tokens"] for line in read_journal(tmp_path) if line["event"] == "reserved"]
    assert bounds[1] == bounds[0] > 20_000
    assert bounds[2] < 10_000


@pytest.mark.anyio
async def test_count_without_thinking_bounds_no_prompt_with_it(tmp_path: Path) -> None:
    """A cap without room for thinking switches it off; the provider then drops that of earlier turns."""
    thought = {"type": "thinking", "thinking": "hm " * 20_000, "signature": "s"}
    call = {"type": "tool_use", "id": "t", "name": "bash", "input": {}}
    conversation = [
        {"role": "user", "content": "begin"},
        {"role": "assistant", "content": [thought, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]},
    ]

    async def answer(exchange: provider.Exchange) -> None:
        usage = {"input_tokens": 40 if exchange.body["thinking"]["type"] == "disabled" else 20_000}
        await provider.send_reply(exchange, provider.text("ok"), usage={**usage, "output_tokens": 5})

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        answered = 0
        async with admit_client(ctx, gateway, "anthropic", ["expensive"]) as (_, client):
            for cap in (16, 2000, 2000):
                thinking = {"type": "enabled", "budget_tokens": 1024}
                request = make_request("anthropic", max_tokens=cap, thinking=thinking, messages=conversation)
                response = await client.post(PATHS["anthropic"], json={**request, "model": "expensive"})
                assert response.status_code == 200, response.text
                answered += 1
                # The count is stored after the settlement, and before the reply is in the transcript.
                while sum("status" in line for line in read_transcript_lines(tmp_path)) < answered:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
        return None

    with provider.serving() as server:
        server.default = answer
        outcome, _ = await run_job(
            tmp_path, [make_gateway_model("anthropic", server.url, tmp_path)], body, usd="1000"
        )
    assert outcome.status is Status.DONE, outcome
    bounds = [line["note"]["prompt_tokens"] for line in read_journal(tmp_path) if line["event"] == "reserved"]
    assert bounds[1] >= 60_000, "the count without thinking is not used"
    assert bounds[2] < 25_000, "that with thinking is"
