"""The scheduler: order, failures, retries, deadlines, limits and stopping."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.errors import Cause, ConfigError, DeadlineExceeded, EngineError, ModelUnavailable, RateLimited
from codetaste.orchestration.budget.cost import BudgetLimits, Cost
from codetaste.orchestration.events import Event, JobFinished, JobRetrying, WaitEnded, WaitStarted
from codetaste.orchestration.job import Job, JobContext, Outcome, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.retry import RetryRule, mark_given_up
from codetaste.orchestration.session import Session, open_session
from codetaste.orchestration.wait import Wait, WaitReason
from support.orchestration.closure_jobs import closure_job
from support.orchestration.journal_lines import read_journal

pytestmark = pytest.mark.anyio
Run = Callable[[JobContext], Awaitable[Json]]
QUICK = dict.fromkeys(Cause, RetryRule(tries=3, first_s=0.01))


async def nothing(_: JobContext) -> Json:
    return None


def job(session: Session, key: str, run: Run = nothing, **more: Any) -> Job:
    return closure_job(
        session,
        key,
        run,
        more.pop("budget", session.budget.child("flow")),
        more.pop("fingerprint", "1"),
        **more,
    )


async def fail(error: BaseException) -> None:
    raise error


def raising(error: BaseException) -> Run:
    async def run(_: JobContext) -> Json:
        raise error

    return run


async def test_job_gets_the_results_of_its_needs(tmp_path: Path) -> None:
    async def double(context: JobContext) -> Json:
        value = context.needs["one"]
        assert isinstance(value, int)
        return value * 2

    async def one(_: JobContext) -> Json:
        return 1

    async with open_session(tmp_path) as session:
        outcomes = await session.run(
            [job(session, "two", double, needs=("one",)), job(session, "one", one)],
        )
    assert (outcomes["two"].status, outcomes["two"].value) == (Status.DONE, 2)


async def test_invalid_graph_reports_all_errors_before_start(tmp_path: Path) -> None:
    started: list[str] = []

    async def start(context: JobContext) -> Json:
        started.append(context.key)
        return None

    async with open_session(tmp_path, capacities={"cpu": 2}) as session:
        session.add(job(session, "fine", start), job(session, "twice"), job(session, "twice"))
        session.add(job(session, "lonely", needs=("fien",)), job(session, "big", resources={"cpu": 3}))
        session.add(job(session, "odd", resources={"gpu": 1}))
        with pytest.raises(ConfigError) as caught:
            await session.run()
    assert started == []
    assert set(caught.value.problems) == {
        "job twice: added twice; keys must be unique in a run",
        "job lonely: needs fien, which is not a job of this run; did you mean fine?",
        "job big: needs 3 cpu, but the capacity is 2",
        "job odd: unknown resource 'gpu'; available: cpu",
    }


async def test_circular_needs_are_named(tmp_path: Path) -> None:
    async with open_session(tmp_path) as session:
        session.add(job(session, "a", needs=("c",)), job(session, "b", needs=("a",)))
        session.add(job(session, "c", needs=("b",)), job(session, "d", needs=("c",)))
        with pytest.raises(ConfigError, match="a → c → b → a"):
            await session.run()


async def test_failure_skips_only_dependent_jobs(tmp_path: Path) -> None:
    async with open_session(tmp_path) as session:
        outcomes = await session.run(
            [
                job(session, "bad", raising(ZeroDivisionError("division by zero"))),
                job(session, "good"),
                job(session, "after bad", needs=("bad", "good")),
                job(session, "after that", needs=("after bad",)),
            ]
        )
    assert {key: outcome.status for key, outcome in outcomes.items()} == {
        "bad": Status.FAILED,
        "good": Status.DONE,
        "after bad": Status.SKIPPED,
        "after that": Status.SKIPPED,
    }
    bad = outcomes["bad"]
    assert (bad.cause, bad.attempts, bad.error) == (Cause.FAULT, 1, "ZeroDivisionError: division by zero")
    assert "Traceback" in bad.traceback
    assert outcomes["after bad"].cause is Cause.NEED
    assert outcomes["after bad"].error == "needs bad: no result"


async def test_failure_is_retried_as_often_as_its_cause_allows(tmp_path: Path) -> None:
    tries: list[int] = []
    events: list[Event] = []

    async def run(context: JobContext) -> Json:
        tries.append(context.attempt)
        raise ModelUnavailable("overloaded")

    async with open_session(tmp_path, retries=QUICK, observers=[events.append]) as session:
        outcomes = await session.run([job(session, "a", run)])
    assert tries == [1, 2, 3]
    assert (outcomes["a"].cause, outcomes["a"].attempts) == (Cause.UNAVAILABLE, 3)
    assert sum(isinstance(event, JobRetrying) for event in events) == 2
    assert session.history.job("a").retries == Counter({"unavailable": 2})


async def test_error_that_was_given_up_is_not_retried(tmp_path: Path) -> None:
    async with open_session(tmp_path, retries=QUICK) as session:
        outcomes = await session.run(
            [job(session, "a", raising(mark_given_up(ModelUnavailable("overloaded"))))]
        )
    assert outcomes["a"].attempts == 1


async def test_back_off_uses_no_permit_and_respects_retry_after(tmp_path: Path) -> None:
    times: dict[str, float] = {}

    async def limited(context: JobContext) -> Json:
        if context.attempt == 1:
            raise RateLimited("slow down", retry_after_s=0.2)
        times["again"] = time.monotonic()
        return None

    async def other(_: JobContext) -> Json:
        times["other"] = time.monotonic()
        return None

    begun = time.monotonic()
    async with open_session(tmp_path, capacities={"jobs": 1}, retries=QUICK) as session:
        await session.run([job(session, "limited", limited), job(session, "other", other)])
    assert times["other"] < times["again"]
    assert times["again"] - begun >= 0.2


async def test_back_off_beyond_the_deadline_is_not_started(tmp_path: Path) -> None:
    async with open_session(tmp_path, retries=QUICK) as session:
        node = session.budget.child("tight", BudgetLimits(wall_s=60))
        run = raising(RateLimited("slow down", retry_after_s=3000))
        with anyio.fail_after(60):
            outcomes = await session.run([job(session, "a", run, budget=node)])
    assert (outcomes["a"].status, outcomes["a"].cause) == (Status.FAILED, Cause.RATE_LIMIT)


async def test_fault_has_precedence_over_other_errors_of_a_job(tmp_path: Path) -> None:
    async def run(_: JobContext) -> Json:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail, EngineError("crashed"))
            tasks.start_soon(fail, KeyError("id"))
        return None

    async with open_session(tmp_path) as session:
        outcomes = await session.run([job(session, "a", run)])
    assert (outcomes["a"].cause, outcomes["a"].error) == (Cause.FAULT, "KeyError: 'id'")


async def test_unexpected_cancellation_fails_the_job_but_not_the_run(tmp_path: Path) -> None:
    async with open_session(tmp_path) as session:
        with anyio.fail_after(60):
            outcomes = await session.run(
                [job(session, "a", raising(asyncio.CancelledError())), job(session, "b")]
            )
    assert (outcomes["a"].status, outcomes["a"].cause) == (Status.FAILED, Cause.FAULT)
    assert outcomes["b"].status is Status.DONE


async def test_non_json_result_is_a_fault(tmp_path: Path) -> None:
    async def run(_: JobContext) -> Any:
        return object()

    async with open_session(tmp_path) as session:
        outcomes = await session.run([job(session, "a", run)])
    assert "not JSON serializable" in outcomes["a"].error


async def test_job_that_ignores_its_deadline_is_stopped_after_the_grace(tmp_path: Path) -> None:
    async def run(_: JobContext) -> Json:
        await anyio.sleep_forever()
        return None

    begun = time.monotonic()
    async with open_session(tmp_path, grace_s=0.1) as session:
        node = session.budget.child("tight", BudgetLimits(wall_s=0.1))
        outcomes = await session.run([job(session, "a", run, budget=node)])
    assert (outcomes["a"].status, outcomes["a"].cause) == (Status.TIMEOUT, Cause.DEADLINE)
    assert time.monotonic() - begun >= 0.2


async def test_result_of_job_that_ends_early_after_its_deadline_is_used(tmp_path: Path) -> None:
    async def run(context: JobContext) -> Json:
        with context.budget.deadline() as scope:
            await anyio.sleep(30)
        if scope.cancelled_caught:
            context.end_early(DeadlineExceeded("30 s are too long"))
        await anyio.sleep(0.02)
        return "half a result"

    async def use(context: JobContext) -> Json:
        return context.needs["a"]

    async with open_session(tmp_path, grace_s=5) as session:
        node = session.budget.child("tight", BudgetLimits(wall_s=0.05))
        outcomes = await session.run(
            [job(session, "a", run, budget=node), job(session, "b", use, needs=("a",))]
        )
    assert (outcomes["a"].status, outcomes["a"].value) == (Status.TIMEOUT, "half a result")
    assert (outcomes["b"].status, outcomes["b"].value) == (Status.DONE, "half a result")


async def test_exceeded_budget_is_an_outcome(tmp_path: Path) -> None:
    async def run(context: JobContext) -> Json:
        for turn in range(9):
            async with await context.start_call(
                f"turn-{turn}", await context.hold(Cost(Decimal("0.4")))
            ) as paid:
                await paid.settle(Cost(Decimal("0.4")))
        return None

    async with open_session(tmp_path, BudgetLimits(usd=Decimal(1)), capacities={"jobs": 1}) as session:
        outcomes = await session.run([job(session, "a", run)])
    assert (outcomes["a"].status, outcomes["a"].cause) == (Status.BUDGET_EXCEEDED, Cause.BUDGET)
    assert outcomes["a"].cost.settled.usd == Decimal("0.8")


async def test_unaffordable_jobs_are_not_started_except_free_ones(tmp_path: Path) -> None:
    async def spend(context: JobContext) -> Json:
        async with await context.start_call("turn", await context.hold(Cost(Decimal(1)))) as paid:
            await paid.settle(Cost(Decimal(1)))
        return None

    async with open_session(tmp_path, BudgetLimits(usd=Decimal(1)), capacities={"jobs": 1}) as session:
        outcomes = await session.run(
            [job(session, "a", spend), job(session, "b", spend), job(session, "scan", costs_nothing=True)]
        )
    assert outcomes["a"].status is Status.DONE
    assert (outcomes["b"].status, outcomes["b"].attempts) == (Status.BUDGET_EXCEEDED, 0)
    assert outcomes["b"].error == "not started: budget of the run: $1 of $1 is used up"
    assert outcomes["scan"].status is Status.DONE


async def test_stopping_cancels_running_jobs_after_clean_up_and_starts_none(tmp_path: Path) -> None:
    seen: list[str] = []
    started: list[str] = []

    async def run(context: JobContext) -> Json:
        try:
            started.append(context.key)
            await anyio.sleep_forever()
        finally:
            with context.cleanup_scope():
                await anyio.sleep(0.05)
                seen.append(f"{context.key} cleaned up")
        return None

    async with open_session(tmp_path, capacities={"jobs": 2}) as session:

        async def stop() -> None:
            while len(started) < 2:  # noqa: ASYNC110 - two jobs set no event
                await anyio.sleep(0.05)
            session.drain()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            jobs = [job(session, key, run) for key in ("a", "b", "c")]
            outcomes = await session.run([*jobs, job(session, "d", needs=("a",))])
    assert {outcome.status for outcome in outcomes.values()} == {Status.CANCELLED}
    assert sorted(seen) == ["a cleaned up", "b cleaned up"]
    assert [outcomes[key].attempts for key in "abcd"] == [1, 1, 0, 0]


async def test_second_stop_request_ends_clean_up(tmp_path: Path) -> None:
    steps = started, cleaning = anyio.Event(), anyio.Event()

    async def run(context: JobContext) -> Json:
        try:
            started.set()
            await anyio.sleep_forever()
        finally:
            with context.cleanup_scope():
                cleaning.set()
                await anyio.sleep_forever()
        return None

    async with open_session(tmp_path, grace_s=6000) as session:

        async def stop() -> None:
            for step in steps:
                await step.wait()
                session.drain()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            outcomes = await session.run([job(session, "a", run)])
    assert outcomes["a"].status is Status.CANCELLED


async def test_stopping_ends_back_off(tmp_path: Path) -> None:
    async with open_session(tmp_path, retries=dict.fromkeys(Cause, RetryRule(9, 6000))) as session:

        async def stop() -> None:
            await anyio.sleep(0.05)
            session.drain()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            with anyio.fail_after(60):
                outcomes = await session.run([job(session, "a", raising(EngineError("crashed")))])
    assert outcomes["a"].status is Status.CANCELLED


async def test_job_may_add_jobs(tmp_path: Path) -> None:
    async with open_session(tmp_path, capacities={"jobs": 1}) as session:

        async def grow(context: JobContext) -> Json:
            number = int(context.key)
            if number < 5:
                session.add(job(session, str(number + 1), grow, needs=(context.key,)))
            return number

        outcomes = await session.run([job(session, "1", grow)])
        assert sorted(outcomes) == list("12345")
        assert len(await session.run([job(session, "6", grow, needs=("5",))])) == 6


async def test_failing_observer_does_not_affect_the_run(tmp_path: Path) -> None:
    def broken(_: Event) -> None:
        raise RuntimeError("no terminal")

    seen: list[Event] = []
    async with open_session(tmp_path, observers=[broken, seen.append]) as session:
        await session.run([job(session, "a")])
    assert isinstance(seen[-1], JobFinished)


async def test_waits_are_observed_and_journalled(tmp_path: Path) -> None:
    seen: list[Event] = []

    async def run(context: JobContext) -> Json:
        with context.waiting(Wait(WaitReason.PERMIT, "sonnet")):
            await anyio.sleep(0.05)
        return None

    async with open_session(tmp_path, observers=[seen.append]) as session:
        outcomes = await session.run([job(session, "a", run)])
    assert WaitStarted("a", Wait(WaitReason.PERMIT, "sonnet")) in seen
    assert any(isinstance(event, WaitEnded) and event.waited_s >= 0.05 for event in seen)
    assert outcomes["a"].cost.waited_s >= 0.05
    lines = list(read_journal(tmp_path / "journal.jsonl"))
    assert {"wait_started", "wait_ended"} <= {line["event"] for line in lines}


async def test_run_can_be_resumed_after_outer_cancellation(tmp_path: Path) -> None:
    async def slow(_: JobContext) -> Json:
        scope.cancel()
        await anyio.sleep_forever()
        return None

    with anyio.CancelScope() as scope:
        async with open_session(tmp_path) as session:
            await session.run([job(session, "quick"), job(session, "slow", slow, needs=("quick",))])
    assert scope.cancelled_caught
    async with open_session(tmp_path) as session:
        outcomes = await session.run([job(session, "quick"), job(session, "slow", needs=("quick",))])
    assert [outcomes[key].resumed for key in ("quick", "slow")] == [True, False]


def test_thousand_jobs_all_finish(tmp_path: Path) -> None:
    async def main() -> dict[str, Outcome]:
        async with open_session(tmp_path, BudgetLimits(usd=Decimal(1)), capacities={"jobs": 100}) as session:
            flow = session.budget.child("flow")
            return await session.run(
                [closure_job(session, f"job {n}", nothing, flow, "1") for n in range(1000)]
            )

    outcomes = anyio.run(main)
    assert len(outcomes) == 1000
    assert all(outcome.status is Status.DONE for outcome in outcomes.values())


def test_cost_per_job_does_not_grow_with_waiting_jobs(tmp_path: Path) -> None:
    async def main(number: int) -> None:
        async with open_session(tmp_path / str(number), capacities={"jobs": 2}) as session:
            flow = session.budget.child("flow")
            await session.run([closure_job(session, f"job {n}", nothing, flow, "1") for n in range(number)])

    def cpu_s(number: int) -> float:
        begun = time.process_time()
        anyio.run(main, number)
        return (time.process_time() - begun) / number

    cpu_s(200)
    assert cpu_s(4000) < 4 * cpu_s(400)


class RandomJobs:
    """A random set of jobs with its own count of the running ones."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.capacities = {"jobs": self.rng.randint(1, 8), "cpu": 2.0}
        self.running: Counter[str] = Counter()
        self.ended: set[str] = set()
        self.needs: dict[str, tuple[str, ...]] = {}
        self.fate: dict[str, str] = {}

    def add(self, session: Session) -> None:
        for number in range(self.rng.randint(1, 40)):
            key = str(number)
            pool = list(self.needs)
            self.needs[key] = tuple(self.rng.sample(pool, min(len(pool), self.rng.choice([0, 0, 1, 3]))))
            self.fate[key] = self.rng.choice(["done"] * 6 + ["failed", "flaky"])
            cpu = self.rng.choice([0.5, 1.0, 2.0, None])
            resources = {} if cpu is None else {"cpu": cpu}
            session.add(
                job(
                    session,
                    key,
                    self.run,
                    needs=self.needs[key],
                    resources=resources,
                    lane=self.rng.choice("abc"),
                )
            )
            self.demand = getattr(self, "demand", {}) | {key: {"jobs": 1.0, **resources}}

    async def run(self, context: JobContext) -> Json:
        key = context.key
        assert set(self.needs[key]) <= self.ended
        self.running.update(self.demand[key])
        assert all(self.running[name] <= self.capacities[name] for name in self.running)
        try:
            for _ in range(self.rng.randint(0, 3)):
                await anyio.lowlevel.checkpoint()
            if self.fate[key] == "failed":
                raise ValueError(key)
            if self.fate[key] == "flaky" and context.attempt < 3:
                raise ModelUnavailable(key)
        finally:
            self.running.subtract(self.demand[key])
        self.ended.add(key)
        return key

    def expected(self) -> dict[str, Status]:
        statuses: dict[str, Status] = {}
        for key, needs in self.needs.items():
            if any(statuses[need] is not Status.DONE for need in needs):
                statuses[key] = Status.SKIPPED
            else:
                statuses[key] = Status.FAILED if self.fate[key] == "failed" else Status.DONE
        return statuses


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_random_jobs_respect_limits_and_needs_and_all_end(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    random_jobs = RandomJobs(seed)

    async def main() -> dict[str, Outcome]:
        quick = dict.fromkeys(Cause, RetryRule(tries=3, first_s=0.0))
        directory = tmp_path_factory.mktemp("run")
        async with open_session(directory, capacities=random_jobs.capacities, retries=quick) as session:
            random_jobs.add(session)
            with anyio.fail_after(200):
                return await session.run()

    outcomes = anyio.run(main)
    assert {key: outcome.status for key, outcome in outcomes.items()} == random_jobs.expected()
