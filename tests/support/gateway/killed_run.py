"""A run of programs behind a gateway that its test kills: ``python killed_run.py FOLDER [URL]``.

With an address, the model is a real provider there; without, it is scripted.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from random import Random

import anyio

sys.path.append(str(Path(__file__).parents[2]))

from codetaste.gateway.gateway import Gateway, open_gateway
from codetaste.llm.messages import Request
from codetaste.llm.providers.scripted import ScriptedReply
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.gateway.billed_clients import Program, provided
from support.gateway.jobs import admitted, scripted
from support.orchestration.closure_jobs import closure_job

JOBS, TURNS = 3, 4
BUDGET = Decimal(2)


def script(request: Request) -> ScriptedReply:
    """The latency leaves time to be killed between the bill and the reply."""
    return ScriptedReply(f"turn {len(request.messages)}", latency_s=0.02)


async def main(folder: Path, url: str) -> None:
    model = provided("anthropic", url, folder) if url else scripted(folder, script, "expensive")

    async def talk(ctx: JobContext, gateway: Gateway) -> Json:
        rng = Random(ctx.key)
        async with admitted(ctx, gateway, "anthropic", ["expensive"], name=f"{ctx.key}.jsonl") as (
            access,
            client,
        ):
            program = Program("anthropic", client)
            for turn in range(TURNS):
                name = f"{ctx.key}/gateway/attempt-{ctx.attempt}/call-{access.usage.requests + 1}"
                program.say(f"Turn {turn} [asked {name}]")
                status = await program.ask(2000, stream=rng.random() < 0.5)
                assert status == 200, (status, program.heard)
        return ctx.attempt

    async with (
        open_session(folder / "run", BudgetLimits(usd=BUDGET), retries={}) as session,
        open_gateway({model.id: model}, folder / "run") as gateway,
    ):
        jobs = [
            closure_job(session, f"job-{n}", lambda ctx: talk(ctx, gateway), session.budget, "f")
            for n in range(JOBS)
        ]
        outcomes = await session.run(jobs)
        spent = session.budget.snapshot()
    if any(outcome.error for outcome in outcomes.values()):
        sys.exit("\n".join(outcome.error for outcome in outcomes.values()))
    sys.stdout.write(f"{spent.settled.usd} {spent.unknown.usd}\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
