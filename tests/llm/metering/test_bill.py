"""Journals of runs with faulty providers, called with the official clients, equal the providers' bills."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from codetaste.cli.commands.runs.settle import settle
from codetaste.orchestration.job import Status
from support.llm import bill_run
from support.llm.bill_audit import Audit, audit_run, read_journal, reply_name
from support.llm.bill_run import RATES, Workload
from support.llm.provider import server as provider
from support.llm.provider.fault_plan import DATED, FINAL, HIDING, ODD, REFUSALS, STALLS, Plan
from support.llm.provider.faults import billed_and_late
from support.llm.provider.server import PROTOCOLS, PROTOCOLS_OTHERS_HEAVY

EVERYTHING = (REFUSALS, ODD, HIDING)
SEED = int(os.environ.get("CODETASTE_SEED", "1"))


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        running.strict = True
        for name, rates in RATES.items():
            running.rates[name] = provider.Rates(**{kind: Decimal(usd) for kind, usd in rates.items()})
        yield running


async def run_and_audit(
    server: provider.Server, plan: Plan, workload: Workload, folder: Path, **more: Any
) -> tuple[bill_run.RunResult, Audit]:
    """Run the conversations; whatever their outcome, the journal must agree with the bill."""
    server.default = plan
    ended = await bill_run.run(workload, folder, **more)
    assert not any(outcome.traceback for outcome in ended.outcomes.values())
    assert not server.complaints
    audit = audit_run(folder / "run", server.bill, workload.limits)
    print(f"CODETASTE_SEED={SEED} {workload.protocol}: {audit}; {dict(plan.done)}")  # noqa: T201
    assert (ended.spent.settled.usd, ended.spent.unknown.usd) == (audit.settled, audit.unknown)
    return ended, audit


def every_fault_was_used(plan: Plan) -> bool:
    return all(plan.done[name] for group in plan.faults for name in group)


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_bill_every_call_is_settled_or_charged_unknown(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    plan = Plan(SEED, 0.5, EVERYTHING)
    _, audit = await run_and_audit(server, plan, Workload(protocol, [server.url], jobs=6, turns=14), tmp_path)
    assert every_fault_was_used(plan)
    assert audit.states["settled"] > 100
    assert 0 < audit.settled < audit.bill < audit.settled + audit.unknown


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_unknown_costs_settled_from_bill_are_exact(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    workload = Workload(protocol, [server.url], jobs=2, turns=8)
    _, before = await run_and_audit(server, Plan(SEED, 0.5, EVERYTHING), workload, tmp_path)
    assert before.unknown > 0
    settled = {line["call"] for line in read_journal(tmp_path / "run") if line["event"] == "settled"}
    names = {
        reply_name(line["value"], tmp_path / "run")
        for line in read_journal(tmp_path / "run")
        if line["event"] == "settled"
    }
    left = defaultdict[str, list[Decimal]](list)
    for each in sorted(server.bill, key=lambda one: one.usd):
        if each.request_id not in names:
            left[each.question].append(each.usd)
    for line in read_journal(tmp_path / "run"):
        if line["event"] == "unknown" and line["call"] not in settled:
            prices = left[line["call"].rpartition("#")[0]]
            usd = prices.pop() if prices else Decimal(0)
            amount = format(usd, "f")
            await to_thread.run_sync(partial(settle, tmp_path / "run", line["call"], usd=amount))
    ended, after = await run_and_audit(server, Plan(SEED, 0.0, ()), workload, tmp_path)
    assert after.unknown == 0
    assert after.settled == after.bill == before.bill
    assert all(outcome.resumed for outcome in ended.outcomes.values())


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_bill_equals_journal_when_usage_is_always_reported(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    plan = Plan(SEED, 0.5, (REFUSALS, ODD, DATED))
    workload = Workload(protocol, [server.url], jobs=4, turns=8)
    ended, audit = await run_and_audit(server, plan, workload, tmp_path)
    assert audit.settled == audit.bill == server.billed_usd
    assert audit.unknown == 0
    assert {str(outcome.value)[:8] for outcome in ended.outcomes.values()} <= {"done", "HTTP 429", "HTTP 529"}


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_bill_never_exceeds_any_budget_of_the_tree(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    """The second session repeats every call with the remaining budget."""
    plan = Plan(SEED, 0.3, EVERYTHING)
    workload = Workload(
        protocol, [server.url], usd="1.1", model_usd=("0.3", "1.0"), job_usd="0.25", jobs=5, turns=12
    )
    await run_and_audit(server, plan, workload, tmp_path)
    ended, audit = await run_and_audit(server, plan, replace(workload, rerun=True), tmp_path)
    assert audit.bill <= audit.settled + audit.unknown <= Decimal("1.1")
    assert audit.highest > Decimal("1.05")
    assert any("budget of" in str(outcome.value) for outcome in ended.outcomes.values())


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_bill_includes_calls_ended_by_deadline_or_refused(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    plan = Plan(SEED, 0.5, (STALLS, FINAL))
    workload = Workload(protocol, [server.url], jobs=6, turns=4, timeout_s=1.5, permits=6)
    _, audit = await run_and_audit(server, plan, workload, tmp_path)
    assert every_fault_was_used(plan)
    assert audit.states["unknown"] >= plan.done["stall"] + plan.done["silent"]
    assert audit.states["released"] >= plan.done["400"] + plan.done["401"]


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_stopped_calls_are_unknown_and_repeated_next_session(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    plan = Plan(SEED, 1.0, ({"late": billed_and_late},))
    workload = Workload(protocol, [server.url], jobs=4, turns=3, permits=4)
    # The last of these calls is billed and not answered yet.
    stopped, before = await run_and_audit(
        server, plan, workload, tmp_path, stopped=lambda: len(server.bill) >= 9
    )
    assert {outcome.status for outcome in stopped.outcomes.values()} == {Status.CANCELLED}
    assert before.states["unknown"] > 0
    ended, after = await run_and_audit(server, plan, workload, tmp_path)
    assert {outcome.value for outcome in ended.outcomes.values()} == {"done"}
    assert after.states["settled"] == 2 * 4 * 3
    assert after.states["unknown"] == before.states["unknown"]
    assert after.bill - after.settled == before.bill - before.settled


def run_with_kills(folder: Path, kills: int, rng: random.Random) -> tuple[Decimal, Decimal]:
    """Kill the run at random moments while it works, then let it end; return settled and unknown."""
    command = [sys.executable, "-W", "error", bill_run.__file__, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(Path(bill_run.__file__).parents[2])}
    run = partial(
        subprocess.Popen, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    journal = folder / "run" / "journal.jsonl"
    for _ in range(kills):
        before = journal.stat().st_size if journal.exists() else 0
        process = run()
        while process.poll() is None and (not journal.exists() or journal.stat().st_size < before + 4000):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    last = run()
    stdout, stderr = last.communicate(timeout=250)
    assert last.returncode == 0, stderr
    settled, unknown = stdout.split()
    return Decimal(settled), Decimal(unknown)


@pytest.mark.heavy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_resume_after_kill_repeats_no_recorded_call(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    server.default = plan = Plan(SEED, 0.3, EVERYTHING)
    workload = Workload(protocol, [server.url], jobs=4, turns=12, permits=2)
    spent = run_with_kills(bill_run.write_workload(workload, tmp_path), 3, random.Random(SEED))
    audit = audit_run(tmp_path / "run", server.bill, workload.limits)
    print(audit)  # noqa: T201
    assert spent == (audit.settled, audit.unknown)
    assert sum(plan.done.values()) >= audit.states["settled"] > 50
    assert_no_recorded_call_was_repeated(tmp_path / "run")


def assert_no_recorded_call_was_repeated(run: Path) -> None:
    known: set[str] = set()
    for line in read_journal(run):
        effect = line.get("call", "").rpartition("#")[0]
        if line["event"] == "reserved":
            assert effect not in known, f"{effect} was recorded and is repeated"
        elif line["event"] == "settled":
            known.add(effect)
        elif line["event"] == "effect":
            known.add(f"{line['key']}/{line['name']}")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("share", "more"), [(0.15, {}), (0.5, {"usd": "20", "model_usd": ("4", "18")})])
async def test_thousands_of_calls_with_faults_agree_with_bill(
    server: provider.Server, tmp_path: Path, protocol: str, share: float, more: dict[str, Any]
) -> None:
    plan = Plan(SEED, share, (*EVERYTHING, FINAL))
    workload = Workload(
        protocol, [server.url], **{"usd": "200", "model_usd": ("100", "150"), "job_usd": "150", **more}
    )
    began_s = time.monotonic()
    ended, _ = await run_and_audit(server, plan, replace(workload, jobs=30, turns=30, permits=8), tmp_path)
    print(f"{len(server.bodies)} requests, {time.monotonic() - began_s:.1f} s")  # noqa: T201
    assert every_fault_was_used(plan)
    assert len(server.bodies) > 1000
    assert {outcome.status for outcome in ended.outcomes.values()} == {Status.DONE}
