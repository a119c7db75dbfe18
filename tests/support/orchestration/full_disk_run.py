"""A run that fills its disk: ``full_disk_run.py RUN_DIRECTORY`` exits with 3 if the disk is full."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path

import anyio

from codetaste.errors import StorageFull
from codetaste.orchestration.budget.cost import BudgetLimits, Cost, NamedLimits
from codetaste.orchestration.job import Job, JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session


async def run(_job: Job, context: JobContext) -> Json:
    for number in range(20):
        name = f"turn-{number}"
        if not context.is_recorded(name):
            async with await context.start_call(name, await context.hold(Cost(Decimal(1)))) as paid:
                await paid.settle(Cost(Decimal("0.01")), await reply())
        await context.effect(f"answer-{number}", reply)
    return "done"


async def reply() -> Json:
    return "x" * 1000


async def main(directory: Path) -> None:
    async with open_session(directory, BudgetLimits(usd=Decimal(100)), capacities={"jobs": 4}) as session:
        session.add_handlers({"work": run})
        outcomes = await session.run(
            Job(f"job-{number}", "work", (NamedLimits("flow"),), "1") for number in range(8)
        )
    print(json.dumps({key: outcome.status for key, outcome in outcomes.items()}))  # noqa: T201


if __name__ == "__main__":
    try:
        anyio.run(main, Path(sys.argv[1]))
    except StorageFull as error:
        print(error)  # noqa: T201
        sys.exit(3)
