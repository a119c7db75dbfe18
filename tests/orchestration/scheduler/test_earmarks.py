"""Jobs that the budget cannot pay for are not started: they end with a reason, or wait without a permit."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.errors import Cause
from codetaste.orchestration.budget.budget import Budget
from codetaste.orchestration.budget.cost import BudgetLimits, Cost
from codetaste.orchestration.budget.reservation import Reservation, ReservationRequest
from codetaste.orchestration.job import Job, JobContext, Outcome, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.scheduler.earmarks import Earmarks, missing_funds
from codetaste.orchestration.scheduler.scheduled_job import ScheduledJob
from codetaste.orchestration.session import Session, open_session
from support.orchestration.closure_jobs import budget_path, closure_job
from support.orchestration.journal_lines import read_journal

pytestmark = pytest.mark.anyio
Run = Callable[[JobContext], Awaitable[Json]]


def dollars(amount: float | str) -> Cost:
    return Cost(usd=Decimal(str(amount)))


def buying(price: float, *, started: list[str] | None = None, work_s: float = 0.0) -> Run:
    async def run(context: JobContext) -> Json:
        if started is not None:
            started.append(context.key)
        async with await context.start_call("reply", await context.hold(dollars(price))) as paid:
            await anyio.sleep(work_s)
            await paid.settle(dollars(price), "a reply")
        return None

    return run


def job(session: Session, key: str, run: Run, **more: Any) -> Job:
    return closure_job(session, key, run, more.pop("budget", session.budget.child("flow")), "1", **more)


async def test_unaffordable_job_reports_needed_and_remaining_budget(tmp_path: Path) -> None:
    started: list[str] = []
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(5)), capacities={"jobs": 1}) as session:
        jobs = [
            job(session, "first", buying(4.988, started=started)),
            job(session, "late", buying(0.031, started=started), needs=("first",), min_cost=dollars("0.031")),
        ]
        outcomes = await session.run(jobs)
    late = outcomes["late"]
    assert (late.status, late.cause, late.attempts) == (Status.BUDGET_EXCEEDED, Cause.BUDGET, 0)
    assert late.error == "not started: needs at least $0.031, $0.012 left of $5 (run)"
    assert started == ["first"]


async def test_error_names_the_node_without_funds(tmp_path: Path) -> None:
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(5))) as session:
        node = session.budget.child("discover").child("sonnet/koa", BudgetLimits(usd=Decimal("0.01")))
        outcomes = await session.run(
            [job(session, "pass", buying(1), budget=node, min_cost=Cost(Decimal("0.02"), 10))]
        )
    error = outcomes["pass"].error
    assert error == "not started: needs at least $0.02, $0.01 left of $0.01 (discover/sonnet/koa)"


async def test_prerequisites_of_unaffordable_jobs_are_skipped(tmp_path: Path) -> None:
    started: list[str] = []

    async def run(context: JobContext) -> Json:
        started.append(context.key)
        return None

    async with open_session(tmp_path, BudgetLimits(usd=Decimal(1))) as session:
        jobs = [
            job(session, "sources a", run, costs_nothing=True, prerequisite_only=True),
            job(session, "sources b", run, costs_nothing=True, prerequisite_only=True),
            job(session, "expensive", run, needs=("sources a",), min_cost=dollars(2)),
            job(session, "expensive too", run, needs=("sources b",), min_cost=dollars(2)),
            job(session, "cheap", run, needs=("sources b",), min_cost=dollars(1)),
        ]
        outcomes = await session.run(jobs)
    assert started == ["sources b", "cheap"]
    assert outcomes["sources a"].status is Status.SKIPPED
    assert outcomes["sources a"].error == "not started: no job that needs it can run"
    assert [outcomes[key].status for key in ("expensive", "expensive too", "cheap")] == [
        Status.BUDGET_EXCEEDED,
        Status.BUDGET_EXCEEDED,
        Status.DONE,
    ]


async def test_job_with_funds_in_flight_waits_without_permit_then_starts(tmp_path: Path) -> None:
    async def costs_less(context: JobContext) -> Json:
        async with await context.start_call("reply", await context.hold(dollars(1))) as paid:
            session.add(
                *(job(session, key, buying(0.1, started=order), min_cost=dollars(0.1)) for key in "abc")
            )
            session.add(job(session, "free", look, costs_nothing=True))
            await looked.wait()
            order.append("settles")
            await paid.settle(dollars(0.5), "a reply")
        return None

    async def look(context: JobContext) -> Json:
        order.append(context.key)
        looked.set()
        return [session.history.job(key).state for key in "abc"]

    order: list[str] = []
    looked = anyio.Event()
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(1)), capacities={"jobs": 2}) as session:
        outcomes = await session.run([job(session, "first", costs_less)])
    assert order == ["free", "settles", "a", "b", "c"]
    assert outcomes["free"].value == ["queued"] * 3
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    lines = [
        line
        for line in read_journal(tmp_path / "journal.jsonl")
        if line["event"] in {"wait_started", "wait_ended"}
    ]
    assert [line["event"] for line in lines] == ["wait_started"] * 3 + ["wait_ended"] * 3
    assert {line["reason"] for line in lines} == {"budget"}


async def test_job_with_recorded_progress_continues_without_earmark(tmp_path: Path) -> None:
    async def run(context: JobContext) -> Json:
        async with await context.start_call("reply", await context.hold(dollars(1))) as paid:
            await paid.settle(dollars(1), "a reply")
        session.drain()
        await anyio.sleep(10)
        return None

    async def resume(context: JobContext) -> Json:
        async def never() -> Json:
            raise AssertionError("recorded")

        return await context.effect("reply", never)

    async with open_session(tmp_path, BudgetLimits(usd=Decimal(1))) as session:
        assert (await session.run([job(session, "a", run, min_cost=dollars(1))]))[
            "a"
        ].status is Status.CANCELLED
    async with open_session(tmp_path, BudgetLimits(usd=Decimal(1))) as session:
        outcomes = await session.run([job(session, "a", resume, min_cost=dollars(1))])
    assert (outcomes["a"].status, outcomes["a"].value) == (Status.DONE, "a reply")


async def test_raised_budget_starts_waiting_jobs_and_lowered_budget_ends_them(tmp_path: Path) -> None:
    async def reserve(context: JobContext) -> Json:
        async with await context.start_call("reply", await context.hold(dollars(1))) as paid:
            session.add(
                job(session, "a", buying(1), min_cost=dollars(1)),
                job(session, "b", buying(1), min_cost=dollars(1)),
            )
            await anyio.sleep(0.05)
            await session.set_limits(BudgetLimits(usd=Decimal(2)))
            with anyio.fail_after(200):
                while session.history.job("a").state != "done":  # noqa: ASYNC110 - a state sets no event
                    await anyio.sleep(0.05)
            states = [session.history.job(key).state for key in "ab"]
            await session.set_limits(BudgetLimits(usd=Decimal("1.5")))
            await paid.settle(dollars(1), "a reply")
        return list(states)

    async with open_session(tmp_path, BudgetLimits(usd=Decimal(1))) as session:
        outcomes = await session.run([job(session, "hold", reserve)])
    assert outcomes["hold"].value == ["done", "queued"]
    assert outcomes["b"].error == "not started: needs at least $1, $0.5 left of $1.5 (run)"


async def test_jobs_waiting_for_funds_end_with_the_run(tmp_path: Path) -> None:
    async def reserve(context: JobContext) -> Json:
        async with await context.start_call("reply", await context.hold(dollars(1))):
            session.add(job(session, "waits", buying(1), min_cost=dollars(1)))
            session.drain("enough")
            await anyio.sleep(10)
        return None

    with anyio.fail_after(200):
        async with open_session(tmp_path, BudgetLimits(usd=Decimal(1))) as session:
            outcomes = await session.run([job(session, "hold", reserve)])
    assert {outcome.status for outcome in outcomes.values()} == {Status.CANCELLED}


class Recount:
    """A model of earmarks that counts each node's money anew from all events."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.limits: dict[tuple[str, ...], int | None] = {
            (): rng.choice([None, 20, 60]),
            ("a",): rng.choice([None, 10, 30]),
            ("b",): rng.choice([None, 5, 30]),
        }
        self.root = Budget.root(self._limits(()))
        self.nodes = {path: self.root.find(path) for path in self.limits}
        for path, node in self.nodes.items():
            node.set_limits(self._limits(path))
        self.reservations: dict[Reservation, Budget] = {}
        self.requests: list[ReservationRequest] = []
        self.spent: list[tuple[Budget, int]] = []
        self.started: dict[ScheduledJob, bool] = {}
        self.waiting: list[ScheduledJob] = []
        self.released: list[ScheduledJob] = []
        self.earmarks = Earmarks(self.root, self.released.extend)

    def _limits(self, path: tuple[str, ...]) -> BudgetLimits:
        most = self.limits[path]
        return BudgetLimits(usd=None if most is None else Decimal(most))

    def min_usd(self, entry: ScheduledJob) -> int:
        assert entry.job.min_cost is not None
        return int(entry.job.min_cost.usd)

    def taken(self, path: tuple[str, ...], *, by: str) -> int:
        def under(node: Budget) -> bool:
            return node.path[: len(path)] == path

        total = sum(cost for node, cost in self.spent if under(node))
        if by == "spent":
            return total
        total += sum(int(each.granted.usd) for each, node in self.reservations.items() if under(node))
        total += sum(
            self.min_usd(entry)
            for entry, earmarked in self.started.items()
            if earmarked and under(entry.budget)
        )
        return total

    def fits(self, entry: ScheduledJob, *, by: str) -> bool:
        return all(
            most is None or self.taken(path, by=by) + self.min_usd(entry) <= most
            for path, most in self.limits.items()
            if entry.budget.path[: len(path)] == path
        )

    def start(self, entry: ScheduledJob) -> None:
        """Do what the scheduler does with the first job of a lane."""
        if not self.fits(entry, by="spent"):
            assert missing_funds(entry)
            return
        assert not missing_funds(entry)
        fits = self.fits(entry, by="all")
        if self.earmarks.earmark(entry):
            assert fits, "earmarked money that is not available"
            self.started[entry] = True
            if entry in self.waiting:
                self.waiting.remove(entry)
        elif entry not in self.waiting:
            self.waiting.append(entry)

    def start_released(self) -> None:
        """Start the jobs that were released, and check that no job waits without a reason."""
        while self.released:
            entry = self.released.pop(0)
            if entry in self.waiting:
                self.waiting.remove(entry)
            if not missing_funds(entry):
                assert self.earmarks.earmark(entry), "released without funds"
                self.started[entry] = True
        pending = any(not request.answered.is_set() for request in self.requests)
        if self.waiting and not pending and not self.reservations and not any(self.started.values()):
            raise AssertionError("jobs wait without a reason")


def step(model: Recount, serial: int) -> None:
    rng = model.rng
    action = rng.random()
    node = model.nodes[rng.choice([("a",), ("b",)])]
    if action < 0.4:
        least = dollars(rng.choice([1, 2, 5, 9, 25]))
        new_job = Job(str(serial), "never", budget_path(node), "1", min_cost=least)
        model.start(ScheduledJob(new_job, node.child(str(serial)), {}))
    elif action < 0.6 and model.started:
        entry = rng.choice(list(model.started))
        wanted = dollars(rng.randint(1, 12))
        request = ReservationRequest(entry.budget, wanted, dollars(1))
        model.root.queue.submit(request)
        if request.reservation is None and request.refusal is None:
            model.requests.append(request)
        elif request.reservation is not None:
            model.started[entry] = False
            model.reservations[request.reservation] = entry.budget
    elif action < 0.85 and model.reservations:
        reservation = rng.choice(list(model.reservations))
        at = model.reservations.pop(reservation)
        cost = rng.randint(0, int(reservation.granted.usd))
        if rng.random() < 0.3:
            reservation.release()
        else:
            model.spent.append((at, cost))
            reservation.settle(dollars(cost))
    elif model.started:
        entry = rng.choice(list(model.started))
        del model.started[entry]
        model.earmarks.release(entry)


def collect_answers(model: Recount) -> None:
    """Move the requests that were answered to the reservations."""
    for request in [each for each in model.requests if each.answered.is_set()]:
        model.requests.remove(request)
        if request.reservation is not None:
            model.reservations[request.reservation] = request.budget
            for entry in model.started:
                if entry.budget is request.budget:
                    model.started[entry] = False


async def check_earmarks(seed: int) -> None:
    model = Recount(random.Random(seed))
    for serial in range(60):
        step(model, serial)
        collect_answers(model)
        model.start_released()
    while model.reservations or model.requests or any(model.started.values()):
        for reservation in list(model.reservations):
            model.reservations.pop(reservation)
            reservation.release()
            collect_answers(model)
        for entry in list(model.started):
            del model.started[entry]
            model.earmarks.release(entry)
        collect_answers(model)
        model.start_released()
    assert not model.waiting, "jobs wait for ever"


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_earmarks_agree_with_a_recount_at_every_step(seed: int) -> None:
    anyio.run(check_earmarks, seed)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=10_000, deadline=None)
@given(st.integers(0, 2**32))
def test_earmarks_agree_with_a_recount_in_thousands_of_runs(seed: int) -> None:
    anyio.run(check_earmarks, seed)


async def whole_run(seed: int, directory: Path) -> None:
    """Run jobs with random needs and costs; all end, and no affordable job ends unpaid."""
    rng = random.Random(seed)
    bills: list[tuple[tuple[str, ...], int]] = []

    def run(cost: int, calls: int) -> Run:
        async def buy(context: JobContext) -> Json:
            for number in range(calls):
                async with await context.start_call(
                    f"reply {number}", await context.hold(dollars(cost), dollars(1))
                ) as paid:
                    await anyio.lowlevel.checkpoint()
                    billed = rng.randint(0, int(paid.granted.usd))
                    bills.append((context.budget.path, billed))
                    await paid.settle(dollars(billed), number)
            return None

        return buy

    limits = {(): rng.randint(5, 80), ("a",): rng.randint(5, 40), ("b",): rng.randint(5, 40)}
    root = BudgetLimits(usd=Decimal(limits[()]))
    capacities = {"jobs": rng.randint(1, 4), "sandbox": 2}
    async with open_session(directory, root, capacities=capacities) as session:
        jobs: list[Job] = []
        for number in range(rng.randint(1, 25)):
            lane = rng.choice("ab")
            node = session.budget.child(lane, BudgetLimits(usd=Decimal(limits[lane,])))
            cost = rng.randint(1, 9)
            needs = (rng.choice(jobs).key,) if jobs and rng.random() < 0.2 else ()
            resources = {"sandbox": 1.0} if rng.random() < 0.5 else {}
            more = {"needs": needs, "resources": resources, "lane": lane, "min_cost": dollars(cost)}
            jobs.append(job(session, str(number), run(cost, rng.randint(1, 3)), budget=node, **more))
        with anyio.fail_after(200):
            outcomes = await session.run(jobs)
    for path, most in limits.items():
        assert sum(cost for at, cost in bills if at[: len(path)] == path) <= most
    for each in jobs:
        check_outcome(each, outcomes[each.key], limits, bills)


def check_outcome(
    each: Job, outcome: Outcome, limits: dict[tuple[str, ...], int], bills: list[tuple[tuple[str, ...], int]]
) -> None:
    assert outcome.status in {Status.DONE, Status.BUDGET_EXCEEDED, Status.SKIPPED}
    if outcome.status is Status.BUDGET_EXCEEDED and not outcome.attempts:
        assert each.min_cost is not None
        assert outcome.error.startswith("not started: needs at least $")
        spent = {path: sum(cost for at, cost in bills if at[: len(path)] == path) for path in limits}
        lane = (each.lane,)
        assert any(spent[path] + each.min_cost.usd > limits[path] for path in ((), lane))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_every_job_ends_and_no_affordable_job_ends_unpaid(seed: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        anyio.run(whole_run, seed, Path(directory))
