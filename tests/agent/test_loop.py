"""The loop under a real session: what a model gets wrong goes back to it, and a crash costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from codetaste.agent.facts import Facts
from codetaste.agent.loop import AgentState, LoopEnd, LoopSettings, run_loop
from codetaste.agent.tool import ToolAnswer, tool
from codetaste.errors import BudgetExceeded, ModelRefused, SandboxError, ToolError
from codetaste.llm.messages import Block, Message, Request, StopReason, TextBlock, ToolCall, ToolResult
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.providers.scripted import ScriptedModel, ScriptedReply
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext, Outcome
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.orchestration.closure_jobs import closure_job

pytestmark = pytest.mark.anyio
PRICE = Price(input=Decimal(3), output=Decimal(15))
Play = Callable[[int, Request], Any]


@dataclass(slots=True)
class Context:
    """What the tools of these tests work on; ``calls`` is no fact and dies with the process."""

    facts: Facts = field(default_factory=Facts)
    calls: list[str] = field(default_factory=list)


@tool
async def note(context: Context, text: str, times: int = 1) -> str:
    """Note a text.

    Args:
        context: of the tests.
        text: what to note.
        times: how often.
    """
    context.calls.append(text)
    for _ in range(times):
        context.facts.add("noted", text)
    return f"noted {len(context.facts.of_kind('noted'))}"


@tool
async def fail(context: Context) -> str:
    """Establish something and fail."""
    context.facts.add("noted", "never")
    raise ValueError("it broke\nin two lines")


@tool
async def refuse(context: Context) -> str:
    """Refuse."""
    raise ToolError("not like this")


@tool
async def spend(context: Context) -> str:
    """Ask for more than there is."""
    raise BudgetExceeded("the tool has no money")


@tool(output_limit=300)
async def talk(context: Context) -> str:
    """Talk."""
    return "x" * 10_000


@tool
async def finish(context: Context) -> ToolAnswer:
    """End."""
    return ToolAnswer("bye", finish=True)


@tool
async def contained(context: Context) -> str:
    """Work at the second attempt of a run, as a machine does that was short of something for a moment."""
    if not MENDED:
        raise SandboxError("no room for a sandbox")
    return "contained"


MENDED: list[bool] = []
TOOLS = (note, contained, fail, refuse, spend, talk, finish)


@dataclass
class Played:
    end: LoopEnd | None
    conversation: AgentState
    context: Context
    outcome: Outcome
    asked: int

    @property
    def results(self) -> list[ToolResult]:
        blocks = [block for message in self.conversation.messages for block in message.content]
        return [block for block in blocks if isinstance(block, ToolResult)]

    @property
    def told(self) -> list[str]:
        """What the user's side said after the task: answers and nudges."""
        said = self.conversation.messages[1:]
        return [
            block.content if isinstance(block, ToolResult) else block.text
            for message in said
            if message.role == "user"
            for block in message.content
            if not isinstance(block, ToolCall)
        ]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"id-{name}", name, arguments)


async def play(folder: Path, script: Play, *, usd: str | None = "5", **brief: Any) -> Played:
    """Let ``script`` (turn from 0, request) speak in a session at ``folder``."""
    asked = 0

    def answer(request: Request) -> Any:
        nonlocal asked
        asked += 1
        return script(sum(message.role == "user" for message in request.messages) - 1, request)

    scripted = ScriptedModel("m", answer, price=PRICE, ledger=folder / "ledger.jsonl")
    model = MeteredModel(scripted, PRICE, RateLimiter("m", maximum=2), retries={})
    conversation = AgentState([Message("user", (TextBlock("begin"),))])
    context = Context()
    wanted = LoopSettings("system", "begin", TOOLS, **{"max_turns": 20, "max_output_tokens": 2048, **brief})

    async def run(job: JobContext) -> Json:
        return str(await run_loop(wanted, model, context, job, conversation))

    limits = BudgetLimits(usd=None if usd is None else Decimal(usd))
    async with open_session(folder / "run", limits, retries={}) as session:
        outcomes = await session.run([closure_job(session, "talk", run, session.budget.child("flow"), "f")])
    return Played(conversation.end, conversation, context, outcomes["talk"], asked)


def then_finish(*first: Any) -> Play:
    """Say ``first`` one after the other, then finish."""
    return lambda turn, _request: first[turn] if turn < len(first) else call("finish")


async def test_tools_answer_in_order_and_a_finishing_one_ends_it(tmp_path: Path) -> None:
    played = await play(tmp_path, then_finish([call("note", text="a"), call("note", text="b", times=2)]))
    assert played.end is LoopEnd.FINISHED
    assert played.told == ["noted 1", "noted 3", "bye"]
    assert (played.conversation.turns, played.conversation.tool_calls, played.conversation.mistakes) == (
        2,
        3,
        0,
    )
    assert [message.role for message in played.conversation.messages] == [
        "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (call("nowhere"), "There is no tool 'nowhere'. Tools: note, contained"),
        (call("note"), "bad arguments for note: text: Field required"),
        (call("note", text="a", times="many"), "times:"),
        (call("note", text="a", loud=True), "loud: Extra inputs are not permitted"),
        (ToolCall("x", "note", {}, fault="no JSON"), "could not be read and was not run: no JSON"),
        (
            ScriptedReply([call("note", text="a")], stop=StopReason.LENGTH),
            "cut off at its limit of 2048 tokens",
        ),
        (ScriptedReply("I was about to", stop=StopReason.LENGTH), "Go on in smaller steps"),
        ("I am done, I believe.", "called no tool"),
        ("", "Your reply was empty"),
        ([], "Your reply was empty"),
    ],
)
async def test_invalid_tool_call_is_reported_to_model_and_loop_continues(
    tmp_path: Path, mistake: Any, expected: str
) -> None:
    played = await play(tmp_path, then_finish(mistake, call("note", text="right")))
    assert played.end is LoopEnd.FINISHED
    assert expected in played.told[0]
    assert played.context.calls == ["right"]
    assert played.conversation.mistakes == 1
    assert all(result.is_error for result in played.results[:-2])


async def test_a_reply_longer_than_its_cap_is_cut_and_its_call_is_not_run(tmp_path: Path) -> None:
    played = await play(tmp_path, then_finish(call("note", text="x" * 20_000)))
    assert "not run; make it smaller" in played.told[0]
    assert played.context.calls == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fail", "fail failed: ValueError: it broke"), ("refuse", "not like this")],
)
async def test_tool_that_raises_returns_error_and_rolls_back_facts(
    tmp_path: Path, name: str, expected: str
) -> None:
    played = await play(tmp_path, then_finish([call(name), call("note", text="after")]))
    assert played.end is LoopEnd.FINISHED
    assert expected in played.told[0]
    assert played.results[0].is_error
    assert played.context.facts.of_kind("noted") == ["after"]
    assert played.conversation.mistakes == 0  # the call was right


async def test_a_tool_s_output_is_bounded_at_both_ends(tmp_path: Path) -> None:
    played = await play(tmp_path, then_finish(call("talk")))
    assert len(played.told[0]) < 400
    assert "left out" in played.told[0]


async def test_a_tool_without_money_ends_the_conversation_as_the_budget_does(tmp_path: Path) -> None:
    played = await play(tmp_path, then_finish(call("note", text="kept"), call("spend")))
    assert played.end is LoopEnd.BUDGET_EXCEEDED
    assert played.context.facts.of_kind("noted") == ["kept"]


async def test_loop_budget_exhausted_ends_without_further_calls(tmp_path: Path) -> None:
    played = await play(tmp_path, lambda _turn, _request: call("note", text="x" * 100), usd="0.05")
    assert played.end is LoopEnd.BUDGET_EXCEEDED
    assert played.context.calls
    assert played.outcome.cost.spent.usd <= Decimal("0.05")


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("words", LoopEnd.NO_TOOL_CALL),
        ("", LoopEnd.NO_TOOL_CALL),
        (call("nowhere"), LoopEnd.MALFORMED),
        (ScriptedReply("words", stop=StopReason.LENGTH), LoopEnd.MALFORMED),
    ],
)
async def test_patience_ends_after_so_many_mistakes_in_a_row(tmp_path: Path, said: Any, end: LoopEnd) -> None:
    played = await play(tmp_path, lambda _turn, _request: said, max_mistakes_in_a_row=3)
    assert played.end is end
    assert played.conversation.turns == played.asked == 3


async def test_a_right_call_restores_patience(tmp_path: Path) -> None:
    wrong = "words"
    script = then_finish(wrong, wrong, call("note", text="a"), wrong, wrong, call("note", text="b"), wrong)
    played = await play(tmp_path, script, max_mistakes_in_a_row=3)
    assert played.end is LoopEnd.FINISHED
    assert played.conversation.mistakes == 5


async def test_one_right_call_among_wrong_ones_is_no_mistake(tmp_path: Path) -> None:
    script = then_finish(*[[call("nowhere"), call("note", text="a")]] * 4)
    played = await play(tmp_path, script, max_mistakes_in_a_row=2)
    assert played.end is LoopEnd.FINISHED
    assert played.conversation.mistakes == 0


async def test_turns_are_bounded(tmp_path: Path) -> None:
    played = await play(tmp_path, lambda _turn, _request: call("note", text="again"), max_turns=4)
    assert played.end is LoopEnd.MAX_TURNS
    assert played.asked == 4


async def test_a_refusal_ends_it(tmp_path: Path) -> None:
    played = await play(
        tmp_path, then_finish(call("note", text="a"), ScriptedReply("no", stop=StopReason.REFUSAL))
    )
    assert played.end is LoopEnd.REFUSED
    assert played.context.facts.of_kind("noted") == ["a"]


async def test_a_model_that_fails_for_good_fails_the_job_and_says_why(tmp_path: Path) -> None:
    def script(turn: int, _request: Request) -> Any:
        if turn == 2:
            raise ModelRefused("the key is revoked")
        return call("note", text="a")

    played = await play(tmp_path, script)
    assert played.end is None
    assert (played.outcome.status, played.outcome.cause) == ("failed", "refused")
    assert "the key is revoked" in played.outcome.error
    assert len(played.context.calls) == 2  # what was said is still readable


async def test_resume_after_failure_restores_facts_without_new_calls(tmp_path: Path) -> None:
    """The second session begins with an empty context, as a new process does."""

    def until(broken: bool) -> Play:
        def script(turn: int, _request: Request) -> Block | list[Block]:
            if turn == 2 and broken:
                raise ModelRefused("for now")
            steps: list[Block | list[Block]] = [
                call("note", text="a"),
                [call("fail"), call("note", text="b", times=2)],
                call("note", text="c"),
            ]
            return steps[turn] if turn < len(steps) else call("finish")

        return script

    first = await play(tmp_path, until(broken=True))
    assert first.context.facts.of_kind("noted") == ["a", "b", "b"]
    second = await play(tmp_path, until(broken=False))
    assert second.end is LoopEnd.FINISHED
    assert second.context.calls == ["c"]
    assert second.context.facts.of_kind("noted") == ["a", "b", "b", "c"]
    assert second.asked == 2  # turns 3 and 4 only
    assert second.told == [
        "noted 1",
        "fail failed: ValueError: it broke\nin two lines",
        "noted 3",
        "noted 4",
        "bye",
    ]
    third = await play(tmp_path, until(broken=False))
    assert third.outcome.resumed
    assert third.asked == 0


async def test_infrastructure_error_in_tool_is_not_recorded_as_answer(
    tmp_path: Path,
) -> None:
    MENDED.clear()
    script = then_finish(call("note", text="a"), call("contained"))
    first = await play(tmp_path, script)
    assert (first.outcome.status, first.outcome.cause) == ("failed", "sandbox")
    MENDED.append(True)
    second = await play(tmp_path, script)
    assert second.end is LoopEnd.FINISHED
    assert second.told == ["noted 1", "contained", "bye"]
    assert second.asked == 1
