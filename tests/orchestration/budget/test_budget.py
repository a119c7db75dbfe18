"""Money: what is granted, what waits, what is refused, and what stays charged."""

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


async def test_a_reservation_is_committed_at_every_ancestor_and_settled_there() -> None:
    root = Budget.root(limit("10"))
    job = root.child("flow").child("instance").child("job")
    reservation = await job.reserve(usd("3"))
    assert [node.snapshot().reserved for node in job.chain] == [usd("3")] * 4
    reservation.settle(usd("1.25"))
    assert [node.snapshot().settled for node in job.chain] == [usd("1.25")] * 4
    assert [node.snapshot().reserved for node in job.chain] == [usd("0")] * 4


async def test_the_tightest_ancestor_decides_and_is_named_with_what_is_left() -> None:
    root = Budget.root(limit("100"))
    flow = root.child("discover", limit("2"))
    (await flow.child("koa").reserve(usd("1.5"))).settle(usd("1.5"))
    with pytest.raises(BudgetExceeded, match=r"budget of discover: at least \$1 requested, \$0\.5 left of \$2"):
        await flow.child("gqlgen").reserve(usd("1"))


async def test_less_than_wanted_is_granted_when_no_more_will_ever_fit() -> None:
    root = Budget.root(limit("1"))
    assert (await root.reserve(usd("5"), usd("0.5"))).granted == usd("1")


async def test_a_request_waits_for_others_in_flight_instead_of_taking_less() -> None:
    root = Budget.root(limit("1"))
    first = await root.reserve(usd("0.8"))
    got: list[Reservation] = []

    async def ask() -> None:
        got.append(await root.reserve(usd("0.9"), usd("0.1")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert not got
        first.settle(usd("0.2"))
    assert got[0].granted == usd("0.8")


async def test_a_request_is_refused_as_soon_as_what_it_waited_for_was_spent() -> None:
    root = Budget.root(limit("1"))
    first = await root.reserve(usd("0.8"))

    async def ask() -> None:
        with pytest.raises(BudgetExceeded):
            await root.reserve(usd("0.5"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        first.settle(usd("0.8"))


async def test_reservations_are_served_in_order_without_starvation() -> None:
    root = Budget.root(limit("10"))
    held = [await root.reserve(usd("5")) for _ in range(2)]
    order: list[str] = []

    async def ask(name: str, amount: str) -> None:
        reservation = await root.reserve(usd(amount))
        order.append(name)
        await anyio.wait_all_tasks_blocked()
        reservation.release()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "big", "8")
        await anyio.wait_all_tasks_blocked()
        for number in range(5):
            tasks.start_soon(ask, f"small {number}", "3")
        await anyio.wait_all_tasks_blocked()
        held[0].release()
        await anyio.wait_all_tasks_blocked()
        assert order == []  # 5 are free, yet the small ones must not take what the big one waits for
        held[1].release()
    assert order[0] == "big"


async def test_a_request_that_competes_for_nothing_passes_those_that_wait() -> None:
    root = Budget.root(limit("100"))
    tight, wide = root.child("tight", limit("1")), root.child("wide")
    held = await tight.reserve(usd("1"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tight.reserve, usd("1"))
        await anyio.wait_all_tasks_blocked()
        assert (await wide.reserve(usd("50"))).granted == usd("50")
        held.release()


async def test_a_cancelled_waiter_leaves_no_trace_and_makes_room_for_the_next() -> None:
    root = Budget.root(limit("10"))
    held = await root.reserve(usd("5"))
    got: list[Reservation] = []

    async def ask() -> None:
        got.append(await root.reserve(usd("4")))

    async def ask_within(scope: anyio.CancelScope) -> None:
        with scope:
            await root.reserve(usd("9"))

    async with anyio.create_task_group() as tasks:
        impatient = anyio.CancelScope()
        tasks.start_soon(ask_within, impatient)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert not got
        impatient.cancel()
    assert got[0].granted == usd("4")
    held.release()
    got[0].release()
    assert root.snapshot().reserved == usd("0")


async def test_a_grant_that_meets_a_cancellation_is_given_back() -> None:
    root = Budget.root(limit("1"))
    held = await root.reserve(usd("1"))

    async def ask() -> None:
        (await root.reserve(usd("1"))).release()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            held.release()  # granted here, and cancelled before it runs
            scope.cancel()
    assert root.snapshot().reserved == usd("0")


async def test_a_call_that_cost_more_than_reserved_is_charged_in_full() -> None:
    root = Budget.root(limit("1"))
    (await root.reserve(usd("0.5"))).settle(usd("3"))
    assert root.snapshot().settled == usd("3")
    with pytest.raises(BudgetExceeded):
        await root.reserve(usd("0.01"))


async def test_unknown_money_stays_charged_until_it_is_settled_later() -> None:
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


async def test_only_the_first_word_on_a_call_counts() -> None:
    root = Budget.root(limit("1"))
    reservation = await root.reserve(usd("0.6"))
    reservation.settle(usd("0.5"))
    reservation.settle(usd("0.1"))
    reservation.mark_unknown()
    reservation.release()
    assert root.snapshot().spent == usd("0.5")


async def test_tokens_are_limited_as_dollars_are() -> None:
    root = Budget.root(BudgetLimits(tokens=100))
    assert (await root.reserve(Cost(Decimal(7), 150), Cost(Decimal(7), 20))).granted == Cost(Decimal(7), 100)
    job = Budget.root(BudgetLimits(tokens=100)).child("a")
    with pytest.raises(BudgetExceeded, match="at least 150 tokens requested, 100 left of 100"):
        await job.reserve(Cost(tokens=150))


async def test_a_call_that_costs_nothing_fits_into_an_empty_budget() -> None:
    root = Budget.root(limit("0"))
    assert (await root.reserve(Cost(tokens=5))).granted == Cost(tokens=5)


async def test_what_earlier_sessions_charged_counts_at_every_ancestor() -> None:
    prior: dict[tuple[str, ...], PriorCharges] = {
        ("flow", "a"): PriorCharges(settled=usd("1"), unknown=usd("0.5"), wall_s=3.0, working_s=2.0)
    }
    root = Budget.root(limit("2"), prior=prior)
    assert root.snapshot().spent == usd("1.5")
    again = root.child("flow").child("a")
    assert (again.snapshot().settled, again.snapshot().wall_s, again.snapshot().waited_s) == (usd("1"), 3, 1)
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
async def test_an_amount_that_is_no_money_is_refused(amount: str) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        await Budget.root().reserve(usd(amount))


async def test_small_amounts_add_up_exactly() -> None:
    root = Budget.root(limit("0.003"))
    for _ in range(3):
        (await root.reserve(usd("0.001"))).settle(usd("0.001"))
    assert root.describe_exhausted() == "budget of the run: $0.003 of $0.003 is used up"
