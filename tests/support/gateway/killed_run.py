"""A run of agents behind a gateway that a test kills: ``python killed_run.py FOLDER [URL]``.

With URL, the model is a provider at that address; without, it is scripted.
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
from support.gateway.billed_clients import AgentClient, make_gateway_model
from support.gateway.jobs import admit_client, make_scripted_model
from support.orchestration.closure_jobs import closure_job

JOBS, TURNS = 3, 4
BUDGET = Decimal(2)


def script(request: Request) -> ScriptedReply:
    """Reply with a latency, so that the process can be killed between the bill and the reply."""
    return ScriptedReply(f"turn {len(request.messages)}", latency_s=0.02)


async def main(folder: Path, url: str) -> None:
    model = (
        make_gateway_model("anthropic", url, folder)
        if url
        else make_scripted_model(folder, script, "expensive")
    )

    async def run_turns(ctx: JobContext, gateway: Gateway) -> Json:
        rng = Random(ctx.key)
        async with admit_client(ctx, gateway, "anthropic", ["expensive"], name=f"{ctx.key}.jsonl") as (
            access,
            client,
        ):
            agent = AgentClient("anthropic", client)
            for turn in range(TURNS):
                name = f"{ctx.key}/gateway/attempt-{ctx.attempt}/call-{access.usage.requests + 1}"
                agent.add_user_message(f"Turn {turn} [asked {name}]")
                status = await agent.send(2000, stream=rng.random() < 0.5)
                assert status == 200, (status, agent.received)
        return ctx.attempt

    async with (
        open_session(folder / "run", BudgetLimits(usd=BUDGET), retries={}) as session,
        open_gateway({model.id: model}, folder / "run") as gateway,
    ):
        jobs = [
            closure_job(session, f"job-{n}", lambda ctx: run_turns(ctx, gateway), session.budget, "f")
            for n in range(JOBS)
        ]
        outcomes = await session.run(jobs)
        spent = session.budget.snapshot()
    if any(outcome.error for outcome in outcomes.values()):
        sys.exit("\n".join(outcome.error for outcome in outcomes.values()))
    sys.stdout.write(f"{spent.settled.usd} {spent.unknown.usd}\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
