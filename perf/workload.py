"""The workload of jobs.py: many small jobs with the real scheduler, journal and budget.

usage: workload.py trivial|paid|slow|wait|idle COUNT PERMITS FOLDER

trivial: jobs that return at once. paid: each makes one call of a scripted model through ``MeteredModel``,
whose cost is reserved and settled. slow: each makes four, which take half a second. wait: each waits one
second. idle: all wait, and the CPU of five seconds is printed.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from codetaste.orchestration.budget.cost import BudgetLimits, NamedLimits
from codetaste.orchestration.job import Job, JobContext, Status
from codetaste.orchestration.session import Session, open_session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from codetaste.llm.messages import Request
    from codetaste.llm.providers.scripted import ScriptedReply
    from codetaste.orchestration.journal.journal import Json

BUDGET = BudgetLimits(usd=Decimal(1000))
IDLE_S = 5.0


def reply(_: Request) -> str:
    return "done"


def slow_reply(_: Request) -> ScriptedReply:
    from codetaste.llm.providers.scripted import ScriptedReply  # noqa: PLC0415 - as in buyer

    return ScriptedReply("done", latency_s=0.5)


async def nothing(_: JobContext) -> Json:
    return None


async def wait(_: JobContext) -> Json:
    await anyio.sleep(1)
    return None


def buyer(folder: Path, script: str = "reply", calls: int = 1) -> Callable[[JobContext], Awaitable[Json]]:
    """Return a job that buys replies, one after the other."""
    from codetaste.llm.build import build_metered_model  # noqa: PLC0415
    from codetaste.llm.config import ModelConfig  # noqa: PLC0415 - the other workloads need no models
    from codetaste.llm.messages import Message, Request, TextBlock  # noqa: PLC0415

    price = {"input": 3, "output": 15}
    config = ModelConfig(
        id="scripted", provider="scripted", model=f"workload:{script}", price=price, max_concurrency=100
    )
    model = build_metered_model(config, base_dir=Path(__file__).parent, record_dir=folder / "models")

    async def buy(context: JobContext) -> Json:
        request = Request(
            system="", messages=(Message("user", (TextBlock(context.key),)),), max_output_tokens=1024
        )
        for number in range(calls):
            answer = await model.complete(request, ctx=context, name=f"reply-{number}")
        return answer.message.text

    return buy


def jobs(session: Session, kind: str, count: int, folder: Path) -> list[Job]:
    run = {"trivial": nothing, "wait": wait, "idle": nothing}.get(kind) or (
        buyer(folder, "slow_reply", 4) if kind == "slow" else buyer(folder)
    )
    session.add_handlers({"work": lambda _job, context: run(context)})
    return [Job(f"job {number}", "work", (NamedLimits("flow"),), "1") for number in range(count)]


async def work(kind: str, count: int, permits: int, folder: Path) -> None:
    async with open_session(folder, BUDGET, capacities={"jobs": permits}) as session:
        outcomes = await session.run(jobs(session, kind, count, folder))
    assert len(outcomes) == count
    failed = [outcome for outcome in outcomes.values() if outcome.status is not Status.DONE]
    assert not failed, f"{len(failed)} jobs failed: {failed[0].error}"


async def idle(count: int, permits: int, folder: Path) -> None:
    """Measure the process while all jobs wait, then let them end."""
    waiting, all_wait, go = 0, anyio.Event(), anyio.Event()

    async def wait_until_measured(_job: Job, _context: JobContext) -> Json:
        nonlocal waiting
        waiting += 1
        if waiting == min(count, permits):
            all_wait.set()
        await go.wait()
        return None

    async def measure() -> None:
        await all_wait.wait()
        await anyio.sleep(0.5)  # until the journal has written the starts
        began = time.process_time()
        await anyio.sleep(IDLE_S)
        used = (time.process_time() - began) / IDLE_S
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"waiting": waiting, "cpu_per_s": used, "rss": rss}))
        go.set()

    async with open_session(folder, BUDGET, capacities={"jobs": permits}) as session:
        session.add_handlers({"wait": wait_until_measured})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(measure)
            await session.run(
                [Job(f"job {number}", "wait", (NamedLimits("flow"),), "1") for number in range(count)]
            )


def main(kind: str, count: str, permits: str, folder: str) -> None:
    if kind == "idle":
        anyio.run(idle, int(count), int(permits), Path(folder))
    else:
        anyio.run(work, kind, int(count), int(permits), Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
