"""Budgets: reservations that are granted, wait or are refused, and costs that stay charged."""

from __future__ import annotations

from decimal import Decimal

import anyio
import pytest

from codetaste.errors import BudgetExceeded, ConfigError
from codetaste.orchestration.budget.budget import Budget
from codetaste.orchestration.budget.cost import BudgetLimits, Cost, PriorCharges
from codetaste.orchestration.budget.reservation import Reservation

pytestmark = pytest.mark.anyio


def usd(amount: str) -> Cost:
    return Cost(Decimal(amount))


def limit(amount: str) -> BudgetLimits:
    return BudgetLimits(usd=Decimal(amount))


async def test_reservation_is_committed_and_settled_at_every_ancestor() -> None:
    root = Budget.root(limit("10"))
    job = root.child("flow").child("instance").child("job")
    reservation = await job.reserve(usd("3"))
    assert [node.snapshot().reserved for node in job.chain] == [usd("3")] * 4
    reservation.settle(usd("1.25"))
    assert [node.snapshot().settled for node in job.chain] == [usd("1.25")] * 4
    assert [node.snapshot().reserved for node in job.chain] == [usd("0")] * 4


async def test_refusal_names_the_tightest_ancestor_and_what_is_left() -> None:
    root = Budget.root(limit("100"))
    flow = root.child("discover", limit("2"))
    (await flow.child("koa").reserve(usd("1.5"))).settle(usd("1.5"))
    message = r"budget of discover: at least \$1 requested, \$0\.5 left of \$2"
    with pytest.raises(BudgetExceeded, match=message):
        await flow.child("gqlgen").reserve(usd("1"))


async def test_partial_amount_is_granted_if_no_more_can_ever_fit() -> None:
    root = Budget.root(limit("1"))
    assert (await root.reserve(usd("5"), usd("0.5"))).granted == usd("1")


async def test_request_waits_for_reservations_in_flight_instead_of_taking_less() -> None:
    root = Budget.root(limit("1"))
    first = await root.reserve(usd("0.8"))
    reservations: list[Reservation] = []

    async def reserve() -> None:
        reservations.append(await root.reserve(usd("0.9"), usd("0.1")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reserve)
        await anyio.wait_all_tasks_blocked()
        assert not reservations
        first.settle(usd("0.2"))
    assert reservations[0].granted == usd("0.8")


async def test_waiting_request_is_refused_once_the_money_is_spent() -> None:
    root = Budget.root(limit("1"))
    first = await root.reserve(usd("0.8"))

    async def reserve() -> None:
        with pytest.raises(BudgetExceeded):
            await root.reserve(usd("0.5"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reserve)
        await anyio.wait_all_tasks_blocked()
        first.settle(usd("0.8"))


async def test_reservations_are_served_in_order_without_starvation() -> None:
    root = Budget.root(limit("10"))
    reserved = [await root.reserve(usd("5")) for _ in range(2)]
    order: list[str] = []

    async def reserve(name: str, amount: str) -> None:
        reservation = await root.reserve(usd(amount))
        order.append(name)
        await anyio.wait_all_tasks_blocked()
        reservation.release()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reserve, "big", "8")
        await anyio.wait_all_tasks_blocked()
        for number in range(5):
            tasks.start_soon(reserve, f"small {number}", "3")
        await anyio.wait_all_tasks_blocked()
        reserved[0].release()
        await anyio.wait_all_tasks_blocked()
        assert order == []  # 5 are free, but the small requests must not take what the big one waits for
        reserved[1].release()
    assert order[0] == "big"


async def test_request_without_competition_is_served_before_waiting_ones() -> None:
    root = Budget.root(limit("100"))
    tight, wide = root.child("tight", limit("1")), root.child("wide")
    reserved = await tight.reserve(usd("1"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tight.reserve, usd("1"))
        await anyio.wait_all_tasks_blocked()
        assert (await wide.reserve(usd("50"))).granted == usd("50")
        reserved.release()


async def test_cancelled_request_is_removed_and_the_next_one_is_granted() -> None:
    root = Budget.root(limit("10"))
    reserved = await root.reserve(usd("5"))
    reservations: list[Reservation] = []

    async def reserve() -> None:
        reservations.append(await root.reserve(usd("4")))

    async def reserve_within(scope: anyio.CancelScope) -> None:
        with scope:
            await root.reserve(usd("9"))

    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()
        tasks.start_soon(reserve_within, scope)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(reserve)
        await anyio.wait_all_tasks_blocked()
        assert not reservations
        scope.cancel()
    assert reservations[0].granted == usd("4")
    reserved.release()
    reservations[0].release()
    assert root.snapshot().reserved == usd("0")


async def test_grant_to_a_cancelled_task_is_released() -> None:
    root = Budget.root(limit("1"))
    reserved = await root.reserve(usd("1"))

    async def reserve() -> None:
        (await root.reserve(usd("1"))).release()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reserve)
            await anyio.wait_all_tasks_blocked()
            reserved.release()  # granted here, and cancelled before it runs
            scope.cancel()
    assert root.snapshot().reserved == usd("0")


async def test_call_above_its_reservation_is_charged_in_full() -> None:
    root = Budget.root(limit("1"))
    (await root.reserve(usd("0.5"))).settle(usd("3"))
    assert root.snapshot().settled == usd("3")
    with pytest.raises(BudgetExceeded):
        await root.reserve(usd("0.01"))


async def test_unknown_cost_stays_charged_until_settled() -> None:
    root = Budget.root(limit("1"))
    reservation = await root.reserve(usd("0.6"))
    reservation.mark_unknown()
    reservation.release()
    assert root.snapshot().unknown == usd("0.6")
    with pytest.raises(BudgetExceeded):
        await root.reserve(usd("0.5"))
    reservation.settle(usd("0.1"))
    reservation.settle(usd("0.0"))
    assert (root.snapshot().unknown, root.snapshot().settled) == (usd("0"), usd("0.1"))


async def test_only_the_first_settlement_of_a_call_counts() -> None:
    root = Budget.root(limit("1"))
    reservation = await root.reserve(usd("0.6"))
    reservation.settle(usd("0.5"))
    reservation.settle(usd("0.1"))
    reservation.mark_unknown()
    reservation.release()
    assert root.snapshot().spent == usd("0.5")


async def test_tokens_are_limited_like_dollars() -> None:
    root = Budget.root(BudgetLimits(tokens=100))
    assert (await root.reserve(Cost(Decimal(7), 150), Cost(Decimal(7), 20))).granted == Cost(Decimal(7), 100)
    job = Budget.root(BudgetLimits(tokens=100)).child("a")
    with pytest.raises(BudgetExceeded, match="at least 150 tokens requested, 100 left of 100"):
        await job.reserve(Cost(tokens=150))


async def test_free_call_fits_into_an_empty_budget() -> None:
    root = Budget.root(limit("0"))
    assert (await root.reserve(Cost(tokens=5))).granted == Cost(tokens=5)


async def test_charges_of_earlier_sessions_count_at_every_ancestor() -> None:
    prior: dict[tuple[str, ...], PriorCharges] = {
        ("flow", "a"): PriorCharges(settled=usd("1"), unknown=usd("0.5"), wall_s=3.0, working_s=2.0)
    }
    root = Budget.root(limit("2"), prior=prior)
    assert root.snapshot().spent == usd("1.5")
    child = root.child("flow").child("a")
    assert (child.snapshot().settled, child.snapshot().wall_s, child.snapshot().waited_s) == (usd("1"), 3, 1)
    with pytest.raises(BudgetExceeded):
        await root.child("other").reserve(usd("1"))


async def test_a_node_has_one_set_of_limits() -> None:
    root = Budget.root()
    root.child("a").child("b")
    assert root.child("a", limit("1")) is root.child("a")
    assert root.child("a").limits == limit("1")
    with pytest.raises(ConfigError, match="budget a: two different limits"):
        root.child("a", limit("2"))


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity"])
async def test_invalid_amount_is_refused(amount: str) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        await Budget.root().reserve(usd(amount))


async def test_small_amounts_add_up_exactly() -> None:
    root = Budget.root(limit("0.003"))
    for _ in range(3):
        (await root.reserve(usd("0.001"))).settle(usd("0.001"))
    assert root.describe_exhausted() == "budget of the run: $0.003 of $0.003 is used up"


@pytest.mark.anyio
async def test_risks_of_several_calls_must_fit_beside_what_is_reserved() -> None:
    root = Budget.root(BudgetLimits(usd=Decimal(10)))
    alone = root.child("tight", BudgetLimits(usd=Decimal(2)))
    first = await alone.reserve(usd("1"), risk=usd("5"))
    assert alone.try_reserve(usd("0.1"), risk=usd("0.1")) is None
    assert alone.try_reserve(usd("0.1")) is not None
    assert root.try_reserve(usd("1"), risk=usd("4")) is None
    second = root.try_reserve(usd("1"), risk=usd("2"))
    assert second is not None
    assert root.try_reserve(usd("2")) is None
    second.mark_unknown()
    first.settle(usd("0.1"))
    third = await alone.reserve(usd("1"), risk=usd("100"))
    third.release()
    assert (root.risk, root.calls_at_risk, alone.calls_at_risk) == (Cost(), 0, 0)
