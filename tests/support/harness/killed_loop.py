"""A conversation of our own agent in a box, in a process that kills itself: ``FOLDER TURN`` (0: it lives).

Prints, as one line of JSON, how the conversation ended, what the model was asked, and what the box held then.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio

from codetaste.agent.code_tools import CODE_TOOLS, CodeContext
from codetaste.agent.facts import Facts
from codetaste.agent.loop import AgentState, LoopSettings, run_loop
from codetaste.llm.messages import Request, ToolCall, ToolResult
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.providers.scripted import ScriptedModel
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.events import Note, ToolCalled
from codetaste.orchestration.job import Job, JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from codetaste.sandbox.base import SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider

PRICE = Price(input=Decimal(3), output=Decimal(15))
TURNS: list[list[tuple[str, dict[str, Any]]]] = [
    [("edit", {"path": "a.txt", "old": "", "new": "one\n", "create": True})],
    [
        ("bash", {"command": "echo two >>a.txt; [ -e /tmp/old ]"}),
        ("edit", {"path": "missing", "old": "a", "new": "b"}),
        ("edit", {"path": "a.txt", "old": "two", "new": "2"}),
        ("edit", {"nonsense": 1}),
    ],
    [("bash", {"command": "wc -l <a.txt >count; date +%N >>when; sleep 1; exit $(wc -l <when)"})],
    [("bash", {"command": "cat a.txt"}), ("bash", {"command": "exit $NUMBER"})],
    [("finish", {"summary": "done"})],
]
"""The last command ends differently in a process with another number."""


async def main(folder: Path, dies_at: int, number: int) -> None:
    asked: list[int] = []
    told: list[str] = []

    def answer(request: Request) -> Any:
        turn = sum(message.role == "user" for message in request.messages)
        asked.append(turn)
        told[:] = [b.content for m in request.messages for b in m.content if isinstance(b, ToolResult)]
        if turn == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return [ToolCall(f"{turn}-{n}", name, args) for n, (name, args) in enumerate(TURNS[turn - 1])]

    scripted = ScriptedModel("m", answer, price=PRICE, ledger=folder / "ledger.jsonl")
    model = MeteredModel(scripted, PRICE, RateLimiter("m", maximum=2), retries={})
    seen: dict[str, Any] = {"asked": asked, "told": told, "notes": [], "calls": 0}

    def observe(event: object) -> None:
        if isinstance(event, Note):
            seen["notes"].append(event.text)
        seen["calls"] += isinstance(event, ToolCalled)

    async def run(_job: Job, job: JobContext) -> Json:
        async with bubblewrap_provider(folder / "boxes").open(
            SandboxSpec("talk", env={"NUMBER": str(number)})
        ) as box:
            brief = LoopSettings("system", "begin", CODE_TOOLS)
            conversation = AgentState(brief.first_messages())
            end = await run_loop(brief, model, CodeContext(box, Facts()), job, conversation)
            left = await box.run(["sh", "-c", "grep -r . --exclude=when; wc -l <when"])
            seen["left"], seen["end"] = left.stdout.decode(), str(end)
            clock = job.budget.snapshot()
            seen["worked_s"], seen["wall_s"] = clock.wall_s - clock.waited_s, clock.wall_s
            return None

    (folder / "run").mkdir(exist_ok=True)
    async with open_session(
        folder / "run", BudgetLimits(usd=Decimal(5)), retries={}, observers=[observe]
    ) as session:
        session.add_handlers({"talk": run})
        outcomes = await session.run([Job("talk", "talk", ("flow",), "f")])
    seen["status"], seen["error"] = outcomes["talk"].status, outcomes["talk"].error
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
