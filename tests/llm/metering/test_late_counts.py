"""A provider that counts later what it has not counted before bills no more than the budget and one call."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import BudgetExceeded, ModelError
from codetaste.llm.messages import Message, Request, TextBlock, ToolSpec
from codetaste.llm.metering.metered import MeteredModel
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.llm.bill_run import make_model
from support.llm.late_counts import LONG, PARTS, LateCounts
from support.llm.provider import server as provider
from support.orchestration.closure_jobs import closure_job

BUDGET_USD = Decimal(1)
CONVERSATIONS = 32


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        yield running


async def converse(model: MeteredModel, ctx: JobContext, part: str, turns: int) -> Json:
    """Run a conversation in which ``part`` is long, until the model or the budget ends it."""
    tool = ToolSpec("look", LONG if part == "tools" else "Look.", {"type": "object"})
    first = LONG if part == "earlier messages" else "hello"
    texts = (("user", f"{ctx.key} {first}"), ("assistant", "well"), ("user", "go on"))
    messages = [Message(role, (TextBlock(text),)) for role, text in texts]
    for turn in range(turns):
        system = LONG if part == "system" else "Be brief."
        request = Request(system, tuple(messages), (tool,), max_output_tokens=64)
        try:
            reply = await model.complete(request, ctx=ctx, name=f"turn-{turn}")
        except (BudgetExceeded, ModelError) as error:
            return str(error)
        messages += [reply.message, Message("user", (TextBlock(f"go on {turn}"),))]
    return None


@pytest.mark.anyio
@pytest.mark.parametrize("part", [part for part in PARTS if part != "pictures"])
@pytest.mark.parametrize(("known_turns", "tells"), [(1, True), (2, True), (1, False)])
async def test_own_calls_in_flight_are_paid_whatever_the_provider_counts_later(
    server: provider.Server, tmp_path: Path, part: str, known_turns: int, tells: bool
) -> None:
    server.default = LateCounts(part, CONVERSATIONS * known_turns, tells).answer
    model = make_model("expensive", "anthropic", server.url, tmp_path, permits=CONVERSATIONS)

    async def work(ctx: JobContext) -> Json:
        return await converse(model, ctx, part, known_turns + 2)

    async with open_session(tmp_path / "run", BudgetLimits(usd=BUDGET_USD), retries={}) as session:
        jobs: list[Any] = [
            closure_job(session, f"job-{number}", work, session.budget, "f")
            for number in range(CONVERSATIONS)
        ]
        outcomes = await session.run(jobs)
        spent = session.budget.snapshot().spent.usd
    await model.aclose()
    print(f"{part}: bill ${server.billed_usd} for {len(server.bill)} calls")  # noqa: T201
    assert len(server.bill) > CONVERSATIONS * known_turns
    if tells:
        assert any("is not called again" in str(outcome.value) for outcome in outcomes.values())
    assert server.billed_usd <= spent
    assert server.billed_usd <= BUDGET_USD + max(each.usd for each in server.bill)
    assert server.billed_usd <= BUDGET_USD * Decimal("1.1")
