"""Every fault of a user's tool is an error result for the model, and the loop continues."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from codetaste.agent.facts import Facts
from codetaste.agent.loop import AgentState, LoopEnd, LoopSettings, run_loop
from codetaste.agent.tool import ToolAnswer, tool
from codetaste.llm.messages import Message, Request, TextBlock, ToolCall, ToolResult
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.providers.scripted import ScriptedModel
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.job import Status
from codetaste.orchestration.session import open_session
from support.orchestration.closure_jobs import closure_job

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


@dataclass(slots=True)
class Context:
    """The context of the tools here."""

    facts: Facts = field(default_factory=Facts)


@tool
async def nothing(context: Context) -> str:
    """Return no text."""
    return None  # type: ignore[return-value]


@tool
async def number(context: Context) -> ToolAnswer:
    """Return a number."""
    return ToolAnswer(5)  # type: ignore[arg-type]


@tool
async def leave(context: Context) -> str:
    """End the program."""
    sys.exit(5)


@tool
async def several(context: Context) -> str:
    """Fail in several ways at once."""
    raise ExceptionGroup("several", [ValueError("one"), KeyError("two")])


@tool
async def odd_fact(context: Context) -> str:
    """Add a fact that is not JSON."""
    context.facts.add("odd", object())
    return "added"


@tool
async def endless_fact(context: Context) -> str:
    """Add a fact that contains NaN."""
    context.facts.add("odd", [float("nan")])
    return "added"


@tool
async def finish(context: Context) -> ToolAnswer:
    """End the session."""
    return ToolAnswer("bye", finish=True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("faulty", "expected"),
    [
        (nothing, "returned NoneType"),
        (number, "a ToolAnswer with text"),
        (leave, "SystemExit: 5"),
        (several, "ExceptionGroup"),
        (odd_fact, "not JSON serializable"),
        (endless_fact, "not JSON compliant"),
    ],
)
async def test_faulty_tool_returns_error_to_model(faulty: Any, expected: str, tmp_path: Path) -> None:
    def reply(request: Request) -> ToolCall:
        replies = sum(message.role == "assistant" for message in request.messages)
        return ToolCall(f"c{replies}", finish.spec.name if replies else faulty.spec.name, {})

    scripted = ScriptedModel("m", reply, price=None, ledger=tmp_path / "ledger.jsonl")
    model = MeteredModel(scripted, Price(input=Decimal(1), output=Decimal(1)), RateLimiter("m", maximum=1))
    state = AgentState([Message("user", (TextBlock("work"),))])

    async def run(job: JobContext) -> Json:
        await run_loop(LoopSettings("", "", (faulty, finish)), model, Context(), job, state)
        return "done"

    async with open_session(tmp_path / "run") as session:
        outcomes = await session.run([closure_job(session, "a", run, session.budget, "1")])
    assert (outcomes["a"].status, state.end) == (Status.DONE, LoopEnd.FINISHED)
    (answer,) = state.messages[2].content
    assert isinstance(answer, ToolResult)
    assert answer.is_error
    assert expected in answer.content
