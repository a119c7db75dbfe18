"""A conversation of the coding agent in a sandbox, in a process that kills itself: ``FOLDER TURN NUMBER``.

It kills itself at TURN (0: never); NUMBER is a variable of the sandbox. It prints a line of JSON: how the
conversation ended, the turns in which the model was called, the tool results, and the files.
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
from codetaste.orchestration.budget.cost import BudgetLimits, NamedLimits
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
"""The result of the last ``bash`` depends on the process's number."""


async def main(folder: Path, kill_at_turn: int, number: int) -> None:
    requested_turns: list[int] = []
    tool_results: list[str] = []

    def answer(request: Request) -> Any:
        turn = sum(message.role == "user" for message in request.messages)
        requested_turns.append(turn)
        tool_results[:] = [
            b.content for m in request.messages for b in m.content if isinstance(b, ToolResult)
        ]
        if turn == kill_at_turn:
            os.kill(os.getpid(), signal.SIGKILL)
        return [ToolCall(f"{turn}-{n}", name, args) for n, (name, args) in enumerate(TURNS[turn - 1])]

    scripted = ScriptedModel("m", answer, price=PRICE, ledger=folder / "ledger.jsonl")
    model = MeteredModel(scripted, PRICE, RateLimiter("m", maximum=2), retries={})
    report: dict[str, Any] = {
        "requested_turns": requested_turns,
        "tool_results": tool_results,
        "notes": [],
        "calls": 0,
    }

    def observe(event: object) -> None:
        if isinstance(event, Note):
            report["notes"].append(event.text)
        report["calls"] += isinstance(event, ToolCalled)

    async def run(_job: Job, job: JobContext) -> Json:
        async with bubblewrap_provider(folder / "sandboxes").open(
            SandboxSpec("conversation", env={"NUMBER": str(number)})
        ) as sandbox:
            settings = LoopSettings("system", "begin", CODE_TOOLS)
            state = AgentState(settings.first_messages())
            end = await run_loop(settings, model, CodeContext(sandbox, Facts()), job, state)
            listing = await sandbox.run(["sh", "-c", "grep -r . --exclude=when; wc -l <when"])
            report["files"], report["end"] = listing.stdout.decode(), str(end)
            usage = job.budget.snapshot()
            report["worked_s"], report["wall_s"] = usage.wall_s - usage.waited_s, usage.wall_s
            return None

    (folder / "run").mkdir(exist_ok=True)
    async with open_session(
        folder / "run", BudgetLimits(usd=Decimal(5)), retries={}, observers=[observe]
    ) as session:
        session.add_handlers({"talk": run})
        outcomes = await session.run([Job("talk", "talk", (NamedLimits("flow"),), "f")])
    report["status"], report["error"] = outcomes["talk"].status, outcomes["talk"].error
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
