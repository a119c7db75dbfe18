"""A real client, a server on the loopback that fails in every way, and its bill against our books."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal
from pathlib import Path

import anyio
import loopback_provider as provider
import pytest

from codetaste.errors import BudgetExceeded, Cause, ModelError
from codetaste.llm.anthropic import AnthropicModel
from codetaste.llm.messages import Message, Request, Text, ToolResult, ToolSpec
from codetaste.llm.metered import MeteredModel
from codetaste.llm.pricing import Price
from codetaste.orchestration.budget import Limits
from codetaste.orchestration.job import Job, JobContext, Json
from codetaste.orchestration.retry import Retry
from codetaste.orchestration.session import open_session

PRICE = Price(input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75"))
QUICK = {
    cause: Retry(tries=4, first_s=0.005) for cause in (Cause.RATE_LIMIT, Cause.UNAVAILABLE, Cause.MALFORMED)
}
TOOL = ToolSpec("look", "Look at a place.", {"type": "object", "properties": {"at": {"type": "string"}}})
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "here"}}
BAD_CALL = {"type": "tool_use", "id": "toolu_2", "name": "look", "partial": '{"at": "he'}
THINKING = {"type": "thinking", "thinking": "hm " * 50, "signature": "c2ln" * 20}


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        yield running


def billed_usd(server: provider.Server) -> Decimal:
    return (
        sum((PRICE.input * each.prompt + PRICE.output * each.output for each in server.bill), Decimal(0))
        / 10**6
    )


ACTS = [
    provider.reply(THINKING, provider.text("looking"), CALL, stop="tool_use"),
    provider.reply(provider.text("looking"), CALL, stop="tool_use", chunked=True),
    provider.reply(THINKING, BAD_CALL, stop="max_tokens"),
    provider.reply(provider.text("x"), CALL, tell=False),
    provider.cut(provider.text("cut"), CALL),
    provider.cut(provider.text("cut"), CALL, chunked=True),
    provider.stall(provider.text("stalled"), seconds=5),
    provider.status(429, retry_after="0.01"),
    provider.status(529),
    provider.status(500),
    provider.status(200, "<html>", content_type="text/html"),
    provider.hang_up,
]


def conversation(model: MeteredModel, turns: int) -> Callable[[JobContext], Awaitable[Json]]:
    async def body(ctx: JobContext) -> Json:
        messages: list[Message] = [Message("user", (Text("Begin. " * 40),))]
        for turn in range(turns):
            request = Request("Be brief. " * 30, tuple(messages), (TOOL,), max_output_tokens=3000)
            try:
                reply = await model.complete(request, ctx=ctx, name=f"turn-{turn}")
            except (BudgetExceeded, ModelError) as error:
                return str(error)
            results = tuple(ToolResult(call.id, call.fault or "seen") for call in reply.message.tool_calls)
            messages += [reply.message, Message("user", results or (Text("go on"),))]
        return "done"

    return body


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(4))
async def test_the_servers_bill_never_passes_the_budget_and_our_books_hold_all_of_it(
    server: provider.Server, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    good = ACTS[:2]
    server.acts.extend(rng.choice(ACTS if rng.random() < 0.5 else good) for _ in range(200))
    client = AnthropicModel("m", "x", api_key="sk-dummy", base_url=server.url, timeout_s=0.5)
    model = MeteredModel(client, PRICE, anyio.CapacityLimiter(3), retries=QUICK, rng=rng)
    budget = Decimal("0.45")
    # The second session buys everything anew, from what the first one has left.
    for turns in (2, 4):
        async with open_session(
            tmp_path, Limits(usd=budget), retries={}, grace_s=2.0, rerun="all"
        ) as session:
            body = conversation(model, turns)
            jobs = [Job(f"job-{n}", body, session.budget, "f") for n in range(4)]
            outcomes = await session.run(jobs)
            spent = session.budget.snapshot()
        assert not any(outcome.traceback for outcome in outcomes.values())
        assert billed_usd(server) <= budget
        assert spent.settled.usd <= billed_usd(server) <= spent.settled.usd + spent.unknown.usd <= budget
        assert spent.settled.usd > 0
    await client.aclose()


@pytest.mark.anyio
async def test_without_faults_the_books_equal_the_bill_to_the_last_digit(
    server: provider.Server, tmp_path: Path
) -> None:
    server.default = provider.reply(THINKING, provider.text("looking"), CALL, stop="tool_use")
    client = AnthropicModel("m", "x", api_key="sk-dummy", base_url=server.url)
    model = MeteredModel(client, PRICE, anyio.CapacityLimiter(4), retries=QUICK)
    async with open_session(tmp_path, Limits(usd=Decimal(5)), retries={}) as session:
        body = conversation(model, 5)
        jobs = [Job(f"job-{n}", body, session.budget, "f") for n in range(3)]
        outcomes = await session.run(jobs)
        spent = session.budget.snapshot()
    await client.aclose()
    assert [outcome.value for outcome in outcomes.values()] == ["done"] * 3
    assert len(server.bill) == 15
    assert spent.settled.usd == billed_usd(server)
    assert spent.unknown.usd == 0
