"""Two jobs share a budget: each begins with a part, and what one leaves goes to the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.orchestration.budget.cost import BudgetLimits, Cost, NamedLimits
from codetaste.orchestration.events import Event, WaitEnded, WaitStarted
from codetaste.orchestration.job import Job, JobContext, Outcome, Status
from codetaste.orchestration.session import Session, open_session
from support.orchestration.journal_lines import read_journal

pytestmark = pytest.mark.anyio
TOTAL = BudgetLimits(usd=Decimal(10))
HALF = BudgetLimits(usd=Decimal(5))
Handler = Callable[[Job, JobContext], Awaitable[int]]


async def buy(context: JobContext, wanted: int) -> int:
    """Buy up to ``wanted`` calls for a dollar each; return how many this job has."""
    for number in range(wanted):
        if context.is_recorded(f"call-{number}"):
            continue
        try:
            reservation = await context.hold(Cost(Decimal(1)))
        except BudgetExceeded as error:
            context.end_early(error)
            return number
        async with await context.start_call(f"call-{number}", reservation) as paid:
            await paid.settle(Cost(Decimal(1)), number)
    return wanted


async def buyer(job: Job, context: JobContext) -> int:
    return await buy(context, job.parameters)


def pair(one: object, other: object, limits: BudgetLimits = HALF, total: BudgetLimits = TOTAL) -> list[Job]:
    shared = (NamedLimits("shared", total),)
    return [
        Job(key, "buy", shared, "1", parameters=wanted, limits=limits, leaves_to=to)
        for key, wanted, to in (("a", one, "b"), ("b", other, "a"))
    ]


async def run(
    directory: Path, jobs: list[Job], handler: Handler = buyer, at: Callable[[Session], None] | None = None
) -> dict[str, Outcome]:
    async with open_session(directory, grace_s=1) as session:
        session.add_handlers({"buy": handler})
        if at is not None:
            at(session)
        return await session.run(jobs)


@pytest.mark.parametrize(
    ("wanted", "bought"),
    [((3, 9), (3, 7)), ((9, 3), (7, 3)), ((9, 9), (5, 5)), ((0, 10), (0, 10)), ((5, 5), (5, 5))],
)
async def test_what_one_leaves_goes_to_the_other(
    tmp_path: Path, wanted: tuple[int, int], bought: tuple[int, int]
) -> None:
    outcomes = await run(tmp_path, pair(*wanted))
    assert (outcomes["a"].value, outcomes["b"].value) == bought
    for outcome, count in zip(outcomes.values(), wanted, strict=True):
        assert outcome.status is (Status.DONE if outcome.value == count else Status.BUDGET_EXCEEDED)
        assert outcome.cost.spent.usd == outcome.value
    calls = [line["call"] for line in read_journal(tmp_path / "journal.jsonl") if line["event"] == "reserved"]
    assert len(calls) == sum(bought)
    again = await run(tmp_path, pair(*wanted))
    assert {key: each.value for key, each in again.items()} == dict(zip("ab", bought, strict=True))
    assert all(each.resumed for each in again.values())


async def test_job_that_waits_for_the_rest_says_for_whose(tmp_path: Path) -> None:
    late = anyio.Event()

    async def handler(job: Job, context: JobContext) -> int:
        if job.key == "b":
            await late.wait()
        return await buy(context, job.parameters)

    def see(event: Event) -> None:
        if isinstance(event, WaitStarted | WaitEnded):
            waits.append((type(event), event.key, str(event.wait)))
            late.set()

    waits: list[tuple[type, str, str]] = []
    outcomes = await run(tmp_path, pair(8, 1), handler, at=lambda session: session.observe(see))
    assert (outcomes["a"].value, outcomes["b"].value) == (8, 1)
    assert waits == [(WaitStarted, "a", "what b leaves"), (WaitEnded, "a", "what b leaves")]


async def test_stopped_run_goes_on_with_the_rest(tmp_path: Path) -> None:
    async def stopping(job: Job, context: JobContext) -> int:
        if job.key == "b":
            await anyio.sleep_forever()
        return await buy(context, job.parameters)

    def stop(session: Session) -> None:
        session.observe(lambda event: session.drain() if isinstance(event, WaitStarted) else None)

    outcomes = await run(tmp_path, pair(8, 1), stopping, at=stop)
    assert {each.status for each in outcomes.values()} == {Status.CANCELLED}
    outcomes = await run(tmp_path, pair(8, 1))
    assert (outcomes["a"].value, outcomes["b"].value) == (8, 1)
    lines = read_journal(tmp_path / "journal.jsonl")
    assert len([line for line in lines if line["event"] == "reserved"]) == 9


async def test_more_money_continues_both(tmp_path: Path) -> None:
    await run(tmp_path, pair(9, 2))
    first = await run(tmp_path, pair(9, 2))
    assert (first["a"].value, first["b"].value) == (8, 2)
    more = pair(9, 2, BudgetLimits(usd=Decimal(6)), BudgetLimits(usd=Decimal(12)))
    outcomes = await run(tmp_path, more)
    assert (outcomes["a"].value, outcomes["a"].status) == (9, Status.DONE)


async def test_job_alone_has_its_part(tmp_path: Path) -> None:
    outcomes = await run(tmp_path, pair(9, 9)[:1])
    assert (outcomes["a"].value, outcomes["a"].status) == (5, Status.BUDGET_EXCEEDED)


async def test_time_is_left_too(tmp_path: Path) -> None:
    """The first job needs more than its second; the other, which has ended at once, leaves its own."""
    limits, total = BudgetLimits(working_s=0.5), BudgetLimits(working_s=30.5)
    one, other = pair(None, None, limits, total)
    generous = Job(
        "b", "buy", other.budget, "1", limits=BudgetLimits(working_s=30), leaves_to="a", needs=("c",)
    )
    turns: list[str] = []

    async def handler(job: Job, context: JobContext) -> int:
        turns.append(job.key)
        if job.key == "c":
            await anyio.sleep(0.7)
            return 0
        if job.key == "b":
            return 0
        with context.budget.deadline() as scope:
            await anyio.sleep(1)
        if scope.cancelled_caught:
            context.end_early(DeadlineExceeded("too late"))
        return len(turns)

    outcomes = await run(tmp_path, [Job("c", "buy", (), "1"), one, generous], handler)
    assert outcomes["a"].status is Status.DONE
    assert turns.count("a") == 2


async def test_both_lack_what_the_other_has(tmp_path: Path) -> None:
    """One has no more money and much time, the other no more time and much money: both continue and end."""
    limits, total = BudgetLimits(usd=Decimal(5), working_s=1), BudgetLimits(usd=Decimal(10), working_s=60)

    async def handler(job: Job, context: JobContext) -> int:
        if job.key == "a":
            return await buy(context, 7)
        with context.budget.deadline() as scope:
            await anyio.sleep(1.5)
        if scope.cancelled_caught:
            context.end_early(DeadlineExceeded("too late"))
        return 1

    outcomes = await run(tmp_path, pair(None, None, limits, total), handler)
    assert (outcomes["a"].value, outcomes["a"].status) == (7, Status.DONE)
    assert outcomes["b"].value == 1


@pytest.mark.parametrize(
    ("part", "ends", "need"),
    [
        ("0.6", {Status.DONE, Status.BUDGET_EXCEEDED}, Status.DONE),  # both parts are enough for one job
        ("0.4", {Status.BUDGET_EXCEEDED}, Status.SKIPPED),  # nothing is prepared for jobs that can never pay
    ],
)
async def test_part_that_is_too_small_for_a_first_call(
    tmp_path: Path, part: str, ends: set[Status], need: Status
) -> None:
    limits, total = BudgetLimits(usd=Decimal(part)), BudgetLimits(usd=2 * Decimal(part))
    jobs = [replace(job, min_cost=Cost(Decimal(1)), needs=("c",)) for job in pair(1, 1, limits, total)]
    prepare = Job("c", "buy", (), "1", parameters=0, prerequisite_only=True)
    outcomes = await run(tmp_path, [prepare, *jobs])
    assert {outcomes[key].status for key in "ab"} == ends
    assert outcomes["c"].status is need
