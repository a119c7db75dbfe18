"""Time limits: which time counts, and when jobs are cancelled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from codetaste.orchestration.budget import clock
from codetaste.orchestration.budget.budget import Budget
from codetaste.orchestration.budget.cost import BudgetLimits, PriorCharges
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.scheduler import scheduler
from codetaste.orchestration.session import open_session
from support.orchestration.closure_jobs import closure_job
from support.orchestration.journal_lines import read_journal

pytestmark = pytest.mark.anyio


@pytest.fixture
def advance_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that advances the clock of budgets, which otherwise stands still."""
    now_s = 100.0
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: now_s))

    def advance(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    return advance


async def test_deadline_is_the_tightest_limit_of_all_ancestors() -> None:
    root = Budget.root(BudgetLimits(wall_s=0.05))
    job = root.child("job", BudgetLimits(wall_s=5))
    with job.deadline() as scope:
        await anyio.sleep(1)
    assert scope.cancelled_caught


async def test_waiting_does_not_use_working_time() -> None:
    job = Budget.root().child("job", BudgetLimits(working_s=0.2))
    with anyio.fail_after(60), job.deadline() as scope:
        with job.waiting():
            await anyio.sleep(0.4)
        waited = True
        await anyio.sleep(100)
    assert waited
    assert scope.cancelled_caught
    snapshot = job.snapshot()
    assert snapshot.waited_s >= 0.4
    assert snapshot.wall_s - snapshot.waited_s >= 0.2


async def test_overlapping_waits_of_one_job_count_once(advance_clock: Callable[[float], None]) -> None:
    job = Budget.root().child("job")
    with job.deadline():
        with ExitStack() as waits:
            for _ in range(20):
                waits.enter_context(job.waiting())
            advance_clock(0.1)
        advance_clock(5)
    snapshot = job.snapshot()
    assert (snapshot.waited_s, snapshot.wall_s) == (pytest.approx(0.1), pytest.approx(5.1))


async def test_working_time_of_parent_counts_while_any_job_works() -> None:
    instance = Budget.root().child("instance", BudgetLimits(working_s=60))
    busy, idle = instance.child("busy"), instance.child("idle")
    with busy.deadline(), idle.deadline(), idle.waiting():
        await anyio.sleep(0.2)
        with busy.waiting():
            await anyio.sleep(0.1)
    snapshot = instance.snapshot()
    assert snapshot.waited_s >= 0.1
    assert snapshot.wall_s - snapshot.waited_s >= 0.2
    assert idle.snapshot().waited_s >= 0.3


async def test_time_between_jobs_does_not_count(advance_clock: Callable[[float], None]) -> None:
    instance = Budget.root().child("instance", BudgetLimits(wall_s=60))
    for _ in range(2):
        with instance.child("job").deadline():
            advance_clock(0.01)
        advance_clock(0.5)
    assert instance.snapshot().wall_s == pytest.approx(0.02)


async def test_time_used_by_earlier_sessions_counts() -> None:
    root = Budget.root(prior={("job",): PriorCharges(wall_s=9.95, working_s=1.0)})
    job = root.child("job", BudgetLimits(wall_s=10))
    assert job.clock.time_left_s() == pytest.approx(0.05)
    with anyio.fail_after(60), job.deadline() as scope:
        await anyio.sleep(100)
    assert scope.cancelled_caught


async def test_working_limit_of_ancestor_excludes_waits_of_its_jobs() -> None:
    root = Budget.root(BudgetLimits(working_s=0.2))
    job = root.child("flow").child("job")
    with anyio.fail_after(60), job.deadline() as scope:
        with job.waiting():
            await anyio.sleep(0.4)
        survived_the_wait = True
        await anyio.sleep(100)
    assert survived_the_wait
    assert scope.cancelled_caught


async def test_grace_extends_the_deadline() -> None:
    job = Budget.root().child("job", BudgetLimits(wall_s=0.02))
    with job.deadline(grace_s=5) as hard, job.deadline() as soft:
        await anyio.sleep(100)
    assert soft.cancelled_caught
    assert not hard.cancel_called


async def test_late_job_gets_its_grace_once() -> None:
    root = Budget.root(prior={("job",): PriorCharges(wall_s=100, working_s=100)})
    job = root.child("job", BudgetLimits(wall_s=1, working_s=1))
    with anyio.fail_after(60), job.deadline(grace_s=0.3) as hard:
        with job.deadline() as soft:
            await anyio.sleep(100)
        soft_expired = soft.cancelled_caught
        for _ in range(1000):  # short waits do not extend the grace
            with job.waiting():
                pass
            await anyio.sleep(0.01)
    assert soft_expired
    assert hard.cancelled_caught


async def test_clock_journals_only_nodes_with_a_time_limit_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_CLOCK_EVERY_S", 0.02)

    async def work(_: JobContext) -> Json:
        nodes: list[Json] = []
        with anyio.fail_after(200):
            while not nodes:
                await anyio.sleep(0.1)
                lines = list(read_journal(tmp_path / "journal.jsonl"))
                nodes = [path for line in lines if line["event"] == "clocks" for path, *_ in line["nodes"]]
        return nodes

    async with open_session(tmp_path) as session:
        node = session.budget.child("discover").child("koa", BudgetLimits(working_s=60))
        outcomes = await session.run([closure_job(session, "pass", work, node, "1")])
    while_it_ran = outcomes["pass"].value
    assert isinstance(while_it_ran, list)
    assert {tuple(path) for path in while_it_ran if isinstance(path, list)} == {(), ("discover", "koa")}
    assert ("discover", "koa", "pass") in History(read_journal(tmp_path / "journal.jsonl")).clocks
