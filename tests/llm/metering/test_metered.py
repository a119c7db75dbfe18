from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from codetaste.errors import (
    BudgetExceeded,
    Cause,
    MalformedReply,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    RateLimited,
)
from codetaste.llm.messages import Message, Reply, Request, StopReason, TextBlock, Usage
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.metering.prompt_bound import PromptBound
from codetaste.llm.price import Price
from codetaste.llm.providers.scripted import ScriptedModel, ScriptedReply
from codetaste.llm.ratelimit.adaptive import REFUSED_ROUNDS
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetSnapshot, Cost
from codetaste.orchestration.job import JobContext, Outcome, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.retry import RetryRule, mark_given_up
from codetaste.orchestration.session import open_session
from support.orchestration.closure_jobs import closure_job

PRICE = Price(input=Decimal(3), output=Decimal(15))
BUDGET = BudgetLimits(usd=Decimal(10))
QUICK = {
    Cause.RATE_LIMIT: RetryRule(tries=4, first_s=0.01, jitter=0),
    Cause.UNAVAILABLE: RetryRule(tries=3, first_s=0.01, jitter=0),
}
Body = Callable[[JobContext], Awaitable[Json]]


def request_of(words: str = "hello", cap: int = 8192, **options: Any) -> Request:
    return Request("system", (Message("user", (TextBlock(words),)),), max_output_tokens=cap, options=options)


class Provider:
    """A model whose calls have the listed outcomes, with their usages; it has no ledger."""

    id = "m"
    has_ledger = False

    def __init__(self, *outcomes: Any, price: Price | None = PRICE) -> None:
        self.outcomes = list(outcomes)
        self.seen: list[Request] = []
        self.calls: list[str] = []
        self.at_once = self.most_at_once = 0
        self.price = price

    async def complete(self, request: Request, *, call: str) -> Reply:
        self.seen.append(request)
        self.calls.append(call)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            result = self.outcomes.pop(0) if self.outcomes else "ok"
            if callable(result):
                result = await result()
            if isinstance(result, Exception):
                raise result
            if isinstance(result, Reply):
                return result
            return reply_of(str(result), Usage(input=100, output=10))
        finally:
            self.at_once -= 1

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - it has no record
        return None

    async def aclose(self) -> None:
        pass


def reply_of(words: str, usage: Usage | None) -> Reply:
    return Reply(Message("assistant", (TextBlock(words),)), StopReason.END, usage, "m")


def metered(
    model: Any, *, permits: int = 4, price: Price | None = PRICE, patience_s: float = 60.0, **settings: Any
) -> MeteredModel:
    limiter = RateLimiter("m", maximum=permits, patience_s=patience_s, step_s=0.02)
    return MeteredModel(model, price, limiter, **{"retries": QUICK, **settings})


async def run_job(
    folder: Path, body: Body, limits: BudgetLimits | None = None
) -> tuple[Outcome, BudgetSnapshot]:
    """Run one session with one job that is tried once."""
    async with open_session(folder, limits, retries={}, grace_s=2.0) as session:
        (outcome,) = (await session.run([closure_job(session, "job", body, session.budget, "f")])).values()
        return outcome, session.budget.snapshot()


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def notes(folder: Path) -> str:
    return "\n".join(line["text"] for line in journal(folder) if line["event"] == "note")


@pytest.mark.anyio
async def test_reply_is_paid_once_and_replayed_in_later_sessions(tmp_path: Path) -> None:
    provider = Provider("one", "two")
    model = metered(provider)
    replies: list[Reply] = []

    async def body(ctx: JobContext) -> Json:
        replies.append(await model.complete(request_of(), ctx=ctx, name="turn-1"))
        replies.append(await model.complete(request_of("more"), ctx=ctx, name="turn-2"))
        if len(replies) == 2:
            raise ModelRefused("the job fails after paying")
        return None

    outcome, spent = await run_job(tmp_path, body)
    assert outcome.status is Status.FAILED
    assert spent.settled == Cost(2 * PRICE.cost_usd(Usage(input=100, output=10)), 220)
    outcome, again = await run_job(tmp_path, body)
    assert outcome.status is Status.DONE
    assert again.settled == spent.settled
    assert replies[2:] == replies[:2]
    assert len(provider.calls) == 2
    assert len(set(provider.calls)) == 2


@pytest.mark.anyio
async def test_unknown_cost_stays_charged_and_reply_is_not_bought_again(tmp_path: Path) -> None:
    provider = Provider(reply_of("paid", None))
    model = metered(provider)

    async def body(ctx: JobContext) -> Json:
        reply = await model.complete(request_of(cap=2000), ctx=ctx, name="turn")
        assert reply.message.text == "paid"
        if ctx.attempt == 1:
            raise ModelRefused("again")
        return None

    _, spent = await run_job(tmp_path, body)
    assert spent.settled == Cost()
    assert spent.unknown.usd > PRICE.bound_usd(0, 2000)
    _, again = await run_job(tmp_path, body)
    assert (again.unknown, len(provider.calls)) == (spent.unknown, 1)
    assert "the provider" in notes(tmp_path)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "usage",
    [
        Usage(input=10, output=3000),
        Usage(input=10**6, output=1),
        Usage(input=10, output=10**12),
        Usage(input=-1, output=1),
        Usage(input=float("nan"), output=1),  # type: ignore[arg-type]
    ],
)
async def test_model_ends_for_the_run_after_a_usage_above_the_reservation(
    tmp_path: Path, usage: Usage
) -> None:
    provider = Provider(reply_of("expensive", usage))
    model = metered(provider)

    async def body(ctx: JobContext) -> Json:
        reply = await model.complete(request_of(cap=2000), ctx=ctx, name="turn")
        assert reply.message.text == "expensive"
        await model.complete(request_of(cap=2000), ctx=ctx, name="next turn")
        return None

    for _ in range(2):  # the second session of the run makes no call either
        outcome, spent = await run_job(tmp_path, body, BUDGET)
        assert (outcome.status, outcome.cause, len(provider.calls)) == (Status.FAILED, Cause.SETUP, 1)
        assert (
            "model m is not called again in this run: for job/turn#1 the provider reported" in outcome.error
        )
        assert "models[m].prompt_overhead_tokens" in outcome.error
        if isinstance(usage.input, int) and usage.input > 0 and usage.output < 10**9:
            assert (spent.settled.usd, spent.unknown) == (PRICE.cost_usd(usage), Cost())
        else:
            assert (spent.settled, spent.unknown.usd > PRICE.bound_usd(0, 2000)) == (Cost(), True)

    raised = MeteredModel(provider, PRICE, model.limiter, retries=QUICK, bound=PromptBound(2_000_000))

    async def other(ctx: JobContext) -> Json:
        return (await raised.complete(request_of(cap=2000), ctx=ctx, name="other")).message.text

    outcome, _ = await run_job(tmp_path, other, BUDGET)
    assert outcome.value == "ok"


@pytest.mark.anyio
@pytest.mark.parametrize(("output", "ended"), [(3000, True), (300, False)])
async def test_unusable_reply_that_reported_more_than_reserved_ends_the_model_too(
    tmp_path: Path, output: int, ended: bool
) -> None:
    error = ModelUnavailable("cut in the middle")
    error.usage = usage = Usage(input=10, output=output)
    provider = Provider(error)
    model = metered(provider)

    async def body(ctx: JobContext) -> Json:
        return (await model.complete(request_of(cap=2000), ctx=ctx, name="turn")).message.text

    outcome, spent = await run_job(tmp_path, body, BUDGET)
    if ended:
        assert (outcome.cause, len(provider.calls)) == (Cause.SETUP, 1)
        assert "model m is not called again in this run" in outcome.error
        assert (spent.settled.usd, spent.unknown) == (PRICE.cost_usd(usage), Cost())
    else:
        assert (outcome.value, len(provider.calls)) == ("ok", 2)
        assert spent.unknown.usd > PRICE.cost_usd(usage)  # more may have been billed than was reported


@pytest.mark.anyio
async def test_usage_above_the_reservation_is_only_noted_without_a_budget(tmp_path: Path) -> None:
    provider = Provider(reply_of("long", Usage(input=10, output=5000)))
    model = metered(provider)

    async def body(ctx: JobContext) -> Json:
        for turn in range(2):
            await model.complete(request_of(cap=2000), ctx=ctx, name=f"turn-{turn}")
        return "done"

    outcome, _ = await run_job(tmp_path, body)
    assert outcome.value == "done"


@pytest.mark.anyio
async def test_disputed_calls_are_at_most_those_in_flight(tmp_path: Path) -> None:
    """All jobs of a model end; a strict model has one call in flight."""
    for permits in (1, 4):
        provider, all_in_flight = Provider(), anyio.Event()

        async def expensive(
            provider: Provider = provider, permits: int = permits, event: anyio.Event = all_in_flight
        ) -> Reply:
            if provider.at_once == permits:
                event.set()
            await event.wait()
            return reply_of("expensive", Usage(input=10, output=9000))

        provider.outcomes = [expensive] * 40
        model = metered(provider, permits=permits)

        async def body(ctx: JobContext, model: MeteredModel = model) -> Json:
            for turn in range(5):
                await model.complete(request_of(cap=2000), ctx=ctx, name=f"turn-{turn}")
            return None

        async with open_session(tmp_path / str(permits), BUDGET, retries={}, grace_s=1.0) as session:
            jobs = [closure_job(session, f"job-{n}", body, session.budget, "f") for n in range(8)]
            outcomes = await session.run(jobs)
        assert {outcome.cause for outcome in outcomes.values()} == {Cause.SETUP}
        assert len(provider.calls) == permits


@pytest.mark.anyio
async def test_failures_are_retried_and_only_billable_ones_stay_charged(
    tmp_path: Path,
) -> None:
    provider = Provider(
        RateLimited("slow down", retry_after_s=0.02),
        ModelUnavailable("529", unbilled=True),
        ModelUnavailable("cut in the middle"),
        "at last",
    )
    model = metered(provider)

    async def body(ctx: JobContext) -> Json:
        return (await model.complete(request_of(cap=2000), ctx=ctx, name="turn")).message.text

    outcome, spent = await run_job(tmp_path, body)
    assert outcome.value == "at last"
    assert spent.settled.tokens == 110
    events = [line["event"] for line in journal(tmp_path)]
    assert [events.count(kind) for kind in ("reserved", "released", "unknown", "settled")] == [4, 2, 1, 1]
    one_call = PRICE.bound_usd(0, 2000)
    assert one_call < spent.unknown.usd < 2 * one_call
    assert len(set(provider.calls)) == 4
    waits = [line["reason"] for line in journal(tmp_path) if line["event"] == "wait_started"]
    assert waits == ["rate_limit", "call_retry", "call_retry"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "counts"),
    [(ModelUnavailable("down", unbilled=True), True), (RateLimited("busy", retry_after_s=3.0), False)],
)
async def test_outage_counts_as_working_time_and_rate_limit_does_not(
    tmp_path: Path, error: ModelError, counts: bool
) -> None:
    model = metered(Provider(error, "at last"), retries={error.cause: RetryRule(tries=2, first_s=3.0)})

    async def body(ctx: JobContext) -> Json:
        ctx.budget.set_limits(BudgetLimits(working_s=2.0))
        with ctx.budget.deadline() as scope:
            await model.complete(request_of(), ctx=ctx, name="turn")
        return scope.cancelled_caught

    outcome, _ = await run_job(tmp_path, body)
    assert outcome.value is counts


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "tries"),
    [(RateLimited("x"), None), (ModelUnavailable("x", unbilled=True), 3), (ModelRefused("no such model"), 1)],
)
async def test_permanent_failure_is_given_up_after_its_number_of_tries(
    tmp_path: Path, error: ModelError, tries: int | None
) -> None:
    provider = Provider(*[error] * 99)
    model = metered(provider, patience_s=0.5)

    async def body(ctx: JobContext) -> Json:
        await model.complete(request_of(), ctx=ctx, name="turn")
        return None

    outcome, spent = await run_job(tmp_path, body)
    assert (outcome.status, outcome.cause) == (Status.FAILED, error.cause)
    if tries is None:  # as often as the patience of the limiter allows
        assert len(provider.calls) >= REFUSED_ROUNDS
    else:
        assert len(provider.calls) == tries
    assert spent.spent == Cost()
    assert spent.reserved == Cost()


LOST, DOWN = ModelUnavailable("HTTP 502: an HTML page"), ModelUnavailable("HTTP 500: own", unbilled=True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("outcomes", "requests", "unknown"),
    [
        ([LOST] * 9, 3, 3),
        ([DOWN] * 9, 5, 0),
        ([DOWN, LOST, DOWN, LOST, LOST], 5, 3),
        ([LOST, "ok", LOST, LOST, "ok", DOWN, LOST, LOST, MalformedReply("no JSON")], 9, 6),
        ([RateLimited("slow down"), LOST, ModelUnavailable("cut"), LOST], 4, 3),
    ],
)
async def test_three_requests_in_a_row_that_may_be_billed_end_the_job(
    tmp_path: Path, outcomes: list[Any], requests: int, unknown: int
) -> None:
    """Whatever calls of the job they are of; a further call gets the same answer without a request."""
    provider = Provider(*[copy.copy(each) for each in outcomes])
    rules = {cause: RetryRule(tries=5, first_s=0.001, max_s=0.001) for cause in Cause}
    model = metered(provider, retries=rules)

    async def body(ctx: JobContext) -> Json:
        name, failures = 0, list[str]()
        while len(failures) < 3:
            name += 1
            try:
                await model.complete(request_of(), ctx=ctx, name=f"call-{name}")
            except ModelError as error:
                failures.append(str(error))
                if unknown == 0:
                    raise
        assert len(set(failures)) == 1
        assert "3 requests in a row may have been billed and got no reply" in failures[0]
        raise mark_given_up(ModelUnavailable(failures[0]))

    outcome, spent = await run_job(tmp_path, body, BUDGET)
    assert (outcome.status, outcome.cause) == (Status.FAILED, Cause.UNAVAILABLE)
    assert str(outcomes[requests - 1]) in outcome.error
    assert len(provider.calls) == requests
    states = [line["event"] for line in journal(tmp_path)]
    assert (states.count("unknown"), spent.reserved) == (unknown, Cost())


@pytest.mark.anyio
async def test_money_of_unknown_calls_ends_the_job_as_unavailable(tmp_path: Path) -> None:
    """Not as a budget that is used up; in the next session the refusal names what holds the money."""
    provider = Provider(*[LOST] * 9)

    async def body(ctx: JobContext) -> Json:
        model = metered(provider)  # each session has a limiter of its own
        await model.complete(request_of(cap=3000), ctx=ctx, name="turn")
        return None

    limits = BudgetLimits(usd=Decimal("0.06"))
    outcome, spent = await run_job(tmp_path, body, limits)
    assert (outcome.cause, len(provider.calls)) == (Cause.UNAVAILABLE, 1)
    assert "HTTP 502: an HTML page (no money for another try: budget of the run: at least" in outcome.error
    outcome, _ = await run_job(tmp_path, body, limits)
    assert outcome.status is Status.BUDGET_EXCEEDED
    assert f"with ${spent.unknown.usd} held by calls of unknown cost (see codetaste settle)" in outcome.error


@pytest.mark.anyio
@pytest.mark.parametrize("burst", [1, 8])
async def test_outage_costs_a_long_queue_of_jobs_few_requests(tmp_path: Path, burst: int) -> None:
    """Those in flight fail; then single ones probe, and the third round in a row fails all that wait."""
    together = anyio.Event()

    async def lost() -> str:
        if provider.at_once == burst:
            together.set()
        await together.wait()
        raise copy.copy(LOST)

    provider = Provider(*[lost] * 400)
    rule = RetryRule(tries=5, first_s=0.01, max_s=0.01, jitter=0)
    model = metered(provider, permits=burst, retries={Cause.UNAVAILABLE: rule})

    async def body(ctx: JobContext) -> Json:
        await model.complete(request_of(), ctx=ctx, name="turn")
        return None

    async with open_session(tmp_path, BUDGET, retries=QUICK, capacities={"jobs": 40}) as session:
        jobs = [closure_job(session, f"job-{n}", body, session.budget, "f") for n in range(120)]
        outcomes = await session.run(jobs)
        spent = session.budget.snapshot()
    ends = {(outcome.status, outcome.cause, outcome.attempts) for outcome in outcomes.values()}
    assert ends == {(Status.FAILED, Cause.UNAVAILABLE, 1)}
    # In each of three waves of jobs, some that were in flight before may try once more.
    assert burst + 2 <= len(provider.calls) <= 3 * burst + 8
    assert spent.unknown.usd < BUDGET.usd / 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("counted", "charged"), [(Usage(input=80, cache_write=60, output=3), 140), (Usage(input=1), None)]
)
async def test_cut_reply_is_charged_at_its_counted_prompt_and_whole_cap(
    tmp_path: Path, counted: Usage, charged: int | None
) -> None:
    """A count far below the bound may be one that the server has yet to make."""
    error = ModelUnavailable("cut in the middle")
    error.usage = counted
    model = metered(Provider(error))

    async def body(ctx: JobContext) -> Json:
        await model.complete(request_of(cap=2000), ctx=ctx, name="turn")
        (call,) = ctx.unsettled_calls("turn")
        return [str(call.granted.usd), call.granted.tokens]

    outcome, spent = await run_job(tmp_path, body, BUDGET)
    (reserved, _) = [line for line in journal(tmp_path) if line["event"] == "reserved"]
    tokens = reserved["tokens"] if charged is None else charged + 2000
    assert (spent.unknown.tokens, spent.reserved) == (tokens, Cost())
    assert charged is None or spent.unknown.usd == PRICE.bound_usd(charged, 2000) < Decimal(reserved["usd"])
    assert outcome.value == [str(spent.unknown.usd), tokens]
    _, again = await run_job(tmp_path, body, BUDGET)
    assert again.unknown == spent.unknown


@pytest.mark.anyio
async def test_cap_over_budget_is_lowered_and_recorded(
    tmp_path: Path,
) -> None:
    provider = Provider()
    model = metered(provider, options={"thinking": {"type": "enabled", "budget_tokens": 30_000}})

    async def body(ctx: JobContext) -> Json:
        await model.complete(request_of(cap=40_000), ctx=ctx, name="turn")
        return None

    outcome, spent = await run_job(tmp_path, body, BudgetLimits(usd=Decimal("0.05")))
    assert outcome.status is Status.DONE
    (seen,) = provider.seen
    assert 2000 < seen.max_output_tokens < 3334
    assert 1024 <= seen.options["thinking"]["budget_tokens"] < seen.max_output_tokens
    assert f"room for {seen.max_output_tokens} output tokens instead of 40000" in notes(tmp_path)
    (settled,) = [line for line in journal(tmp_path) if line["event"] == "settled"]
    assert settled["value"]["cap"] == seen.max_output_tokens
    assert settled["value"]["thinking"] == seen.options["thinking"]
    assert spent.settled.usd < Decimal("0.05")


@pytest.mark.anyio
@pytest.mark.parametrize("limits", [BudgetLimits(usd=Decimal("0.018")), BudgetLimits(tokens=2100)])
async def test_call_over_budget_at_lowest_useful_cap_is_not_made(
    tmp_path: Path, limits: BudgetLimits
) -> None:
    provider = Provider()
    model = metered(provider)

    async def body(ctx: JobContext) -> Json:
        await model.complete(request_of(), ctx=ctx, name="turn")
        return None

    outcome, spent = await run_job(tmp_path, body, limits)
    assert outcome.status is Status.BUDGET_EXCEEDED
    assert "at least" in outcome.error
    assert (provider.calls, spent.spent) == ([], Cost())


@pytest.mark.anyio
async def test_token_budget_lowers_cap_without_price(tmp_path: Path) -> None:
    provider = Provider()
    model = metered(provider, price=None, max_output_tokens=6000)

    async def body(ctx: JobContext) -> Json:
        await model.complete(request_of(cap=100_000), ctx=ctx, name="one")
        await model.complete(request_of("other", cap=100_000), ctx=ctx, name="two")
        return None

    outcome, _ = await run_job(tmp_path, body, BudgetLimits(tokens=7500))
    assert outcome.status is Status.DONE
    assert provider.seen[0].max_output_tokens == 6000
    await run_job(tmp_path / "small", body, BudgetLimits(tokens=4000))
    assert provider.seen[2].max_output_tokens < 3000


@pytest.mark.anyio
async def test_dollar_budget_refuses_model_without_price(tmp_path: Path) -> None:
    async def body(ctx: JobContext) -> Json:
        with pytest.raises(BudgetExceeded, match="no known price"):
            await metered(Provider(), price=None).complete(request_of(), ctx=ctx, name="a")
        return "refused"

    outcome, _ = await run_job(tmp_path, body, BudgetLimits(usd=Decimal(1)))
    assert outcome.value == "refused"


@pytest.mark.anyio
async def test_permit_covers_request_but_not_back_off(tmp_path: Path) -> None:
    async def pause() -> str:
        await anyio.sleep(0.02)
        return "ok"

    provider = Provider(ModelUnavailable("reset"), *[pause] * 11)
    model = metered(provider, permits=1, retries={Cause.UNAVAILABLE: RetryRule(tries=2, first_s=3, jitter=0)})

    async def call(ctx: JobContext, number: int) -> None:
        await model.complete(request_of(f"{number}"), ctx=ctx, name=f"{number}")

    async def body(ctx: JobContext) -> Json:
        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(call, ctx, number)
        return None

    outcome, _ = await run_job(tmp_path, body)
    assert outcome.status is Status.DONE, outcome.error
    assert provider.most_at_once == 1
    refused, *others = provider.seen
    assert others[-1] == refused  # all others are served while the first backs off
    assert any(line.get("reason") == "permit" for line in journal(tmp_path))


@pytest.mark.anyio
async def test_call_cancelled_while_waiting_for_permit_costs_nothing(tmp_path: Path) -> None:
    in_flight = anyio.Event()

    async def hang() -> str:
        in_flight.set()
        await anyio.sleep_forever()
        return "never"

    provider = Provider(hang)
    model = metered(provider, permits=1)

    async def body(ctx: JobContext) -> Json:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: model.complete(request_of("first"), ctx=ctx, name="first"))
            await in_flight.wait()
            with anyio.move_on_after(0.05):
                await model.complete(request_of("second"), ctx=ctx, name="second")
            group.cancel_scope.cancel()
        return None

    _, spent = await run_job(tmp_path, body)
    assert len(provider.calls) == 1
    events = [line["event"] for line in journal(tmp_path)]
    assert [events.count(kind) for kind in ("reserved", "released", "unknown")] == [1, 0, 1]
    assert 0 < spent.unknown.usd < 2 * PRICE.bound_usd(0, 8192)
    assert model.limiter.statistics().in_flight == model.limiter.statistics().waiting == 0


@pytest.mark.anyio
async def test_call_cancelled_in_flight_stays_charged_until_ledger_lookup(
    tmp_path: Path,
) -> None:
    prompts: list[str] = []
    in_flight = anyio.Event()

    def script(request: Request) -> ScriptedReply:
        prompts.append(request.messages[0].text)
        in_flight.set()
        return ScriptedReply("slow", latency_s=300.0 if len(prompts) == 1 else 0.0)

    model = metered(ScriptedModel("m", script, price=PRICE, ledger=tmp_path / "ledger.jsonl"))

    async def cancel(scope: anyio.CancelScope) -> None:
        await in_flight.wait()
        scope.cancel()

    async def body(ctx: JobContext) -> Json:
        async with anyio.create_task_group() as group:
            if ctx.attempt == 1:
                group.start_soon(cancel, group.cancel_scope)
            return (await model.complete(request_of(), ctx=ctx, name="turn")).message.text
        raise ModelRefused("cancelled")

    _, spent = await run_job(tmp_path / "run", body)
    assert (spent.settled, spent.unknown.usd > 0) == (Cost(), True)
    outcome, after = await run_job(tmp_path / "run", body)
    assert outcome.value == "slow"
    (line,) = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert (after.settled.usd, after.unknown) == (Decimal(line["cost_usd"]), Cost())
    assert len(prompts) == 1


@pytest.mark.anyio
async def test_reply_arriving_at_deadline_is_recorded(tmp_path: Path) -> None:
    scope = anyio.CancelScope()

    async def just_in_time() -> Reply:
        scope.cancel()
        return reply_of("in time " * 2000, Usage(input=100, output=10))

    provider = Provider(just_in_time, "bought again")
    model = metered(provider)

    async def body(ctx: JobContext) -> Json:
        if ctx.attempt == 1:
            with scope:
                await model.complete(request_of(cap=50_000), ctx=ctx, name="turn")
                await anyio.lowlevel.checkpoint()
            raise ModelRefused("the deadline")
        return (await model.complete(request_of(cap=50_000), ctx=ctx, name="turn")).message.text[:7]

    _, spent = await run_job(tmp_path, body)
    assert (spent.settled.tokens, spent.unknown) == (110, Cost())
    outcome, _ = await run_job(tmp_path, body)
    assert (outcome.value, len(provider.calls)) == ("in time", 1)


@pytest.mark.anyio
async def test_undelivered_reply_is_looked_up_and_not_bought_again(tmp_path: Path) -> None:
    script = [
        ScriptedReply("found in the ledger", fault=ModelUnavailable("cut")),
        ScriptedReply("bought again"),
    ]
    ledger = tmp_path / "ledger.jsonl"
    model = metered(ScriptedModel("m", lambda _: script.pop(0), price=PRICE, ledger=ledger))

    async def body(ctx: JobContext) -> Json:
        return (await model.complete(request_of(), ctx=ctx, name="turn")).message.text

    outcome, spent = await run_job(tmp_path / "run", body)
    assert outcome.value == "found in the ledger"
    assert len(ledger.read_text().splitlines()) == 1
    assert spent.unknown == Cost()


@pytest.mark.anyio
async def test_long_reply_with_unusual_characters_is_stored_outside_journal(tmp_path: Path) -> None:
    words = "\ud800\x00é" * 5000
    provider = Provider(reply_of(words, Usage(input=1, output=1)))
    model = metered(provider)

    async def body(ctx: JobContext) -> Json:
        reply = await model.complete(request_of(cap=100_000), ctx=ctx, name="turn")
        assert reply.message.text == words
        if ctx.attempt == 1:
            raise ModelRefused("again")
        return "same"

    await run_job(tmp_path, body)
    outcome, _ = await run_job(tmp_path, body)
    assert outcome.value == "same"
    assert len(provider.calls) == 1
    assert max(map(len, (tmp_path / "journal.jsonl").read_text().splitlines())) < 2000


@pytest.mark.anyio
async def test_second_turn_is_bounded_by_first_reported_count(tmp_path: Path) -> None:
    provider = Provider()
    model = metered(provider)

    async def body(ctx: JobContext) -> Json:
        first = request_of("x" * 50_000)
        reply = await model.complete(first, ctx=ctx, name="1")
        following = Message("user", (TextBlock("go on"),))
        second = Request("system", (*first.messages, reply.message, following))
        await model.complete(second, ctx=ctx, name="2")
        return None

    await run_job(tmp_path, body)
    prompts = [line["note"]["prompt_tokens"] for line in journal(tmp_path) if line["event"] == "reserved"]
    assert prompts[0] > 50_000
    assert prompts[1] < 400


@pytest.mark.anyio
async def test_paid_reply_is_replayed_without_remaining_time(tmp_path: Path) -> None:
    model = metered(Provider("x" * 20_000))

    async def pay(ctx: JobContext) -> Json:
        await model.complete(request_of(), ctx=ctx, name="turn-1")
        raise ModelRefused("the process is stopped after paying")

    await run_job(tmp_path, pay)
    seen: list[int] = []

    async def replay(ctx: JobContext) -> Json:
        with anyio.CancelScope() as scope:
            scope.cancel()
            reply = await model.complete(request_of(), ctx=ctx, name="turn-1")
            seen.append(len(reply.message.text))
        return None

    await run_job(tmp_path, replay)
    assert seen == [20_000]


@pytest.mark.anyio
async def test_reply_of_model_with_other_price_is_noted(tmp_path: Path) -> None:
    model = metered(Provider(), price_mismatch=lambda name: f"it is {name}, which is more expensive")

    async def body(ctx: JobContext) -> Json:
        await model.complete(request_of(), ctx=ctx, name="turn-1")
        return None

    outcome, _ = await run_job(tmp_path, body)
    assert outcome.status is Status.DONE
    assert "m: it is m, which is more expensive" in notes(tmp_path)
