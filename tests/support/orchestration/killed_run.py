"""A run that tests kill repeatedly: ``killed_run.py RUN_DIRECTORY BILL``.

BILL is the provider's record, with one line for each billed call. The run reads it only to look up unsettled
calls.
"""

from __future__ import annotations

import json
import os
import sys
from decimal import Decimal
from pathlib import Path

import anyio

from codetaste.orchestration.budget.cost import BudgetLimits, Cost, NamedLimits
from codetaste.orchestration.job import Job, JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session

BUDGET = Decimal("1.50")
JOBS, TURNS = 6, 4
PRICE, CAP = Decimal("0.05"), Decimal("0.20")


def billed(bill: Path) -> dict[str, Decimal]:
    if not bill.exists():
        return {}
    rows = [json.loads(line) for line in bill.read_text().splitlines()]
    return {row["call"]: Decimal(row["usd"]) for row in rows}


async def provider(bill: Path, call: str) -> None:
    """Bill first and answer later, which is the worst case for the client."""
    descriptor = os.open(bill, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, (json.dumps({"call": call, "usd": str(PRICE)}) + "\n").encode())
    os.close(descriptor)
    await anyio.sleep(0.01)


async def turn(context: JobContext, name: str, bill: Path) -> Json:
    for unsettled in context.unsettled_calls(name):
        cost = billed(bill).get(unsettled.call)
        await unsettled.settle(Cost(cost or Decimal(0)), None if cost is None else f"reply to {name}")
    if context.is_recorded(name):
        return await context.effect(name, never)
    async with await context.start_call(name, await context.hold(Cost(CAP), Cost(PRICE))) as paid:
        await provider(bill, paid.call)
        await paid.settle(Cost(PRICE), f"reply to {name}")
    return f"reply to {name}"


async def never() -> Json:
    raise AssertionError("an effect was repeated")


async def main(directory: Path, bill: Path) -> None:
    async def run(_job: Job, context: JobContext) -> Json:
        return [await turn(context, f"turn-{number}", bill) for number in range(TURNS)]

    async with open_session(directory, BudgetLimits(usd=BUDGET), capacities={"jobs": 3}) as session:
        print("ready", flush=True)  # noqa: T201
        session.add_handlers({"work": run})
        outcomes = await session.run(
            Job(
                f"job-{number}",
                "work",
                (NamedLimits("flow"),),
                "1",
                needs=(f"job-{number - 3}",) if number >= 3 else (),
            )
            for number in range(JOBS)
        )
    print(json.dumps({key: [outcome.status, outcome.value] for key, outcome in outcomes.items()}))  # noqa: T201


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]))
