"""The run that ``kills.py`` kills: short jobs that record their starts and ends; some buy replies.

usage: killed_jobs.py FOLDER COUNT

Each job appends a line to FOLDER/witness when it begins and one when it is about to end; the file is
independent of the journal. Every third job buys two replies of a scripted model, whose ledger is the bill.
"""

from __future__ import annotations

import os
import random
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from codetaste.llm.build import build_metered_model
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Message, Request, TextBlock
from codetaste.orchestration.budget.cost import BudgetLimits, NamedLimits
from codetaste.orchestration.job import Handler, Job, JobContext, Status
from codetaste.orchestration.session import open_session

if TYPE_CHECKING:
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.orchestration.journal.journal import Json

PERMITS, PAID, CALLS = 10, 3, 2
BUDGET = BudgetLimits(usd=Decimal(100))


def reply(request: Request) -> str:
    return f"an answer to {request.messages[0].content}"


def open_model(folder: Path) -> MeteredModel:
    price = {"input": 3, "output": 15}
    config = ModelConfig(id="scripted", provider="scripted", model="killed_jobs:reply", price=price)
    return build_metered_model(config, base_dir=Path(__file__).parent, record_dir=folder / "models")


def handler(model: MeteredModel, witness: int) -> Handler:
    async def run(job: Job, context: JobContext) -> Json:
        number = job.parameters
        os.write(witness, f"begins {context.key}\n".encode())
        answers: list[Json] = []
        for call in range(CALLS if number % PAID == 0 else 0):
            request = Request(
                "", (Message("user", (TextBlock(f"{context.key} {call}"),)),), max_output_tokens=1024
            )
            answers.append((await model.complete(request, ctx=context, name=f"reply {call}")).message.text)
        await anyio.sleep(random.random() * 0.02)
        os.write(witness, f"ends {context.key}\n".encode())
        return [number, *answers]

    return run


async def main(folder: Path, count: int) -> None:
    witness = os.open(folder / "witness", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    model = open_model(folder)
    async with open_session(folder, BUDGET, capacities={"jobs": PERMITS}) as session:
        session.add_handlers({"work": handler(model, witness)})
        jobs = [
            Job(f"job {number}", "work", (NamedLimits("flow"),), "1", number, lane=str(number % PAID))
            for number in range(count)
        ]
        outcomes = await session.run(jobs)
    assert all(outcome.status is Status.DONE for outcome in outcomes.values())
    assert [outcomes[job.key].value[0] for job in jobs] == list(range(count))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
