"""Random interleavings of calls with a provider that bills independently of the budget."""

from __future__ import annotations

import random
from collections import defaultdict
from decimal import Decimal

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.errors import BudgetExceeded
from codetaste.orchestration.budget.budget import Budget
from codetaste.orchestration.budget.cost import BudgetLimits, Cost, PriorCharges

Path = tuple[str, ...]
LIMITS: dict[Path, int | None] = {(): 1000, ("f",): 700, ("f", "a"): 300, ("f", "b"): None, ("g",): 500}


class Provider:
    """A provider that bills any amount up to the cap of a call, even if the caller is cancelled."""

    def __init__(self) -> None:
        self.bills: dict[Path, int] = defaultdict(int)
        self.caller_was_killed = False

    def bill(self, path: Path, cents: int) -> None:
        for depth in range(len(path) + 1):
            self.bills[path[:depth]] += cents
        for at, most in LIMITS.items():
            assert most is None or self.bills[at] <= most, f"{at} billed {self.bills[at]} of {most}"


def cents(cost: Cost) -> int:
    assert cost.usd == int(cost.usd)
    return int(cost.usd)


def build(prior: dict[Path, PriorCharges]) -> dict[Path, Budget]:
    def limits(path: Path) -> BudgetLimits:
        most = LIMITS[path]
        return BudgetLimits(usd=None if most is None else Decimal(most))

    root = Budget.root(limits(()), prior=prior)
    nodes: dict[Path, Budget] = {(): root}
    for path in sorted(LIMITS, key=len)[1:]:
        nodes[path] = nodes[path[:-1]].child(path[-1], limits(path))
    return nodes


async def call(
    node: Budget, provider: Provider, rng: random.Random, billed_later: list[tuple[Path, int]]
) -> None:
    """Make one call with a random fate; ``billed_later`` collects what is billed without an answer."""
    wanted = rng.randint(1, 400)
    least = rng.choice([None, rng.randint(1, wanted)])
    with anyio.CancelScope() as scope:
        if rng.random() < 0.2:
            scope.deadline = anyio.current_time() + rng.random() * 0.002
        try:
            reservation = await node.reserve(
                Cost(Decimal(wanted)), None if least is None else Cost(Decimal(least))
            )
        except BudgetExceeded:
            return
        if provider.caller_was_killed:
            return
        granted = cents(reservation.granted)
        assert (least or wanted) <= granted <= wanted
        cost = rng.choice([granted, rng.randint(0, granted), 0])
        fate = rng.random()
        if fate < 0.1:
            reservation.release()
            return
        in_flight = (node.path, cost)
        billed_later.append(in_flight)
        try:
            for _ in range(rng.randint(0, 4)):
                await anyio.lowlevel.checkpoint()
        except BaseException:
            reservation.mark_unknown()
            raise
        if fate < 0.3:  # sent, but the connection was lost
            reservation.mark_unknown()
            return
        billed_later.remove(in_flight)
        provider.bill(node.path, cost)
        reservation.settle(Cost(Decimal(cost)))


def check(nodes: dict[Path, Budget], provider: Provider) -> None:
    for path, node in nodes.items():
        at = node.snapshot()
        assert cents(at.settled) <= provider.bills[path] <= cents(at.settled + at.unknown)
        assert at.reserved == Cost()


async def session(
    prior: dict[Path, PriorCharges], provider: Provider, rng: random.Random, *, kill: bool
) -> dict[Path, PriorCharges]:
    """Run calls, perhaps until a kill, and return the charges that the next session starts with."""
    nodes = build(prior)
    provider.caller_was_killed = False
    billed_later: list[tuple[Path, int]] = []
    with anyio.fail_after(200):
        async with anyio.create_task_group() as tasks:
            for _ in range(rng.randint(1, 25)):
                tasks.start_soon(call, nodes[rng.choice(list(LIMITS))], provider, rng, billed_later)
            if kill:
                for _ in range(rng.randint(0, 12)):
                    await anyio.lowlevel.checkpoint()
                # kill -9: no clean-up takes effect, and all reservations become unknown costs.
                charged = own_charges(nodes)
                provider.caller_was_killed = True
                tasks.cancel_scope.cancel()
    if not kill:
        charged = own_charges(nodes)
    for path, cost in billed_later:
        provider.bill(path, cost)
    if not kill:
        check(nodes, provider)
    return charged


def own_charges(nodes: dict[Path, Budget]) -> dict[Path, PriorCharges]:
    def own(path: Path, kind: str) -> Cost:
        total: Cost = getattr(nodes[path].snapshot(), kind)
        for other, node in nodes.items():
            if len(other) == len(path) + 1 and other[: len(path)] == path:
                total -= getattr(node.snapshot(), kind)
        return total

    return {
        path: PriorCharges(own(path, "settled"), own(path, "unknown") + own(path, "reserved"))
        for path in nodes
    }


async def scenario(seed: int) -> None:
    rng, provider = random.Random(seed), Provider()
    prior: dict[Path, PriorCharges] = {}
    for _ in range(rng.randint(1, 3)):
        prior = await session(prior, provider, rng, kill=rng.random() < 0.4)


async def risky_calls(seed: int) -> None:
    """Make calls until the provider bills the risks of all in flight; then none is sent any more."""
    rng, nodes = random.Random(seed), build({})
    bills, highest = dict.fromkeys(LIMITS, 0), dict.fromkeys(LIMITS, 0)
    left = rng.randint(1, 30)
    disputed = False

    async def one(node: Budget) -> None:
        nonlocal left, disputed
        wanted, risk = rng.randint(1, 60), rng.choice([0, rng.randint(1, 500)])
        try:
            reservation = await node.reserve(Cost(Decimal(wanted)), risk=Cost(Decimal(risk)))
        except BudgetExceeded:
            return
        if disputed:
            reservation.release()
            return
        for _ in range(rng.randint(0, 4)):
            await anyio.lowlevel.checkpoint()
        left -= 1
        disputed = disputed or left <= 0
        cost = wanted + risk if disputed else rng.randint(0, wanted)
        for path in LIMITS:
            if node.path[: len(path)] == path:
                bills[path] += cost
                highest[path] = max(highest[path], risk)
        reservation.settle(Cost(Decimal(cost)))

    with anyio.fail_after(200):
        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                tasks.start_soon(one, nodes[rng.choice(list(LIMITS))])
    for path, most in LIMITS.items():
        assert most is None or bills[path] <= most + highest[path]
        assert (nodes[path].risk, nodes[path].calls_at_risk) == (Cost(), 0)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_bills_exceed_no_budget_by_more_than_one_risk(seed: int) -> None:
    anyio.run(risky_calls, seed)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_bills_never_exceed_any_budget(seed: int) -> None:
    anyio.run(scenario, seed)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_bills_never_exceed_any_budget_in_thousands_of_interleavings(seed: int) -> None:
    anyio.run(scenario, seed)
