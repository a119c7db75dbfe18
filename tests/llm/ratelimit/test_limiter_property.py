"""Limiters against a model that remembers everything and looks it all up, and under random callers."""

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
class Sent:
    at: float
    over: bool = False


@dataclass
class BruteForce:
    """What was sent and when all were told to pause; the rest is worked out from that, each time anew."""

    most: int
    patience: float
    step: float
    limit: int
    sent: list[Sent] = field(default_factory=list)
    pauses: list[tuple[int, float]] = field(default_factory=list)
    """For each pause how many requests had been sent before it, and when it ends."""
    news: list[tuple[str, float]] = field(default_factory=list)
    """What happened since the last pause: "sent", "answered" and "told nothing"."""
    climbing: int = 0

    def at_work(self) -> int:
        return sum(not each.over for each in self.sent)

    def earlier(self) -> int:
        return self.pauses[-1][0] if self.pauses else 0

    def window(self, now: float) -> float:
        """How many of those sent since the last pause may be at work at once: replayed from the news."""
        if not self.pauses:
            return math.inf
        window, since, left = 1.0, None, 0
        for what, at in [*self.news, ("now", now)]:
            while since is not None and window < self.limit and at - since >= self.step:
                window, since = window * 2, since + self.step
            if window >= self.limit and window > 1:
                return math.inf
            left += {"sent": 1, "answered": -1, "told nothing": -1}.get(what, 0)
            if what == "sent" and since is None:
                since = at
            if what == "answered":
                window += 1
            if what == "told nothing" and window == 1 and not left:
                since = None
        return math.inf if window >= self.limit and window > 1 else window

    def room(self, now: float) -> bool:
        fresh = sum(not each.over for each in self.sent[self.earlier() :])
        paused = bool(self.pauses) and now < self.pauses[-1][1]
        return not paused and self.at_work() < self.limit and fresh < self.window(now)

    def answered(self, index: int, now: float) -> None:
        self.sent[index].over = True
        if index < self.earlier():
            return
        starting = self.window(now) < math.inf
        self.news.append(("answered", now))
        if not starting:
            self.climbing += 1
            if self.climbing == self.limit:
                self.climbing, self.limit = 0, min(self.limit + 1, self.most)

    def ended(self, index: int, now: float) -> None:
        self.sent[index].over = True
        if index >= self.earlier():
            self.news.append(("told nothing", now))

    def refused(self, index: int, now: float, asked: float | None, own: float) -> None:
        self.sent[index].over = True
        if index >= self.earlier():
            reached = min(self.window(now), self.limit)
            if reached > 1 or self.window(now) == math.inf:
                self.limit = max(1, int(reached * 0.7))
            self.pause(now + min(max(own, asked or 0.0), self.patience))
        elif asked is not None and now + min(asked, self.patience) > self.pauses[-1][1]:
            self.pause(now + min(asked, self.patience))

    def pause(self, until: float) -> None:
        self.pauses.append((len(self.sent), until))
        self.news.clear()
        self.climbing = 0


def always(seconds: float) -> Callable[[int], float]:
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
def test_the_limit_is_what_a_model_with_a_perfect_memory_says(
    most: int, steps: list[tuple[str, int, float | None]]
) -> None:
    congestion = AdaptiveLimit(most, patience_s=20.0, step_s=2.0)
    model = BruteForce(most, patience=20.0, step=2.0, limit=most)
    rounds: list[int] = []
    now = 0.0
    for what, number, asked in steps:
        at_work = [index for index, each in enumerate(model.sent) if not each.over]
        assert congestion.has_room(now) == model.room(now)
        if what == "wait":
            now += number / 4
        elif what == "send":
            if congestion.has_room(now):
                rounds.append(congestion.start_request(now))
                model.sent.append(Sent(now))
                model.news.append(("sent", now))
        elif at_work:
            index = at_work[number % len(at_work)]
            if what == "answer":
                congestion.record_success(rounds[index], now)
                model.answered(index, now)
            elif what == "end":
                congestion.release(rounds[index])
                model.ended(index, now)
            else:
                refusal = congestion.record_refusal(rounds[index], now, asked, always(max(3.0, asked or 0.0)))
                # What is given up is asked again soon, whatever it said.
                model.refused(index, now, min(asked or 0.0, 5.0) if refusal.gave_up else asked, 3.0)
        assert (congestion.limit, congestion.in_flight) == (model.limit, model.at_work())
        assert 1 <= congestion.limit <= most
        if not congestion.has_room(now) and congestion.opens_at(now) < math.inf:
            assert not model.room(congestion.opens_at(now) - 0.01)


@dataclass(frozen=True)
class Caller:
    """Comes at a time, works for a time, and is cancelled at a time, all in milliseconds."""

    comes: int
    works: int
    gives_up: int
    fate: str


CALLERS = st.lists(
    st.builds(
        Caller,
        st.integers(0, 12),
        st.integers(0, 4),
        st.sampled_from([*range(12), 1000, 1000, 1000]),
        st.sampled_from(["answered", "answered", "refused", "asked", "lost"]),
    ),
    min_size=1,
    max_size=25,
)


async def live(callers: list[Caller], most: int, changes: list[int]) -> None:
    limiter = RateLimiter("m", maximum=most, patience_s=0.05, step_s=0.002, rng=random.Random(0))
    at_work = highest = 0
    bounds = [most]

    async def call(caller: Caller) -> None:
        nonlocal at_work, highest
        await anyio.sleep(caller.comes / 1000)
        with anyio.move_on_after(caller.gives_up / 1000):
            slot = await limiter.acquire()
            if not slot.valid:
                slot.release()
                return
            assert limiter.statistics().paused_s == 0
            at_work += 1
            highest = max(highest, at_work)
            try:
                await anyio.sleep(caller.works / 1000)
                if caller.fate == "answered":
                    slot.succeeded()
                elif caller.fate in {"refused", "asked"}:
                    asked_s = 0.003 if caller.fate == "asked" else None
                    slot.refused(RateLimited("429", retry_after_s=asked_s), RULE)
            except RateLimited:
                pass
            finally:
                at_work -= 1
                slot.release()

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
    # Nothing is left behind: a newcomer gets a slot.
    with anyio.fail_after(60):
        (await limiter.acquire()).release()


@given(CALLERS, st.integers(1, 5), st.lists(st.integers(1, 6), max_size=3))
@settings(max_examples=60)
def test_callers_that_come_and_go_at_any_time_leave_the_counts_right(
    callers: list[Caller], most: int, changes: list[int]
) -> None:
    anyio.run(live, callers, most, changes)


class Provider:
    """Answers after a while, or not; counts who is there at once."""

    id = "m"
    has_ledger = False

    def __init__(self, acts: list[str]) -> None:
        self.acts, self.asked = acts, 0
        self.at_once = self.most_at_once = 0

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - it keeps no record
        act = self.acts[self.asked % len(self.acts)]
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await anyio.sleep(0.001 * (self.asked % 3))
        finally:
            self.at_once -= 1
        if act == "429":
            raise RateLimited("429", retry_after_s=0.001)
        if act == "cut":
            raise ModelUnavailable("cut")
        usage = Usage(input=100, output=request.max_output_tokens // 2)
        return Reply(Message("assistant", (TextBlock("yes"),)), StopReason.END, usage, "m")

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - it keeps no record
        return None

    async def aclose(self) -> None:
        pass


async def all_end(
    acts: list[str], slots: int, usd: Decimal, shares: list[int], jobs: int, calls: int
) -> None:
    provider = Provider(acts)
    limiter = RateLimiter("m", maximum=slots, patience_s=0.05, step_s=0.002)
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
    assert provider.most_at_once <= slots


TIGHT = st.tuples(
    st.lists(st.sampled_from(["ok", "ok", "ok", "429", "cut"]), min_size=1, max_size=8),
    st.integers(1, 3),
    st.decimals("0.01", "0.15", places=3),
    st.lists(st.integers(10, 100), min_size=1, max_size=4),
    st.integers(1, 8),
    st.integers(1, 5),
)


@given(TIGHT)
@settings(max_examples=40)
def test_jobs_over_nested_budgets_and_few_permits_end(
    plan: tuple[list[str], int, Decimal, list[int], int, int],
) -> None:
    anyio.run(all_end, *plan)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@given(TIGHT)
@settings(max_examples=800)
def test_jobs_over_nested_budgets_and_few_permits_end_many_plans(
    plan: tuple[list[str], int, Decimal, list[int], int, int],
) -> None:
    anyio.run(all_end, *plan)
