"""A provider's bill never exceeds the budget, whatever the outcome of calls: against an exact bill."""

from __future__ import annotations

import random
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codetaste.errors import BudgetExceeded, Cause, ModelError, ModelRefused, ModelUnavailable, RateLimited
from codetaste.llm.messages import Message, Reply, Request, StopReason, TextBlock, Usage
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.budget.budget import Budget
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.retry import RetryRule
from codetaste.orchestration.session import open_session
from support.orchestration.closure_jobs import closure_job

QUICK = {cause: RetryRule(tries=3, first_s=0.001) for cause in (Cause.RATE_LIMIT, Cause.UNAVAILABLE)}
OUTCOMES = ("ok", "full", "silent", "absurd", "cut", "hang", "refused", "limited", "unsent", "in ledger")


class ExactProvider:
    """Bills exactly, in fractions of a dollar, from the text alone, without our arithmetic."""

    id = "m"
    has_ledger = False

    def __init__(self, prices: tuple[int, int], outcomes: list[str]) -> None:
        self.prices, self.outcomes = prices, outcomes
        self.billed: list[Fraction] = []
        self.bought: dict[str, Reply] = {}
        self.requests = 0

    async def complete(self, request: Request, *, call: str) -> Reply:
        outcome = self.outcomes[self.requests % len(self.outcomes)]
        self.requests += 1
        await anyio.sleep(0.001 * (self.requests % 3))
        if outcome == "refused":
            raise ModelRefused("400")
        if outcome == "limited":
            raise RateLimited("429")
        if outcome == "unsent":
            raise ModelUnavailable("no connection", unbilled=True)
        texts = [request.system, *(message.text for message in request.messages)]
        # The worst tokenizer: a token for each byte, and some for each message and the call.
        prompt = sum(len(text.encode()) + 8 for text in texts) + 500
        output = request.max_output_tokens if outcome == "full" else min(request.max_output_tokens, 700)
        self.billed.append(Fraction(prompt * self.prices[0] + output * self.prices[1], 10**6))
        usage: Any = Usage(input=prompt, output=output)
        reply = Reply(Message("assistant", (TextBlock("y" * 50),)), StopReason.END, usage, "m")
        if outcome == "hang":
            await anyio.sleep_forever()
        if outcome == "cut":
            raise ModelUnavailable("cut")
        if outcome == "in ledger":
            self.bought[call] = reply
            raise ModelUnavailable("cut")
        if outcome in {"silent", "absurd"}:
            usage = None if outcome == "silent" else Usage(input=-1, output=10**12)
            return Reply(reply.message, reply.stop, usage, "m")
        return reply

    async def lookup(self, call: str) -> Reply | None:
        return self.bought.get(call)

    async def aclose(self) -> None:
        pass


async def session(
    folder: Path, provider: ExactProvider, usd: Decimal, jobs: int, cap: int, stop_after_s: float
) -> tuple[Budget, dict[str, bool]]:
    price = Price(input=Decimal(provider.prices[0]), output=Decimal(provider.prices[1]))
    model = MeteredModel(
        provider,
        price,
        RateLimiter("m", maximum=3, patience_s=0.02, step_s=0.001),
        retries=QUICK,
        rng=random.Random(1),
    )

    async def body(ctx: JobContext) -> Json:
        messages: tuple[Message, ...] = (Message("user", (TextBlock(f"job {ctx.key} é" * 20),)),)
        for turn in range(3):
            request = Request("s" * 300, messages, max_output_tokens=cap)
            try:
                reply = await model.complete(request, ctx=ctx, name=f"turn-{turn}")
            except BudgetExceeded:
                return "out of budget"
            messages = (*messages, reply.message, Message("user", (TextBlock("go on"),)))
        return "done"

    async with open_session(folder, BudgetLimits(usd=usd), retries={}, grace_s=1.0) as run:
        half = BudgetLimits(usd=usd / 2)
        for number in range(jobs):
            node = run.budget.child("narrow", half) if number % 2 else run.budget
            run.add(closure_job(run, f"job-{number}", body, node, "f"))
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await anyio.sleep(stop_after_s)
                run.drain("stopped by the test")
                run.drain("stopped at once")

            group.start_soon(stop)
            outcomes = await run.run()
            group.cancel_scope.cancel()
        for outcome in outcomes.values():
            assert not outcome.traceback, outcome.traceback
        now = model.limiter.statistics()
        assert (now.in_flight, now.waiting) == (0, 0)
        return run.budget, {key: outcome.usable for key, outcome in outcomes.items()}


def check(prices: tuple[int, int], outcomes: list[str], usd: Decimal, jobs: int, cap: int) -> None:
    provider = ExactProvider(prices, outcomes)

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(3):
                budget, _outcomes = await session(Path(folder), provider, usd, jobs, cap, 0.08)
                billed = sum(provider.billed, Fraction(0))
                snapshot = budget.snapshot()
                assert billed <= Fraction(usd)
                assert billed <= Fraction(snapshot.settled.usd + snapshot.unknown.usd) <= Fraction(usd)
                assert Fraction(snapshot.settled.usd) <= billed
                assert snapshot.reserved.usd == 0

    anyio.run(main)


plans = st.tuples(
    st.tuples(st.integers(0, 20), st.integers(0, 80)),
    st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=12),
    st.decimals("0.001", "0.6", places=4),
    st.integers(1, 6),
    st.sampled_from([100, 1024, 3000, 20_000]),
)


@given(plans)
# A lowered cap that is used up; calls that are cut when little budget is left.
@example(((3, 15), ["full"], Decimal("0.05"), 1, 20_000))
@example(((3, 15), ["full", "cut", "hang"], Decimal("0.2"), 6, 20_000))
@settings(max_examples=40, deadline=None)
def test_bill_never_exceeds_budget_and_is_accounted_for(
    plan: tuple[tuple[int, int], list[str], Decimal, int, int],
) -> None:
    check(*plan)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@given(plans)
@settings(max_examples=600, deadline=None)
def test_bill_never_exceeds_budget_over_many_plans(
    plan: tuple[tuple[int, int], list[str], Decimal, int, int],
) -> None:
    check(*plan)


def test_error_kinds_state_whether_call_may_be_billed() -> None:
    known: dict[type[ModelError], bool] = {RateLimited: True, ModelRefused: True, ModelUnavailable: False}
    assert {kind: kind("x").unbilled for kind in known} == known
