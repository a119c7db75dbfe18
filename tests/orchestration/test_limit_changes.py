"""Limits changed during a run take effect at once and are known to the next session."""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import BudgetExceeded, ConfigError
from codetaste.orchestration.budget.budget import Budget
from codetaste.orchestration.budget.cost import BudgetLimits, Cost
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.scheduler.fair_queue import FairQueue
from codetaste.orchestration.session import Session, open_session
from support.orchestration.closure_jobs import closure_job
from support.orchestration.journal_lines import read_journal

pytestmark = pytest.mark.anyio


def dollars(amount: float) -> Cost:
    return Cost(usd=Decimal(str(amount)))


class WaitingJobs:
    """Jobs that run until ``go`` is set; ``concurrent`` lists how many ran at each start."""

    def __init__(self, session: Session, count: int) -> None:
        self.go, self.running, self.concurrent = anyio.Event(), set[str](), list[int]()
        flow = session.budget.child("flow")
        session.add(*(closure_job(session, f"job {number}", self.run, flow, "1") for number in range(count)))

    async def run(self, context: JobContext) -> Json:
        self.running.add(context.key)
        self.concurrent.append(len(self.running))
        await self.go.wait()
        await anyio.lowlevel.checkpoint()
        self.running.discard(context.key)
        return None


async def test_raised_permits_start_waiting_jobs_at_once(tmp_path: Path) -> None:
    async with open_session(tmp_path, capacities={"jobs": 0}) as session, anyio.create_task_group() as tasks:
        jobs = WaitingJobs(session, 20)
        tasks.start_soon(session.run)
        await anyio.wait_all_tasks_blocked()
        assert not jobs.running, "jobs started without permits"
        session.resize("jobs", 5)
        await anyio.wait_all_tasks_blocked()
        assert len(jobs.running) == 5
        jobs.go.set()
    assert max(jobs.concurrent) == 5
    assert len(jobs.concurrent) == 20


async def test_lowered_permits_let_running_jobs_finish(tmp_path: Path) -> None:
    async with open_session(tmp_path, capacities={"jobs": 10}) as session, anyio.create_task_group() as tasks:
        jobs = WaitingJobs(session, 30)
        tasks.start_soon(session.run)
        await anyio.wait_all_tasks_blocked()
        assert len(jobs.running) == 10
        session.resize("jobs", 2)
        await anyio.wait_all_tasks_blocked()
        assert len(jobs.running) == 10, "a running job was stopped"
        jobs.go.set()
    assert max(jobs.concurrent[10:]) <= 2
    assert len(jobs.concurrent) == 30


async def test_job_above_a_lowered_capacity_runs_alone(tmp_path: Path) -> None:
    seen: list[int] = []
    running = Counter[str]()

    async def run(context: JobContext) -> Json:
        running[context.key] += 1
        seen.append(sum(running.values()))
        await anyio.sleep(0.01)
        running[context.key] -= 1
        return None

    async with open_session(tmp_path, capacities={"cpu": 4}) as session:
        session.resize("cpu", 1)
        jobs = [
            closure_job(session, str(number), run, session.budget.child("flow"), "1", resources={"cpu": 3})
            for number in range(3)
        ]
        outcomes = await session.run(jobs)
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    assert max(seen) == 1


async def test_invalid_capacity_is_refused_in_one_line(tmp_path: Path) -> None:
    async with open_session(tmp_path, capacities={"jobs": 4, "sandbox": 2}) as session:
        with pytest.raises(ConfigError, match="unknown resource 'job'; available: jobs, sandbox"):
            session.resize("job", 3)
        for invalid in (-1, math.nan, math.inf):
            with pytest.raises(ConfigError, match="not negative"):
                session.resize("jobs", invalid)


async def test_raised_budget_serves_waiting_requests() -> None:
    root = Budget.root(BudgetLimits(usd=Decimal(1)))
    first = await root.reserve(dollars(1))
    granted: list[Cost] = []

    async def reserve() -> None:
        granted.append((await root.reserve(dollars(1), dollars(0.5))).granted)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reserve)
        await anyio.wait_all_tasks_blocked()
        assert not granted
        root.set_limits(BudgetLimits(usd=Decimal(2)))
        await anyio.wait_all_tasks_blocked()
        assert granted == [dollars(1)]
    first.release()


async def test_lowered_budget_refuses_later_calls_and_revokes_nothing() -> None:
    root = Budget.root(BudgetLimits(usd=Decimal(10)))
    spent, in_flight = await root.reserve(dollars(4)), await root.reserve(dollars(2))
    spent.settle(dollars(4))
    refused: list[str] = []

    async def reserve() -> None:
        try:
            await root.reserve(dollars(3))
        except BudgetExceeded as error:
            refused.append(str(error))

    await root.reserve(dollars(4))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reserve)
        await anyio.wait_all_tasks_blocked()
        assert not refused
        root.set_limits(BudgetLimits(usd=Decimal(3)))
    assert refused == ["budget of the run: at least $3 requested, $0 left of $3"]
    assert (root.settled, in_flight.granted) == (dollars(4), dollars(2))
    in_flight.settle(dollars(2))
    assert root.settled == dollars(6)
    with pytest.raises(ValueError, match="not negative"):
        root.set_limits(BudgetLimits(usd=Decimal(-1)))


async def test_time_limit_set_during_a_job_ends_it(tmp_path: Path) -> None:
    async def run(_: JobContext) -> Json:
        await anyio.sleep(30)
        return None

    async def shorten(session: Session) -> None:
        await anyio.sleep(0.05)
        await session.set_limits(BudgetLimits(wall_s=0.06))

    async with open_session(tmp_path, grace_s=0.05) as session, anyio.create_task_group() as tasks:
        tasks.start_soon(shorten, session)
        job = closure_job(session, "long", run, session.budget.child("flow"), "1")
        with anyio.fail_after(60):
            outcomes = await session.run([job])
    assert outcomes["long"].status is Status.TIMEOUT


async def test_extended_time_limit_lets_a_job_continue() -> None:
    root = Budget.root(BudgetLimits(working_s=0.05))
    node = root.child("job")
    with node.deadline() as scope:
        root.set_limits(BudgetLimits(working_s=20))
        await anyio.sleep(0.1)
    assert not scope.cancelled_caught
    with node.deadline() as scope:
        root.set_limits(BudgetLimits(working_s=0.2))
        await anyio.sleep(100)
    assert scope.cancelled_caught


async def test_journal_has_the_limits_that_were_set_last(tmp_path: Path) -> None:
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(5), wall_s=100.0)) as session:
        await session.set_limits(BudgetLimits(usd=Decimal(2), wall_s=100.0))
    lines = list(read_journal(tmp_path / "journal.jsonl"))
    assert History(lines).limits == BudgetLimits(usd=Decimal(2), wall_s=100.0)
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(5))) as session:
        assert session.history.limits == session.budget.limits == BudgetLimits(usd=Decimal(5))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_random_capacity_changes_are_respected_and_jobs_end(seed: int) -> None:
    rng = random.Random(seed)
    capacities = {"jobs": 4.0, "cpu": 4.0}
    queue: FairQueue[int] = FairQueue(capacities)
    demands = {
        item: (rng.choice("abc"), {"jobs": 1.0, "cpu": rng.choice([0.0, 0.5, 1.0, 3.0, 4.0])})
        for item in range(rng.randint(1, 40))
    }
    for item, demand in demands.items():
        queue.push(item, *demand)
    running, ended = set[int](), set[int]()
    for step in range(10_000):
        if len(ended) == len(demands):
            return
        last = step > 60
        if rng.random() < 0.4 or last:
            name = rng.choice(list(capacities))
            capacities[name] = rng.choice([0.0, 1.0, 2.0, 6.0]) if not last else 2.0
            queue.resize(name, capacities[name])
        while (started := queue.pop()) is not None:
            running.add(started)
            for name, capacity in capacities.items():
                mine = demands[started][1][name]
                used = sum(demands[each][1][name] for each in running)
                assert not mine or used <= capacity or (capacity and used == mine), (
                    "a job started beyond the capacity, but not alone"
                )
        for item in [each for each in sorted(running) if rng.random() < 0.5]:
            running.remove(item)
            ended.add(item)
            queue.release(*demands[item])
    raise AssertionError("a job never started")
