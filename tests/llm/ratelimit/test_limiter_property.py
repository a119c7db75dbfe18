"""Limiters against a model that derives every answer from a full history, and under random callers."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import Cause, ModelUnavailable, RateLimited
from codetaste.llm.messages import Message, Reply, Request, StopReason, TextBlock, Usage
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.ratelimit.adaptive import AdaptiveLimit
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.retry import RetryRule
from codetaste.orchestration.session import open_session
from support.orchestration.closure_jobs import closure_job

RULE = RetryRule(tries=50, first_s=0.001, max_s=0.004, jitter=0.5)


@dataclass
class SentRequest:
    at: float
    over: bool = False


@dataclass
class HistoryModel:
    """The history of requests and pauses; everything else is derived from it each time."""

    most: int
    patience: float
    step: float
    limit: int
    sent: list[SentRequest] = field(default_factory=list)
    pauses: list[tuple[int, float]] = field(default_factory=list)
    """For each pause the number of requests sent before it, and its end."""
    events: list[tuple[str, float]] = field(default_factory=list)
    """The events since the last pause: "sent", "answered" and "ended"."""
    climbing: int = 0

    def in_flight(self) -> int:
        return sum(not each.over for each in self.sent)

    def sent_before_pause(self) -> int:
        return self.pauses[-1][0] if self.pauses else 0

    def window(self, now: float) -> float:
        """Return how many requests sent since the last pause may be in flight at once, from the events."""
        if not self.pauses:
            return math.inf
        window, since, left = 1.0, None, 0
        for what, at in [*self.events, ("now", now)]:
            while since is not None and window < self.limit and at - since >= self.step:
                window, since = window * 2, since + self.step
            if window >= self.limit and window > 1:
                return math.inf
            left += {"sent": 1, "answered": -1, "ended": -1}.get(what, 0)
            if what == "sent" and since is None:
                since = at
            if what == "answered":
                window += 1
            if what == "ended" and window == 1 and not left:
                since = None
        return math.inf if window >= self.limit and window > 1 else window

    def room(self, now: float) -> bool:
        fresh = sum(not each.over for each in self.sent[self.sent_before_pause() :])
        paused = bool(self.pauses) and now < self.pauses[-1][1]
        return not paused and self.in_flight() < self.limit and fresh < self.window(now)

    def answered(self, index: int, now: float) -> None:
        self.sent[index].over = True
        if index < self.sent_before_pause():
            return
        starting = self.window(now) < math.inf
        self.events.append(("answered", now))
        if not starting:
            self.climbing += 1
            if self.climbing == self.limit:
                self.climbing, self.limit = 0, min(self.limit + 1, self.most)

    def ended(self, index: int, now: float) -> None:
        self.sent[index].over = True
        if index >= self.sent_before_pause():
            self.events.append(("ended", now))

    def refused(self, index: int, now: float, retry_after: float | None, own: float) -> None:
        self.sent[index].over = True
        if index >= self.sent_before_pause():
            reached = min(self.window(now), self.limit)
            if reached > 1 or self.window(now) == math.inf:
                self.limit = max(1, int(reached * 0.7))
            self.pause(now + min(max(own, retry_after or 0.0), self.patience))
        elif retry_after is not None and now + min(retry_after, self.patience) > self.pauses[-1][1]:
            self.pause(now + min(retry_after, self.patience))

    def pause(self, until: float) -> None:
        self.pauses.append((len(self.sent), until))
        self.events.clear()
        self.climbing = 0


def constant(seconds: float) -> Callable[[int], float]:
    return lambda _: seconds


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "send", "send", "answer", "answer", "refuse", "end", "wait"]),
        st.integers(0, 30),
        st.sampled_from([None, None, 0.0, 1.0, 7.0, 1000.0]),
    ),
    max_size=120,
)


@given(most=st.integers(1, 9), steps=STEPS)
@settings(max_examples=300)
def test_limit_equals_that_of_history_model(most: int, steps: list[tuple[str, int, float | None]]) -> None:
    adaptive = AdaptiveLimit(most, patience_s=20.0, step_s=2.0)
    model = HistoryModel(most, patience=20.0, step=2.0, limit=most)
    rounds: list[int] = []
    now = 0.0
    for what, number, retry_after in steps:
        in_flight = [index for index, each in enumerate(model.sent) if not each.over]
        assert adaptive.has_room(now) == model.room(now)
        if what == "wait":
            now += number / 4
        elif what == "send":
            if adaptive.has_room(now):
                rounds.append(adaptive.start_request(now))
                model.sent.append(SentRequest(now))
                model.events.append(("sent", now))
        elif in_flight:
            index = in_flight[number % len(in_flight)]
            if what == "answer":
                adaptive.record_success(rounds[index], now)
                model.answered(index, now)
            elif what == "end":
                adaptive.release(rounds[index])
                model.ended(index, now)
            else:
                refusal = adaptive.record_refusal(
                    rounds[index], now, retry_after, constant(max(3.0, retry_after or 0.0))
                )
                # A provider that is given up is probed again soon, whatever its retry-after time.
                model.refused(
                    index, now, min(retry_after or 0.0, 5.0) if refusal.gave_up else retry_after, 3.0
                )
        assert (adaptive.limit, adaptive.in_flight) == (model.limit, model.in_flight())
        assert 1 <= adaptive.limit <= most
        if not adaptive.has_room(now) and adaptive.opens_at(now) < math.inf:
            assert not model.room(adaptive.opens_at(now) - 0.01)


@dataclass(frozen=True)
class Caller:
    """The times at which a caller arrives and is cancelled, and its duration, all in milliseconds."""

    arrives: int
    duration: int
    gives_up: int
    outcome: str


CALLERS = st.lists(
    st.builds(
        Caller,
        st.integers(0, 12),
        st.integers(0, 4),
        st.sampled_from([*range(12), 1000, 1000, 1000]),
        st.sampled_from(["answered", "answered", "refused", "retry-after", "ended"]),
    ),
    min_size=1,
    max_size=25,
)


async def run_callers(callers: list[Caller], most: int, changes: list[int]) -> None:
    limiter = RateLimiter("m", maximum=most, patience_s=0.05, step_s=0.002, rng=random.Random(0))
    in_flight = highest = 0
    bounds = [most]

    async def call(caller: Caller) -> None:
        nonlocal in_flight, highest
        await anyio.sleep(caller.arrives / 1000)
        with anyio.move_on_after(caller.gives_up / 1000):
            try:
                permit = await limiter.acquire()
            except RateLimited:
                return  # on a slow machine the limiter's patience ends first
            if not permit.valid:
                permit.release()
                return
            assert limiter.statistics().paused_s == 0
            in_flight += 1
            highest = max(highest, in_flight)
            try:
                await anyio.sleep(caller.duration / 1000)
                if caller.outcome == "answered":
                    permit.succeeded()
                elif caller.outcome in {"refused", "retry-after"}:
                    retry_after_s = 0.003 if caller.outcome == "retry-after" else None
                    permit.refused(RateLimited("429", retry_after_s=retry_after_s), RULE)
            except RateLimited:
                pass
            finally:
                in_flight -= 1
                permit.release()

    async def change() -> None:
        for new in changes:
            await anyio.sleep(0.003)
            bounds.append(new)
            limiter.maximum = new

    with anyio.fail_after(200):
        async with anyio.create_task_group() as group:
            group.start_soon(change)
            for caller in callers:
                group.start_soon(call, caller)
    now = limiter.statistics()
    assert (now.in_flight, now.waiting) == (0, 0)
    assert highest <= max(bounds)
    assert 1 <= now.limit <= now.maximum == bounds[-1]
    # No permit is leaked: a new caller gets one.
    with anyio.fail_after(60):
        (await limiter.acquire()).release()


@given(CALLERS, st.integers(1, 5), st.lists(st.integers(1, 6), max_size=3))
@settings(max_examples=60)
def test_counts_are_correct_after_callers_arriving_and_leaving_at_any_time(
    callers: list[Caller], most: int, changes: list[int]
) -> None:
    anyio.run(run_callers, callers, most, changes)


class Provider:
    """Answers or fails after a short time; counts concurrent requests."""

    id = "m"
    has_ledger = False

    def __init__(self, outcomes: list[str]) -> None:
        self.outcomes, self.requests = outcomes, 0
        self.at_once = self.most_at_once = 0

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - it keeps no record
        outcome = self.outcomes[self.requests % len(self.outcomes)]
        self.requests += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await anyio.sleep(0.001 * (self.requests % 3))
        finally:
            self.at_once -= 1
        if outcome == "429":
            raise RateLimited("429", retry_after_s=0.001)
        if outcome == "cut":
            raise ModelUnavailable("cut")
        usage = Usage(input=100, output=request.max_output_tokens // 2)
        return Reply(Message("assistant", (TextBlock("yes"),)), StopReason.END, usage, "m")

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - it keeps no record
        return None

    async def aclose(self) -> None:
        pass


async def run_jobs(
    provider_outcomes: list[str], permits: int, usd: Decimal, shares: list[int], jobs: int, calls: int
) -> None:
    provider = Provider(provider_outcomes)
    limiter = RateLimiter("m", maximum=permits, patience_s=0.05, step_s=0.002)
    table = {cause: RetryRule(tries=3, first_s=0.001) for cause in (Cause.RATE_LIMIT, Cause.UNAVAILABLE)}
    model = MeteredModel(provider, Price(input=Decimal(1), output=Decimal(5)), limiter, retries=table)

    async def call(ctx: JobContext, name: str) -> None:
        request = Request("s", (Message("user", (TextBlock(name),)),), max_output_tokens=2000)
        await model.complete(request, ctx=ctx, name=name)

    async def body(ctx: JobContext) -> Json:
        async with anyio.create_task_group() as group:
            for number in range(calls):
                group.start_soon(call, ctx, f"{number}")
        return "done"

    with tempfile.TemporaryDirectory() as folder, anyio.fail_after(200):
        async with open_session(Path(folder), BudgetLimits(usd=usd), retries={}) as session:
            for number in range(jobs):
                share = shares[number % len(shares)]
                node = session.budget.child(
                    f"share-{number % len(shares)}", BudgetLimits(usd=usd * share / 100)
                )
                session.add(closure_job(session, f"job-{number}", body, node, "f"))
            outcomes = await session.run()
            money = session.budget.snapshot()
    assert len(outcomes) == jobs
    assert not [outcome.traceback for outcome in outcomes.values() if outcome.traceback]
    assert money.reserved.usd == 0
    assert money.spent.usd <= usd
    now = limiter.statistics()
    assert (now.in_flight, now.waiting) == (0, 0)
    assert provider.most_at_once <= permits


TIGHT_PLANS = st.tuples(
    st.lists(st.sampled_from(["ok", "ok", "ok", "429", "cut"]), min_size=1, max_size=8),
    st.integers(1, 3),
    st.decimals("0.01", "0.15", places=3),
    st.lists(st.integers(10, 100), min_size=1, max_size=4),
    st.integers(1, 8),
    st.integers(1, 5),
)


@given(TIGHT_PLANS)
@settings(max_examples=40)
def test_jobs_over_nested_budgets_and_few_permits_end(
    plan: tuple[list[str], int, Decimal, list[int], int, int],
) -> None:
    anyio.run(run_jobs, *plan)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@given(TIGHT_PLANS)
@settings(max_examples=800)
def test_jobs_over_nested_budgets_and_few_permits_end_many_plans(
    plan: tuple[list[str], int, Decimal, list[int], int, int],
) -> None:
    anyio.run(run_jobs, *plan)
