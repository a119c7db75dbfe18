"""A provider's bill equals the journal of agents behind the gateway, whatever the provider does wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from codetaste.orchestration.job import Outcome, Status
from support.gateway.billed_clients import Workload, run_workload
from support.llm.bill_audit import Audit, audit_run
from support.llm.bill_run import RATES
from support.llm.provider import server as provider
from support.llm.provider.fault_plan import DATED, FINAL, HIDING, ODD, REFUSALS, STALLS, Plan
from support.llm.provider.server import PROTOCOLS, PROTOCOLS_OTHERS_HEAVY

EVERYTHING = (REFUSALS, ODD, HIDING)
SEED = int(os.environ.get("CODETASTE_SEED", "1"))


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        for name, rates in RATES.items():
            running.rates[name] = provider.Rates(**{kind: Decimal(usd) for kind, usd in rates.items()})
        yield running


async def run_and_audit(
    server: provider.Server, plan: Plan, workload: Workload, folder: Path
) -> tuple[dict[str, Outcome], Audit]:
    """Run the agents, and check their usage and the journal against the bill."""
    server.default = plan
    outcomes, spent = await run_workload(workload, folder)
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}, outcomes
    audit = audit_run(folder / "run", server.bill, workload.limits)
    print(f"CODETASTE_SEED={SEED} {workload.protocol}: {audit}; {dict(plan.done)}")  # noqa: T201
    assert (spent.settled.usd, spent.unknown.usd) == (audit.settled, audit.unknown)
    usages: list[Any] = [outcome.value for outcome in outcomes.values()]
    assert sum(Decimal(usage["settled"]) for usage in usages) == audit.settled
    assert sum(Decimal(usage["unknown"]) for usage in usages) == audit.unknown
    return outcomes, audit


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_every_request_is_settled_or_charged_unknown(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    plan = Plan(SEED, 0.5, EVERYTHING)
    _, audit = await run_and_audit(server, plan, Workload(protocol, server.url, jobs=6, turns=16), tmp_path)
    assert all(plan.done[name] for group in plan.faults for name in group)
    assert audit.states["settled"] > 40
    assert 0 < audit.settled < audit.bill < audit.settled + audit.unknown


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_bill_equals_journal_when_usage_is_always_reported(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    plan = Plan(SEED, 0.5, (REFUSALS, ODD, DATED))
    _, audit = await run_and_audit(server, plan, Workload(protocol, server.url, jobs=4, turns=8), tmp_path)
    assert audit.settled == audit.bill == server.billed_usd
    assert audit.unknown == 0


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_bill_never_exceeds_budget_until_agent_is_refused(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    workload = Workload(protocol, server.url, usd="0.6", each="0.15", jobs=5, turns=40)
    # Without lost replies, of which three in a row would end a job before its budget does.
    plan = Plan(SEED, 0.3, (REFUSALS, ODD, DATED))
    outcomes, audit = await run_and_audit(server, plan, workload, tmp_path)
    assert audit.bill <= audit.settled + audit.unknown <= Decimal("0.6")
    values: list[Any] = [outcome.value for outcome in outcomes.values()]
    assert any(value["refused"] for value in values)
    assert {value["statuses"][-1] for value in values if value["refused"]} == {
        {"anthropic": 402, "openai": 400, "openai-chat": 402}[protocol]
    }


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_bill_includes_requests_ended_by_deadline_or_refused(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    workload = Workload(protocol, server.url, jobs=6, turns=3, timeout_s=0.7, permits=6)
    plan = Plan(SEED, 0.5, (STALLS, FINAL))
    _, audit = await run_and_audit(server, plan, workload, tmp_path)
    assert audit.states["unknown"] >= plan.done["stall"] + plan.done["silent"] > 0


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_bill_equals_journal_when_clients_hang_up_in_mid_stream(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    workload = Workload(protocol, server.url, jobs=4, turns=10, hang_ups=0.5)
    outcomes, audit = await run_and_audit(
        server, Plan(SEED, 0.3, (REFUSALS, {"trickled": ODD["trickled"]})), workload, tmp_path
    )
    assert any(-1 in value["statuses"] for value in map(_value, outcomes.values()))
    assert audit.settled == audit.bill == server.billed_usd
    assert audit.unknown == 0


def _value(outcome: Outcome) -> Any:
    return outcome.value


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_bill_of_thousands_of_requests_with_faults_is_consistent(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    plan = Plan(SEED, 0.3, (*EVERYTHING, FINAL))
    workload = Workload(
        protocol, server.url, usd="200", each="150", jobs=30, turns=50, permits=8, hang_ups=0.1
    )
    await run_and_audit(server, plan, workload, tmp_path)
    assert all(plan.done[name] for group in plan.faults for name in group)
    assert len(server.bodies) > 1500
