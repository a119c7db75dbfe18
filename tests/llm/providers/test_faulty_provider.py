"""Two models, one with a faulty provider: its failures are limited, named and charged, the other works."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from codetaste.errors import Cause
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext, Outcome, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.retry import RetryRule
from codetaste.orchestration.session import open_session
from support.llm import bill_run
from support.llm.bill_audit import Audit, audit_run, read_journal
from support.llm.provider import faults
from support.llm.provider import server as provider
from support.llm.provider.server import PROTOCOLS_OTHERS_HEAVY, Exchange, Handler
from support.orchestration.closure_jobs import closure_job

JOBS, TURNS = 3, 4
BUDGET = Decimal(20)
RETRIES = {
    Cause.RATE_LIMIT: RetryRule(tries=8, first_s=0.005, max_s=0.05),
    Cause.UNAVAILABLE: RetryRule(tries=5, first_s=0.005, max_s=0.02),
    Cause.MALFORMED: RetryRule(tries=3, first_s=0.005, max_s=0.02),
}
TWO_TRIES = {Cause.UNAVAILABLE: RetryRule(tries=2, first_s=0.005)}


@dataclass
class SideBySide:
    """The results of the jobs of both models; ``notes`` are the messages to the user."""

    outcomes: dict[str, Outcome]
    audit: Audit
    notes: list[str]
    server: provider.Server
    of_good: int = 0
    requests: int = field(default=0)

    def of(self, model: str) -> list[Outcome]:
        return [outcome for key, outcome in self.outcomes.items() if key.startswith(f"{model}-")]

    def states(self, model: str, run: Path) -> dict[str, int]:
        states: dict[str, str] = {}
        for line in read_journal(run):
            if line.get("call", "").startswith(f"{model}-"):
                states[line["call"]] = line["event"]
        return {state: list(states.values()).count(state) for state in set(states.values())}


@pytest.fixture
def servers() -> Iterator[tuple[provider.Server, provider.Server]]:
    with provider.serving() as bad, provider.serving() as good:
        bad.name, good.name = "bad_", "good_"
        bad.strict = good.strict = True
        good.default = seeded(faults.good)
        yield bad, good


def seeded(fault: faults.Fault) -> Handler:
    rng = Random(1)

    async def handle(exchange: Exchange) -> None:
        await fault(exchange, rng)

    return handle


Run = Callable[..., Any]


@pytest.fixture
def side_by_side(servers: tuple[provider.Server, provider.Server], tmp_path: Path) -> Run:
    """Run conversations at once with a model whose provider answers with ``handler``, and with a good one."""
    bad, good = servers

    async def run(
        protocol: str,
        handler: Handler,
        *,
        pause_s: float = 0.0,
        turns: int = TURNS,
        retries: Any = RETRIES,
        **more: Any,
    ) -> SideBySide:
        bad.default = handler
        models = {
            "bad": bill_run.make_model("bad", protocol, bad.url, tmp_path, retries=retries, **more),
            "good": bill_run.make_model("good", protocol, good.url, tmp_path, retries=RETRIES),
        }

        def body(name: str) -> Callable[[JobContext], Any]:
            async def work(ctx: JobContext) -> Json:
                return await bill_run.run_conversation(models[name], ctx, turns, pause_s=pause_s)

            return work

        async with open_session(tmp_path / "run", BudgetLimits(usd=BUDGET), retries={}) as session:
            with anyio.fail_after(250):
                outcomes = await session.run(
                    closure_job(session, f"{name}-{number}", body(name), session.budget, "f")
                    for name in models
                    for number in range(JOBS)
                )
        for model in models.values():
            await model.aclose()
        audit = audit_run(tmp_path / "run", [*bad.bill, *good.bill], {(): BUDGET})
        notes = [line["text"] for line in read_journal(tmp_path / "run") if line["event"] == "note"]
        done = SideBySide(outcomes, audit, notes, bad, requests=len(bad.bodies))
        assert not [outcome.traceback for outcome in outcomes.values() if outcome.traceback]
        assert [outcome.value for outcome in done.of("good")] == ["done"] * JOBS
        assert done.states("good", tmp_path / "run") == {"settled": JOBS * turns}
        assert not bad.complaints
        assert not good.complaints
        return done

    return run


def assert_failed(done: SideBySide, cause: Cause, message: str) -> None:
    """Assert that all jobs of the bad model failed, with a reason in one short line."""
    print(done.of("bad")[0].error)  # noqa: T201
    for outcome in done.of("bad"):
        assert (outcome.status, outcome.cause, outcome.attempts) == (Status.FAILED, cause, 1)
        assert message in outcome.error
        assert "\n" not in outcome.error
        assert len(outcome.error) < 700
        assert bill_run.KEY not in outcome.error


everywhere = pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)


@pytest.mark.anyio
@everywhere
@pytest.mark.parametrize("headers", [{}, {"retry_after": "0.02"}, {"retry_after": "86400"}])
async def test_endless_429_is_given_up_in_time_and_costs_nothing(
    side_by_side: Run, tmp_path: Path, protocol: str, headers: dict[str, str]
) -> None:
    done = await side_by_side(protocol, provider.status(429, **headers), patience_s=0.3)
    assert_failed(done, Cause.RATE_LIMIT, "429")
    # The first requests are sent at once, later ones singly as probes.
    assert done.requests <= JOBS + 40
    assert done.audit.unknown == 0
    assert done.states("bad", tmp_path / "run").keys() == {"released"}
    assert sum(outcome.cost.settled.usd + outcome.cost.unknown.usd for outcome in done.of("bad")) == 0


@pytest.mark.anyio
@everywhere
@pytest.mark.parametrize(("status", "cause"), [(200, Cause.MALFORMED), (502, Cause.UNAVAILABLE)])
async def test_html_replies_may_be_billed_and_soon_end_all_jobs(
    side_by_side: Run, tmp_path: Path, protocol: str, status: int, cause: Cause
) -> None:
    """The requests of all jobs at once fail; then single ones are sent, until three in a row have failed."""
    done = await side_by_side(protocol, seeded(faults.html(status)))
    assert_failed(done, cause, "an HTML page")
    assert JOBS + 2 <= done.requests <= 2 * JOBS + 2
    assert done.states("bad", tmp_path / "run")["unknown"] == done.requests


@pytest.mark.anyio
@everywhere
@pytest.mark.parametrize("status", [408, 409, 500])
async def test_errors_with_the_providers_own_body_cost_nothing(
    side_by_side: Run, tmp_path: Path, protocol: str, status: int
) -> None:
    done = await side_by_side(protocol, seeded(faults.refusing(status, "api_error")))
    assert_failed(done, Cause.UNAVAILABLE, f"HTTP {status}: ")
    assert done.requests == JOBS * 5
    assert done.states("bad", tmp_path / "run") == {"released": JOBS * 5}


@pytest.mark.anyio
@everywhere
async def test_cut_streams_are_retried_and_stay_charged(
    side_by_side: Run, tmp_path: Path, protocol: str
) -> None:
    """Every third request of a conversation is cut, so that each pair of turns costs one call more."""
    requests, good = Counter[str](), seeded(faults.good)
    cut = provider.cut(provider.text("a long reply " * 9), after=4, chunked=True)

    async def every_third(exchange: Exchange) -> None:
        job = exchange.question.partition("/")[0]
        requests[job] += 1
        await (good if requests[job] % 3 else cut)(exchange)

    done = await side_by_side(protocol, every_third, turns=7)
    assert [outcome.value for outcome in done.of("bad")] == ["done"] * JOBS
    states = done.states("bad", tmp_path / "run")
    assert (states["settled"], states["unknown"], done.requests) == (JOBS * 7, JOBS * 3, JOBS * 10)
    assert done.audit.bill > done.audit.settled


@pytest.mark.anyio
@everywhere
async def test_stalled_stream_is_ended_at_call_time_limit(
    side_by_side: Run, tmp_path: Path, protocol: str
) -> None:
    blocks = [provider.text("a long reply " * 9)]
    done = await side_by_side(protocol, provider.stall(*blocks, after=1), timeout=1.0, retries=TWO_TRIES)
    assert_failed(done, Cause.UNAVAILABLE, "within 1 s")
    assert done.requests <= JOBS * 2
    assert JOBS + 2 <= done.states("bad", tmp_path / "run")["unknown"] <= JOBS * 2


async def _drip(exchange: Exchange) -> None:
    """Begin a reply and send pings for half an hour."""
    exchange.charge(provider.count_usage(exchange.body, [], exchange.cap))
    events = provider.events_of(
        exchange.body, [provider.text("x")], "end_turn", None, protocol=exchange.protocol
    )
    await exchange.stream(events[:1], chunked=True, end=False)
    for _ in range(90_000):
        await exchange.call.send(b": still here\n\n")
        await anyio.sleep(0.02)


@pytest.mark.anyio
@everywhere
@pytest.mark.parametrize("handler", [_drip, seeded(faults.silent)])
async def test_half_hour_reply_is_ended_at_time_limit_despite_pings(
    side_by_side: Run, tmp_path: Path, protocol: str, handler: Handler
) -> None:
    done = await side_by_side(protocol, handler, timeout=1.0, turns=2, retries=TWO_TRIES)
    assert_failed(done, Cause.UNAVAILABLE, "within 1 s")
    assert JOBS + 2 <= done.states("bad", tmp_path / "run")["unknown"] <= JOBS * 2


@pytest.mark.anyio
@everywhere
async def test_slow_reply_within_time_limit_is_awaited(
    side_by_side: Run, tmp_path: Path, protocol: str
) -> None:
    done = await side_by_side(protocol, provider.delayed(seeded(faults.good), 0.3), timeout=30.0)
    assert [outcome.value for outcome in done.of("bad")] == ["done"] * JOBS
    assert done.requests == JOBS * TURNS


async def _endless(exchange: Exchange) -> None:
    """Send text for ever, as fast as it is read."""
    exchange.charge(provider.count_usage(exchange.body, [], exchange.cap))
    words = [provider.text("word " * 9)]
    events = provider.events_of(exchange.body, words, "end_turn", None, protocol=exchange.protocol)
    first = next(place for place, event in enumerate(events) if "word" in str(event))
    await exchange.stream(itertools.chain(events[:first], itertools.repeat(events[first])), chunked=True)


@pytest.mark.anyio
@everywhere
async def test_endless_reply_is_ended_at_time_limit(side_by_side: Run, tmp_path: Path, protocol: str) -> None:
    done = await side_by_side(protocol, _endless, timeout=1.0, turns=1, retries=TWO_TRIES)
    assert_failed(done, Cause.UNAVAILABLE, "within 1 s")
    assert JOBS + 2 <= done.states("bad", tmp_path / "run")["unknown"] <= JOBS * 2


@pytest.mark.anyio
@everywhere
async def test_missing_usage_charges_the_maximum_and_run_continues(
    side_by_side: Run, tmp_path: Path, protocol: str
) -> None:
    done = await side_by_side(protocol, seeded(faults.no_usage))
    assert [outcome.value for outcome in done.of("bad")] == ["done"] * JOBS
    assert done.states("bad", tmp_path / "run").get("settled", 0) == 0
    assert sum("the provider reported no usage" in note for note in done.notes) == JOBS * TURNS
    assert done.audit.unknown >= sum(each.usd for each in done.server.bill)


@pytest.mark.anyio
@everywhere
@pytest.mark.parametrize("value", faults.ABSURD, ids=lambda value: str(value)[:12])
async def test_absurd_usage_is_rejected_and_budget_survives(
    side_by_side: Run, tmp_path: Path, protocol: str, value: object
) -> None:
    def absurd(usage: dict[str, Any]) -> dict[str, Any]:
        return {name: value if isinstance(count, int) else count for name, count in usage.items()}

    async def handle(exchange: Exchange) -> None:
        await faults.good(exchange, Random(1), report_usage=absurd)

    done = await side_by_side(protocol, handle)
    # NaN is no JSON; in Chat Completions the usage follows a whole reply.
    failed = isinstance(value, float) and value != value and protocol != "openai-chat"  # noqa: PLR0124
    if failed:
        assert_failed(done, Cause.MALFORMED, "NaN")
    else:
        assert [outcome.value for outcome in done.of("bad")] == ["done"] * JOBS
        assert sum(" for bad-" in note and "charged $" in note for note in done.notes) == JOBS * TURNS
    assert done.states("bad", tmp_path / "run").get("settled", 0) == 0
    assert done.audit.settled < done.audit.bill < done.audit.settled + done.audit.unknown < BUDGET / 4


@pytest.mark.anyio
@everywhere
@pytest.mark.parametrize("fault", [faults.repeated_ids, faults.bad_arguments])
async def test_duplicate_or_garbled_tool_calls_are_repaired(
    side_by_side: Run, tmp_path: Path, protocol: str, fault: faults.Fault
) -> None:
    """The strict server refuses what a real one would; ``side_by_side`` asserts that it refuses nothing."""
    done = await side_by_side(protocol, seeded(fault), turns=6)
    assert [outcome.value for outcome in done.of("bad")] == ["done"] * JOBS
    assert done.requests == JOBS * 6
    assert done.audit.settled == done.audit.bill


@pytest.mark.anyio
@everywhere
async def test_closed_idle_connections_cost_at_most_retries(
    side_by_side: Run, servers: tuple[provider.Server, provider.Server], tmp_path: Path, protocol: str
) -> None:
    """The pause equals the server's idle limit, so that a request and the closing may cross."""
    servers[0].idle_s = 0.1
    done = await side_by_side(protocol, seeded(faults.good), pause_s=0.1, turns=12)
    assert [outcome.value for outcome in done.of("bad")] == ["done"] * JOBS
    assert done.audit.settled == done.audit.bill
    states = done.states("bad", tmp_path / "run")
    assert states["settled"] == done.requests == JOBS * 12
    # A request on a closed connection is not served, but repeated; its cost is unknown.
    assert states.get("unknown", 0) <= JOBS * 12
