"""A conversation that fills the model's window is shortened; the loop goes on, also after a crash."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.agent.facts import Facts
from codetaste.agent.loop import AgentState, LoopEnd, LoopSettings, run_loop
from codetaste.agent.shorten import Edits, plan_edits
from codetaste.agent.tool import ToolAnswer, tool
from codetaste.errors import ConversationTooLong, StorageFull
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Message, Request, TextBlock, ToolCall, ToolResult, Usage
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.model import Model
from codetaste.llm.price import Price
from codetaste.llm.providers.remote import RemoteModel
from codetaste.llm.providers.scripted import ScriptedModel, ScriptedReply
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.llm.wire.protocols import PROTOCOLS
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.llm.provider import server as provider
from support.llm.provider.exchange import Exchange
from support.llm.provider.validation import bound_thought
from support.orchestration.closure_jobs import closure_job

PRICE = Price(input=Decimal(3), output=Decimal(15))
TURNS = 40
SERVER_TOKENS = 20_000
OUTPUT_TOKENS = 500


@dataclass(slots=True)
class Context:
    facts: Facts = field(default_factory=Facts)


@tool(output_limit=30_000)
async def read(context: Context, file: str) -> str:
    """Read a file.

    Args:
        context: of the tests.
        file: its name.
    """
    context.facts.add("read", file)
    return f"{file} begins\n" + "a line of code\n" * 500 + f"{file} ends"


@tool
async def finish(context: Context) -> ToolAnswer:
    """End."""
    return ToolAnswer("bye", finish=True)


def tokens_of(request: Request) -> int:
    """Count tokens as the server does: one for four characters of each text, call and result."""
    texts = [request.system]
    for message in request.messages:
        for block in message.content:
            match block:
                case TextBlock():
                    texts.append(block.text)
                case ToolResult():
                    texts.append(block.content)
                case ToolCall():
                    texts.append(json.dumps([block.name, dict(block.arguments)]))
    return sum(map(len, texts)) // 4 + 300


class Server:
    """A model with a context window: it reads one file a turn, and refuses prompts that are too long."""

    def __init__(self, *, turns: int = TURNS) -> None:
        self.turns, self.requests, self.refused = turns, list[Request](), 0
        self.answered = 0

    def reply(self, request: Request) -> ScriptedReply:
        tokens = tokens_of(request)
        if tokens + request.max_output_tokens > SERVER_TOKENS:
            self.refused += 1
            raise ConversationTooLong(f"HTTP 400: prompt is too long: {tokens} tokens")
        self.requests.append(request)
        self.answered += 1
        number = self.answered
        call = (
            ToolCall(f"c{number}", "finish", {})
            if number > self.turns
            else ToolCall(f"c{number}", "read", {"file": f"file-{number}.py"})
        )
        return ScriptedReply(call, usage=Usage(input=tokens, output=20))


async def run(
    folder: Path,
    server: Server | None = None,
    *,
    window: int | None,
    task: str = "begin",
    context: Context | None = None,
    backend: Model | None = None,
) -> AgentState:
    """Run the loop in a session at ``folder``."""
    if backend is None:
        assert server is not None
        backend = ScriptedModel("m", server.reply, price=PRICE, ledger=folder / "ledger.jsonl")
    model = MeteredModel(backend, PRICE, RateLimiter("m", maximum=2), retries={})
    loop_settings = LoopSettings(
        "system",
        task,
        (read, finish),
        max_turns=TURNS + 10,
        max_output_tokens=OUTPUT_TOKENS,
        context_window=window,
    )
    state = AgentState(loop_settings.first_messages())

    async def body(job: JobContext) -> Json:
        return str(await run_loop(loop_settings, model, context or Context(), job, state))

    async with open_session(folder / "run", BudgetLimits(usd=Decimal(50)), retries={}) as session:
        await session.run([closure_job(session, "talk", body, session.budget, "f")])
    return state


@pytest.mark.anyio
async def test_thinking_bound_to_what_precedes_it_is_left_out_after_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses a thinking block after other messages than those that it followed."""
    thinking: list[int] = []

    async def think(exchange: Exchange) -> None:
        messages = exchange.body["messages"]
        thinking.append(sum(block["type"] == "thinking" for each in messages for block in each["content"]))
        number = len(exchange.server.bodies)
        name, arguments = ("finish", {}) if number > TURNS else ("read", {"file": f"file-{number}.py"})
        call = {"type": "tool_use", "id": f"c{number}", "name": name, "input": arguments}
        await provider.send_reply(exchange, bound_thought(exchange.body), call, stop="tool_use")

    monkeypatch.setenv("FAKE_KEY", "sk-fake")
    with provider.serving() as server:
        server.default, server.strict = think, True
        config = ModelConfig(
            id="m", provider="anthropic", model="claude-x", base_url=server.url, api_key_env="FAKE_KEY"
        )
        backend = RemoteModel(PROTOCOLS["anthropic"], config)
        try:
            state = await run(tmp_path, window=SERVER_TOKENS, backend=backend)
        finally:
            await backend.aclose()
        assert server.complaints == []
    assert (state.end, state.turns) == (LoopEnd.FINISHED, TURNS + 1)
    assert max(thinking) > 1, "thinking before an edit is kept"
    assert thinking != sorted(thinking), "some was left out"


@pytest.mark.anyio
@pytest.mark.parametrize("window", [SERVER_TOKENS, None])
async def test_long_conversation_ends_well_and_loses_nothing(tmp_path: Path, window: int | None) -> None:
    server, context = Server(), Context()
    state = await run(tmp_path, server, window=window, context=context)
    assert state.end is LoopEnd.FINISHED
    assert state.turns == TURNS + 1
    assert len(context.facts.of_kind("read")) == TURNS
    assert (server.refused == 0) is (window is not None)
    last = server.requests[-1]
    assert last.messages[0].text.startswith("begin")
    assert [message.role for message in last.messages] == ["user", "assistant"] * (
        len(last.messages) // 2
    ) + ["user"]
    latest = last.messages[-1].content[0]
    assert isinstance(latest, ToolResult)
    assert "left out" not in latest.content, "the latest answer is whole"
    assert len(state.messages) == 2 * (TURNS + 1) + 1, "the transcript has everything"


@pytest.mark.anyio
@pytest.mark.parametrize("window", [SERVER_TOKENS, None])
async def test_killed_loop_sends_the_same_requests_again(tmp_path: Path, window: int | None) -> None:
    whole, first, second = Server(), Server(), Server()
    await run(tmp_path / "whole", whole, window=window)

    def fail_later(request: Request) -> Any:
        if first.answered == TURNS // 2:
            raise StorageFull("killed here")
        return Server.reply(first, request)

    first.reply = fail_later  # type: ignore[method-assign]
    await run(tmp_path / "killed", first, window=window)
    second.answered = first.answered
    state = await run(tmp_path / "killed", second, window=window)
    assert state.end is LoopEnd.FINISHED
    assert [*first.requests, *second.requests] == whole.requests


@pytest.mark.anyio
async def test_task_that_is_too_long_ends_with_a_reason_of_its_own(tmp_path: Path) -> None:
    state = await run(tmp_path, Server(), window=None, task="word " * 30_000)
    assert (state.end, state.turns) == (LoopEnd.CONTEXT_FULL, 1)


TEXT = st.text("abc \n", max_size=3000)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages = [Message("user", (TextBlock(draw(TEXT)),))]
    for number in range(draw(st.integers(0, 8))):
        calls = [
            ToolCall(f"{number}-{n}", "read", {"file": draw(TEXT)}) for n in range(draw(st.integers(1, 3)))
        ]
        messages.append(Message("assistant", (TextBlock(draw(TEXT)), *calls)))
        messages.append(Message("user", tuple(ToolResult(call.id, draw(TEXT)) for call in calls)))
    return messages


def characters(messages: list[Message]) -> int:
    return sum(len(str(block)) for message in messages for block in message.content)


@given(conversations(), st.integers(1, 60_000))
@settings(max_examples=100, deadline=None)
def test_edits_keep_the_form_of_a_conversation(messages: list[Message], excess: int) -> None:
    edits = plan_edits(messages, excess)
    assert Edits.from_json(json.loads(json.dumps(edits.to_json()))) == edits
    shortened = edits.apply(messages)
    assert shortened[0].content[0] == messages[0].content[0]
    assert shortened[1:2] == [] or shortened[1].role == "assistant"
    calls = [call.id for message in shortened for call in message.tool_calls]
    results = [b.call_id for message in shortened for b in message.content if isinstance(b, ToolResult)]
    assert calls == results
    if edits == Edits():
        assert shortened == messages
    else:
        assert characters(shortened) < characters(messages)
    for _ in range(100):  # it ends when nothing is left that can be left out
        again = plan_edits(shortened, 10**9)
        if again == Edits():
            return
        before, shortened = shortened, again.apply(shortened)
        assert characters(shortened) < characters(before)
    pytest.fail("it can be shortened for ever")
