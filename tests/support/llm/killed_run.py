"""A run of scripted conversations that its test kills: ``python killed_run.py FOLDER PROVIDER``."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio

from codetaste.llm.build import build_metered_model
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Message, Request, TextBlock, ToolResult
from codetaste.llm.providers.scripted import ScriptedReply
from codetaste.orchestration.budget.cost import BudgetLimits, NamedLimits
from codetaste.orchestration.job import Job, JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session

JOBS, TURNS = 3, 8
BUDGET = Decimal("1.00")


def script(request: Request) -> ScriptedReply:
    """Reply with the turn's number; the latency leaves time to be killed between bill and reply."""
    turn = len(request.messages) // 2 + 1
    last = request.messages[-1].text
    return ScriptedReply(f"turn {turn} after {last} " + "é" * (2000 if turn == 3 else 10), latency_s=0.01)


def model_config(folder: Path, provider: str) -> ModelConfig:
    fields: dict[str, Any] = {
        "id": "m",
        "model": f"{Path(__file__).name}:script",
        "price": {"input": 3, "output": 15},
    }
    if provider != "scripted":
        fields |= {"cassette": folder / "tape.jsonl", "mode": provider}
    return ModelConfig(provider="scripted", **fields)


async def main(folder: Path, provider: str) -> None:
    model = build_metered_model(
        model_config(folder, provider), base_dir=Path(__file__).parent, record_dir=folder / "record"
    )

    async def body(_job: Job, ctx: JobContext) -> Json:
        messages: list[Message] = [Message("user", (TextBlock(f"begin {ctx.key}"),))]
        for turn in range(1, TURNS + 1):
            request = Request("system", tuple(messages), max_output_tokens=4000)
            reply = await model.complete(request, ctx=ctx, name=f"turn-{turn}")
            messages += [
                reply.message,
                Message("user", (ToolResult("x", "r"), TextBlock(f"{ctx.key}-{turn}"))),
            ]
        return [message.text for message in messages]

    async with open_session(folder / "run", BudgetLimits(usd=BUDGET), retries={}) as session:
        session.add_handlers({"talk": body})
        jobs = [Job(f"job-{number}", "talk", (NamedLimits("discover"),), "f") for number in range(JOBS)]
        outcomes = await session.run(jobs)
        spent = session.budget.snapshot()
    await model.aclose()
    if any(outcome.error for outcome in outcomes.values()):
        sys.exit("\n".join(outcome.error for outcome in outcomes.values()))
    sys.stdout.write(f"{spent.settled.usd} {spent.unknown.usd}\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
