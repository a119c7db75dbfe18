"""What a later session takes from earlier ones: results, effects, money and time."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import BudgetExceeded, Cause, DeadlineExceeded, JournalError, ModelUnavailable
from codetaste.orchestration.budget.cost import BudgetLimits, Cost
from codetaste.orchestration.job import JobContext, Outcome, Status
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.retry import RetryRule
from codetaste.orchestration.session import open_session
from support.orchestration.closure_jobs import closure_job
from support.orchestration.journal_lines import read_journal

pytestmark = pytest.mark.anyio
Run = Callable[[JobContext], Awaitable[Json]]


def usd(amount: str) -> Cost:
    return Cost(Decimal(amount))


class Sessions:
    """Sessions in one run directory; ``happened`` lists what the last one really did."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.happened: list[str] = []

    async def run(
        self,
        jobs: dict[str, Run],
        *,
        limits: BudgetLimits | None = None,
        node: BudgetLimits | None = None,
        **options: Any,
    ) -> dict[str, Outcome]:
        self.happened.clear()
        needs = options.pop("needs", {})
        fingerprints = options.pop("fingerprints", {})
        async with open_session(self.directory, limits, **options) as session:
            flow = session.budget.child("flow", node or BudgetLimits())
            outcomes = await session.run(
                closure_job(session, key, run, flow, fingerprints.get(key, "1"), needs=needs.get(key, ()))
                for key, run in jobs.items()
            )
            self.spent = session.budget.snapshot()
        return outcomes

    def returning(self, value: Json) -> Run:
        async def run(context: JobContext) -> Json:
            self.happened.append(context.key)
            return value

        return run

    async def turn(self, context: JobContext, number: int, cost: str = "0.1") -> Json:
        name = f"turn-{number}"
        if context.is_recorded(name):
            return await context.effect(name, self.never)
        async with await context.start_call(name, await context.hold(usd("0.5"))) as paid:
            self.happened.append(paid.call)
            await paid.settle(usd(cost), {"turn": number})
        return {"turn": number}

    async def never(self) -> Json:
        raise AssertionError("done twice")


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "run")


async def test_finished_job_is_not_repeated_and_its_value_is_used(sessions: Sessions) -> None:
    async def use(context: JobContext) -> Json:
        sessions.happened.append("use")
        return [context.needs["a"]]

    needs = {"b": ("a",)}
    await sessions.run({"a": sessions.returning({"x": [1]})})
    outcomes = await sessions.run({"a": sessions.returning(None), "b": use}, needs=needs)
    assert sessions.happened == ["use"]
    assert (outcomes["a"].resumed, outcomes["b"].value) == (True, [{"x": [1]}])
    outcomes = await sessions.run({"a": sessions.returning(None), "b": use}, needs=needs)
    assert sessions.happened == []
    assert outcomes["b"].value == [{"x": [1]}]


async def test_changed_fingerprint_repeats_the_job_and_its_dependents(sessions: Sessions) -> None:
    jobs = {"a": sessions.returning(1), "b": sessions.returning(2), "c": sessions.returning(3)}
    needs = {"b": ("a",)}
    await sessions.run(jobs, needs=needs)
    jobs["a"] = sessions.returning("new")
    await sessions.run(jobs, needs=needs, fingerprints={"a": "2"})
    assert sessions.happened == ["a", "b"]
    await sessions.run(jobs, needs=needs)
    assert sessions.happened == []  # the earlier result is recorded with this fingerprint


async def test_dependents_are_reused_if_result_is_unchanged(sessions: Sessions) -> None:
    jobs, needs = {"a": sessions.returning(1), "b": sessions.returning(2)}, {"b": ("a",)}
    await sessions.run(jobs, needs=needs)
    await sessions.run(jobs, needs=needs, fingerprints={"a": "2"})
    assert sessions.happened == ["a"]


async def test_failed_job_is_repeated_and_replays_its_effects(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        turns = [await sessions.turn(context, number) for number in range(2)]
        if context.attempt == 1:
            raise ZeroDivisionError
        return [*turns, await sessions.turn(context, 2)]

    await sessions.run({"a": run})
    assert sessions.happened == ["a/turn-0#1", "a/turn-1#1"]
    outcomes = await sessions.run({"a": run})
    assert sessions.happened == ["a/turn-2#1"]
    assert outcomes["a"].value == [{"turn": 0}, {"turn": 1}, {"turn": 2}]
    assert (sessions.spent.settled, outcomes["a"].attempts) == (usd("0.3"), 2)


async def test_retry_in_the_same_session_replays_effects(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        await sessions.turn(context, 0)
        if context.attempt < 3:
            raise ModelUnavailable("overloaded")
        return None

    await sessions.run({"a": run}, retries=dict.fromkeys(Cause, RetryRule(3, 0.0)))
    assert sessions.happened == ["a/turn-0#1"]
    assert sessions.spent.settled == usd("0.1")


async def test_rerun_repeats_calls_and_keeps_earlier_costs(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        return await sessions.turn(context, 0)

    await sessions.run({"a": run, "b": run})
    outcomes = await sessions.run({"a": run, "b": run}, rerun=frozenset({"a"}))
    assert sessions.happened == ["a/turn-0#2"]
    assert (outcomes["a"].resumed, outcomes["b"].resumed) == (False, True)
    assert sessions.spent.settled == usd("0.3")
    await sessions.run({"a": run, "b": run}, rerun="all")
    assert sessions.happened == ["a/turn-0#3", "b/turn-0#2"]
    await sessions.run({"a": run, "b": run})
    assert sessions.happened == []


async def test_rerun_discards_unfinished_records_but_not_unknown_costs(sessions: Sessions) -> None:
    async def lose_call(context: JobContext) -> Json:
        await sessions.turn(context, 0)
        async with await context.start_call("turn-1", await context.hold(usd("0.5"))):
            raise ModelUnavailable("lost")

    async def run(context: JobContext) -> Json:
        return [context.is_recorded("turn-0"), len(context.unsettled_calls("turn-1"))]

    await sessions.run({"a": lose_call}, retries={})
    outcomes = await sessions.run({"a": run}, rerun="all")
    assert outcomes["a"].value == [False, 0]
    assert (sessions.spent.settled, sessions.spent.unknown) == (usd("0.1"), usd("0.5"))


async def test_interrupted_rerun_resumes_without_buying_twice(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        return [await sessions.turn(context, 0), await sessions.turn(context, 1)]

    async def stop(context: JobContext) -> Json:
        await sessions.turn(context, 0)
        stopping[0].drain()
        await anyio.sleep_forever()
        return None

    stopping: list[Any] = []
    await sessions.run({"a": run})
    async with open_session(sessions.directory, rerun="all") as session:
        stopping.append(session)
        outcomes = await session.run([closure_job(session, "a", stop, session.budget.child("flow"), "1")])
    assert outcomes["a"].status is Status.CANCELLED
    await sessions.run({"a": run}, rerun="all")
    assert sessions.happened == ["a/turn-1#2"]


async def test_rerun_without_budget_or_time_keeps_the_result(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        return await sessions.turn(context, 0)

    await sessions.run({"a": run})
    for limits in (BudgetLimits(usd=Decimal("0.1")), BudgetLimits(wall_s=0.0)):
        outcomes = await sessions.run({"a": run}, rerun="all", limits=limits)
        assert (outcomes["a"].status, outcomes["a"].resumed, sessions.happened) == (Status.DONE, True, [])


async def test_abandoned_call_has_unknown_cost_until_settled(sessions: Sessions) -> None:
    async def abandon(context: JobContext) -> Json:
        async with await context.start_call(
            "turn-0", await context.hold(usd("0.5")), note={"model": "sonnet"}
        ):
            raise ModelUnavailable("lost")

    async def settle(context: JobContext) -> Json:
        (paid,) = context.unsettled_calls("turn-0")
        assert (paid.call, paid.granted, paid.note) == ("a/turn-0#1", usd("0.5"), {"model": "sonnet"})
        await paid.settle(usd("0.2"), "found")
        assert context.unsettled_calls("turn-0") == ()
        return await context.effect("turn-0", sessions.never)

    await sessions.run({"a": abandon}, retries={})
    assert sessions.spent.unknown == usd("0.5")
    outcomes = await sessions.run({"a": settle})
    assert outcomes["a"].value == "found"
    assert (sessions.spent.unknown, sessions.spent.settled) == (usd("0"), usd("0.2"))
    await sessions.run({})
    assert (sessions.spent.unknown, sessions.spent.settled) == (usd("0"), usd("0.2"))


async def test_retry_finds_the_abandoned_call_of_the_previous_attempt(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        if unsettled := context.unsettled_calls("turn-0"):
            await unsettled[0].settle(usd("0.3"), "found")
            return await context.effect("turn-0", sessions.never)
        async with await context.start_call("turn-0", await context.hold(usd("0.5"))) as paid:
            assert context.unsettled_calls("turn-0") == (), paid
            raise ModelUnavailable("lost")

    outcomes = await sessions.run({"a": run}, retries=dict.fromkeys(Cause, RetryRule(3, 0.0)))
    assert outcomes["a"].value == "found"
    assert (sessions.spent.unknown, sessions.spent.settled) == (usd("0"), usd("0.3"))


async def test_released_call_costs_nothing(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        async with await context.start_call("turn-0", await context.hold(usd("0.5"))) as paid:
            paid.release()
        raise ValueError

    for _ in range(2):
        await sessions.run({"a": run})
        assert sessions.spent.spent == usd("0")


async def test_reservation_cancelled_before_durable_costs_nothing(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await context.start_call("turn-0", await context.hold(usd("0.5")))
        assert scope.cancelled_caught
        return context.is_recorded("turn-0") or len(context.unsettled_calls("turn-0"))

    for _ in range(2):
        outcomes = await sessions.run({"a": run})
        assert (outcomes["a"].value, sessions.spent.spent, sessions.spent.reserved) == (0, usd("0"), usd("0"))


async def test_unwritable_reservation_costs_nothing(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        await context.start_call("turn-0", await context.hold(usd("0.5")), note=object())  # type: ignore[arg-type]
        return None

    for _ in range(2):
        outcomes = await sessions.run({"a": run})
        assert "not JSON serializable" in outcomes["a"].error
        assert (sessions.spent.spent, sessions.spent.reserved) == (usd("0"), usd("0"))


async def test_budget_of_a_run_spans_its_sessions(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        for number in range(9):
            await sessions.turn(context, number, "0.4")
        return None

    one = BudgetLimits(usd=Decimal(1))
    await sessions.run({"a": run}, limits=one)
    assert sessions.spent.settled == usd("0.8")
    outcomes = await sessions.run({"a": run}, limits=one)
    assert (sessions.happened, outcomes["a"].status) == ([], Status.BUDGET_EXCEEDED)
    await sessions.run({"a": run}, limits=BudgetLimits(usd=Decimal(5)))
    assert sessions.happened[0] == "a/turn-2#1"
    assert sessions.spent.settled == usd("3.6")


async def test_early_end_is_final_until_its_limit_is_raised(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        sessions.happened.append("run")
        try:
            for number in range(9):
                await sessions.turn(context, number, "0.4")
        except BudgetExceeded as error:
            context.end_early(error)
        return "partial"

    node = BudgetLimits(usd=Decimal(1), wall_s=50)
    await sessions.run({"a": run}, node=node)
    outcomes = await sessions.run({"a": run}, node=node)
    assert (sessions.happened, outcomes["a"].value, outcomes["a"].resumed) == ([], "partial", True)
    await sessions.run({"a": run}, node=BudgetLimits(usd=Decimal(1), wall_s=100))
    assert sessions.happened == []
    await sessions.run({"a": run}, node=BudgetLimits(usd=Decimal("1.4"), wall_s=50))
    assert sessions.happened == ["run", "a/turn-2#1"]
    outcomes = await sessions.run({"a": run}, node=BudgetLimits(wall_s=50))
    assert outcomes["a"].status is Status.DONE


async def test_time_used_by_an_earlier_session_counts(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        with context.budget.deadline() as scope:
            await anyio.sleep(30)
        context.end_early(DeadlineExceeded("too long"))
        assert scope.cancelled_caught
        raise ValueError("and no partial result")

    async def rest(_: JobContext) -> Json:
        return None

    node = BudgetLimits(wall_s=0.2)
    await sessions.run({"a": run}, node=node)
    outcomes = await sessions.run({"a": rest}, node=node)
    assert (outcomes["a"].status, outcomes["a"].error) == (Status.TIMEOUT, "not started: no time is left")
    outcomes = await sessions.run({"a": rest}, node=BudgetLimits(wall_s=500))
    assert outcomes["a"].status is Status.DONE


async def test_effect_result_is_immutable_and_equal_to_replay(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        async def do() -> Any:
            return {"pair": (1, 2), 3: "three"}

        first = await context.effect("e", do)
        assert first == {"pair": [1, 2], "3": "three"}
        assert isinstance(first, dict)
        first["pair"] = "changed"
        return await context.effect("e", sessions.never)

    outcomes = await sessions.run({"a": run})
    assert outcomes["a"].value == {"pair": [1, 2], "3": "three"}


async def test_running_effect_cannot_start_again(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(context.effect, "e", slow)
        return None

    async def slow() -> Json:
        await anyio.sleep(1)
        return None

    outcomes = await sessions.run({"a": run})
    assert "effect e is already under way" in outcomes["a"].error


async def test_long_texts_are_loaded_in_a_later_session(sessions: Sessions) -> None:
    async def run(context: JobContext) -> Json:
        return await context.effect("reply", lambda: context.store_text("a long reply"))

    async def read(context: JobContext) -> Json:
        digest = context.needs["a"]
        assert isinstance(digest, str)
        return await context.load_text(digest)

    await sessions.run({"a": run})
    outcomes = await sessions.run({"a": run, "b": read}, needs={"b": ("a",)})
    assert outcomes["b"].value == "a long reply"


async def test_history_has_states_errors_costs_and_limits(sessions: Sessions) -> None:
    async def pay(context: JobContext) -> Json:
        await sessions.turn(context, 0)
        async with await context.start_call("turn-1", await context.hold(usd("0.5"))):
            raise ModelUnavailable("lost")

    one = BudgetLimits(usd=Decimal(3), wall_s=9.5)
    await sessions.run(
        {"a": pay, "b": sessions.returning(1), "c": pay}, needs={"c": ("a",)}, retries={}, limits=one
    )
    history = History(read_journal(sessions.directory / "journal.jsonl"))
    assert {key: job.state for key, job in history.jobs.items()} == {
        "a": "failed",
        "b": "done",
        "c": "skipped",
    }
    assert history.jobs["a"].error == "lost"
    prior = history.prior_charges()["flow", "a"]
    assert (prior.settled, prior.unknown) == (usd("0.1"), usd("0.5"))
    assert history.jobs["c"].needs == ("a",)
    assert history.limits == BudgetLimits(usd=Decimal(3), wall_s=9.5)


async def test_next_session_shows_live_jobs_as_interrupted(sessions: Sessions) -> None:
    async def slow(_: JobContext) -> Json:
        scope.cancel()
        await anyio.sleep_forever()
        return None

    with anyio.CancelScope() as scope:
        await sessions.run({"a": slow})
    async with open_session(sessions.directory) as session:
        assert session.history.jobs["a"].state == "interrupted"


@pytest.mark.parametrize(
    "line",
    [
        {"event": "ended", "key": "a"},
        {"event": "reserved", "call": "a/t#1", "key": "a", "fingerprint": "", "effect": "t", "path": []}
        | {"usd": "much", "tokens": 0},
        {"event": "job", "key": ["a"]},
        {"event": "settled", "call": "never reserved", "usd": "1", "tokens": 1},
        {"event": "clocks", "nodes": 7},
    ],
)
async def test_invalid_journal_line_is_an_error_with_its_event(
    sessions: Sessions, line: dict[str, Any]
) -> None:
    await sessions.run({"a": sessions.returning(1)})
    path = sessions.directory / "journal.jsonl"
    path.write_text(path.read_text() + json.dumps(line) + "\n" + json.dumps({"event": "new kind"}) + "\n")
    with pytest.raises(JournalError, match=f"journal\\.jsonl.*: a damaged '{line['event']}' line"):
        await sessions.run({})
    with pytest.raises(JournalError, match="a damaged"):
        History(read_journal(path))
