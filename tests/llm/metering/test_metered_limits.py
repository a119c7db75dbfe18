"""Calls of many jobs share a provider's limits, its permits and a budget."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import Cause, ModelUnavailable, RateLimited
from codetaste.llm.build import build_metered_model
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Message, Reply, Request, StopReason, TextBlock, Usage
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.llm.ratelimit.registry import LimiterRegistry
from codetaste.orchestration.budget.cost import BudgetLimits, Cost
from codetaste.orchestration.job import Job, JobContext, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.retry import RetryRule
from codetaste.orchestration.session import Session, open_session
from support.orchestration.closure_jobs import closure_job

PRICE = Price(input=Decimal(3), output=Decimal(15))
QUICK = {
    Cause.RATE_LIMIT: RetryRule(tries=4, first_s=0.01, max_s=0.03, jitter=0),
    Cause.UNAVAILABLE: RetryRule(tries=3, first_s=0.01, jitter=0),
}


def request_of(words: str = "hello", cap: int = 2000) -> Request:
    return Request("system", (Message("user", (TextBlock(words),)),), max_output_tokens=cap)


def reply_of(words: str = "ok", output: int = 10) -> Reply:
    return Reply(
        Message("assistant", (TextBlock(words),)), StopReason.END, Usage(input=100, output=output), "m"
    )


class Provider:
    """Answers each request with ``respond``; records the time and the text of each request."""

    has_ledger = False

    def __init__(self, respond: Callable[[str], Awaitable[Reply]], model_id: str = "m") -> None:
        self.id, self.respond = model_id, respond
        self.requests: list[tuple[float, str]] = []
        self.at_once = self.most_at_once = 0

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - it keeps no record
        words = request.messages[0].text
        self.requests.append((anyio.current_time(), words))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self.respond(words)
        finally:
            self.at_once -= 1

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - it keeps no record
        return None

    async def aclose(self) -> None:
        pass


def model_of(
    provider: Provider, permits: int = 4, patience_s: float = 60.0, step_s: float = 0.01
) -> MeteredModel:
    limiter = RateLimiter(provider.id, maximum=permits, patience_s=patience_s, step_s=step_s)
    return MeteredModel(provider, PRICE, limiter, retries=QUICK)


def calling(model: MeteredModel, words: str, calls: int = 1, cap: int = 2000) -> Any:
    async def body(ctx: JobContext) -> Json:
        text = ""
        for number in range(calls):
            text = (await model.complete(request_of(words, cap), ctx=ctx, name=f"turn-{number}")).message.text
        return text

    return body


def jobs_of(session: Session, model: MeteredModel, words: list[str], **settings: Any) -> list[Job]:
    return [
        closure_job(session, f"{model.id}-{number}", calling(model, each, **settings), session.budget, "f")
        for number, each in enumerate(words)
    ]


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


@pytest.mark.anyio
async def test_retry_after_pauses_all_calls_of_one_model_only(
    tmp_path: Path,
) -> None:
    refused_at: list[float] = []

    async def refuses_once(_: str) -> Reply:
        await anyio.sleep(0.01)
        if not refused_at:
            refused_at.append(anyio.current_time())
            raise RateLimited("HTTP 429", retry_after_s=1.0)
        return reply_of()

    async def serves(_: str) -> Reply:
        return reply_of()

    limited, free = Provider(refuses_once, "limited"), Provider(serves, "free")
    first, second = model_of(limited), model_of(free)
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(5)), retries={}) as session:
        session.add(*jobs_of(session, first, [f"{n}" for n in range(20)]))
        session.add(*jobs_of(session, second, [f"{n}" for n in range(20)], calls=3))
        outcomes = await session.run()
        waited_s = session.budget.child("limited-19").snapshot().waited_s
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    in_pause = [at for at, _ in limited.requests if refused_at[0] < at < refused_at[0] + 1.0]
    assert (len(in_pause), len(limited.requests)) == (0, 21)
    assert max(at for at, _ in free.requests) < min(at for at, _ in limited.requests if at > refused_at[0])
    lines = journal(tmp_path)
    assert {line["reason"] for line in lines if line["event"] == "wait_started"} >= {
        "permit",
    }
    assert any(line.get("reason") == "rate_limit" and line["delay_s"] for line in lines if "delay_s" in line)
    assert any("limited: rate limit (429); all calls wait" in line.get("text", "") for line in lines)
    assert [line["cause"] for line in lines if line["event"] == "call_retry"] == ["rate_limit"]
    assert waited_s > 0.9
    most = first.limiter.maximum
    capacities = [line["capacity"] for line in lines if line["event"] == "capacity"]
    assert (capacities[0], capacities[-1] <= most) == (max(1, int(most * 0.7)), True)
    assert {line["resource"] for line in lines if line["event"] == "capacity"} == {"model limited"}


@pytest.mark.anyio
async def test_no_budget_is_reserved_in_pause_queue_or_back_off(tmp_path: Path) -> None:
    errors: list[Exception] = [
        RateLimited("HTTP 429", retry_after_s=0.2),
        ModelUnavailable("reset", unbilled=True),
    ]

    async def respond(_: str) -> Reply:
        if errors:
            raise errors.pop(0)
        await anyio.sleep(0.05)
        return reply_of()

    model = model_of(Provider(respond), permits=1)
    samples: list[tuple[int, Decimal]] = []
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(1)), retries={}) as session:
        session.add(*jobs_of(session, model, [f"{n}" for n in range(8)]))

        async def watch() -> None:
            while True:
                await anyio.sleep(0.005)
                samples.append((model.limiter.statistics().in_flight, session.budget.snapshot().reserved.usd))

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            outcomes = await session.run()
            group.cancel_scope.cancel()
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    one_call = PRICE.bound_usd(1200, 2000)
    assert all(usd <= one_call * in_flight for in_flight, usd in samples)
    assert any(in_flight == 0 for in_flight, _ in samples)


@pytest.mark.anyio
async def test_model_limited_forever_is_given_up_by_its_jobs_only(
    tmp_path: Path,
) -> None:
    async def refuses(_: str) -> Reply:
        raise RateLimited("HTTP 429: come again")

    async def serves(_: str) -> Reply:
        await anyio.sleep(0.01)
        return reply_of()

    limited, free = Provider(refuses, "limited"), Provider(serves, "free")
    first, second = model_of(limited, patience_s=0.2), model_of(free)
    # A rate limit is retried for a job, but not once the limiter has given up.
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(50)), retries=QUICK) as session:
        session.add(*jobs_of(session, first, [f"{n}" for n in range(100)]))
        session.add(*jobs_of(session, second, [f"{n}" for n in range(10)], calls=5))
        outcomes = await session.run()
        spent = session.budget.snapshot()
    failed = [outcome for key, outcome in outcomes.items() if key.startswith("limited")]
    assert {(outcome.status, outcome.cause, outcome.attempts) for outcome in failed} == {
        (Status.FAILED, Cause.RATE_LIMIT, 1)
    }
    assert all("limited is given up" in outcome.error for outcome in failed)
    assert all("HTTP 429: come again" in outcome.error for outcome in failed)
    assert {outcome.status for key, outcome in outcomes.items() if key.startswith("free")} == {Status.DONE}
    assert len(limited.requests) < 50
    assert spent.reserved == spent.unknown == Cost()
    now = first.limiter.statistics()
    assert (now.refused, now.gave_up, now.waiting, now.in_flight) == (len(limited.requests), 1, 0, 0)


@pytest.mark.anyio
async def test_only_call_that_is_always_refused_is_given_up(tmp_path: Path) -> None:
    async def respond(words: str) -> Reply:
        await anyio.sleep(0.001)
        if words == "too large":
            raise RateLimited("HTTP 429: request too large for your tokens per minute")
        return reply_of()

    provider = Provider(respond)
    model = model_of(provider, permits=2)
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(50)), retries=QUICK) as session:
        words = ["too large", *[f"{n}" for n in range(8)]]
        session.add(*jobs_of(session, model, words, calls=30))
        outcomes = await session.run()
    assert outcomes["m-0"].cause is Cause.RATE_LIMIT
    assert "too large" in outcomes["m-0"].error
    assert sum(text == "too large" for _, text in provider.requests) == 4
    assert [outcome.status for outcome in outcomes.values()].count(Status.DONE) == 8


@pytest.mark.anyio
async def test_billable_overload_is_retried_only_by_table(
    tmp_path: Path,
) -> None:
    async def respond(_: str) -> Reply:
        raise ModelUnavailable("HTTP 503: overloaded", overloaded=True)

    provider = Provider(respond)
    model = model_of(provider)
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(5)), retries={}) as session:
        session.add(*jobs_of(session, model, ["a"]))
        outcomes = await session.run()
        spent = session.budget.snapshot()
    assert (outcomes["m-0"].cause, len(provider.requests)) == (Cause.UNAVAILABLE, 3)
    assert 3 * PRICE.bound_usd(0, 2000) < spent.unknown.usd < 4 * PRICE.bound_usd(0, 2000)
    assert model.limiter.statistics().limit < 4


@pytest.mark.anyio
async def test_jobs_waiting_for_budget_hold_no_permits(tmp_path: Path) -> None:
    async def respond(_: str) -> Reply:
        await anyio.sleep(0.02)
        return reply_of()

    provider = Provider(respond)
    model = model_of(provider, permits=4)
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(50)), retries={}) as session:
        small = session.budget.child("small", BudgetLimits(usd=Decimal("0.05")))
        poor = [closure_job(session, f"poor-{n}", calling(model, "poor"), small, "f") for n in range(30)]
        rich = [
            closure_job(session, f"rich-{n}", calling(model, "rich", calls=8), session.budget, "f")
            for n in range(3)
        ]
        outcomes = await session.run([*poor, *rich])
    assert all(outcome.usable for outcome in outcomes.values()), [
        o.error for o in outcomes.values() if o.error
    ]
    order = [words for _, words in provider.requests]
    # The budget suffices for one poor call at a time, so that three permits are left to the rich ones.
    until_rich_end = order[: len(order) - order[::-1].index("rich")]
    assert until_rich_end.count("poor") <= 16
    assert provider.most_at_once == 4


@pytest.mark.anyio
async def test_recorded_reply_has_usage_and_old_journals_replay(
    tmp_path: Path,
) -> None:
    async def respond(words: str) -> Reply:
        return reply_of("long " * 4000 if words == "long" else words)

    provider = Provider(respond)
    model = model_of(provider)
    limits = BudgetLimits(usd=Decimal(5))

    async def body(ctx: JobContext) -> Json:
        for words in ("short", "long"):
            await model.complete(request_of(words), ctx=ctx, name=words)
        if ctx.attempt == 1:
            raise RateLimited("the job fails after paying")
        return "replayed"

    async with open_session(tmp_path, limits, retries={}) as session:
        await session.run([closure_job(session, "job", body, session.budget, "f")])
    lines = journal(tmp_path)
    values = [line["value"] for line in lines if line["event"] == "settled"]
    usage = {"input": 100, "cache_read": 0, "cache_write": 0, "output": 10, "reasoning": 0}
    assert [("stored" in value, value["usage"]) for value in values] == [(False, usage), (True, usage)]
    for value in values:
        del value["usage"]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with open_session(tmp_path, limits, retries={}) as session:
        outcomes = await session.run([closure_job(session, "job", body, session.budget, "f")])
    assert (outcomes["job"].value, len(provider.requests)) == ("replayed", 2)


@pytest.mark.anyio
async def test_models_are_built_with_limiters_of_the_run(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text("def f(request):\n    return 'yes'\n")
    limiters = LimiterRegistry()

    def build(name: str, most: int) -> MeteredModel:
        config = ModelConfig(id=name, provider="scripted", model="s.py:f", max_concurrency=most)
        return build_metered_model(config, base_dir=tmp_path, record_dir=tmp_path, limiters=limiters)

    one, two = build("one", 3), build("two", 5)
    assert (one.limiter.maximum, two.limiter.maximum) == (3, 5)
    assert build("one", 2).limiter is one.limiter
    one.limiter.maximum = 7
    assert one.limiter.statistics().limit == 2 + 5
