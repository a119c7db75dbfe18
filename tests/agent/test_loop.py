"""The loop in a real session: the model sees its mistakes, and a resumed loop repeats no request."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from codetaste.agent import loop
from codetaste.agent.facts import Facts
from codetaste.agent.loop import AgentState, LoopEnd, LoopSettings, run_loop
from codetaste.agent.tool import ToolAnswer, tool
from codetaste.errors import BudgetExceeded, ModelRefused, ModelSetupError, SandboxError, ToolError
from codetaste.llm.messages import Block, Message, Request, StopReason, TextBlock, ToolCall, ToolResult
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.providers.scripted import ScriptedModel, ScriptedReply
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.events import Event, Note, ToolRaised
from codetaste.orchestration.job import JobContext, Outcome
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.orchestration.closure_jobs import closure_job

pytestmark = pytest.mark.anyio
PRICE = Price(input=Decimal(3), output=Decimal(15))
ModelScript = Callable[[int, Request], Any]


@dataclass(slots=True)
class Context:
    """The context of the tools here; ``calls`` is not restored when a job is resumed."""

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
    """Exceed the budget."""
    raise BudgetExceeded("the tool exceeds the budget")


@tool(output_limit=300)
async def talk(context: Context) -> str:
    """Return a long text."""
    return "x" * 10_000


@tool
async def finish(context: Context) -> ToolAnswer:
    """End."""
    return ToolAnswer("bye", finish=True)


@tool
async def contained(context: Context) -> str:
    """Fail until ``MENDED`` is not empty, like a sandbox that is temporarily unavailable."""
    if not MENDED:
        raise SandboxError("no room for a sandbox")
    return "contained"


MENDED: list[bool] = []


@tool
async def block(context: Context) -> str:
    """Let no other task run for a while."""
    await anyio.lowlevel.checkpoint()
    time.sleep(0.2)  # noqa: ASYNC251
    return "done"


TOOLS = (note, contained, fail, refuse, spend, talk, finish, block)


@dataclass
class LoopRun:
    end: LoopEnd | None
    state: AgentState
    context: Context
    outcome: Outcome
    requests: int
    events: list[Event]

    @property
    def results(self) -> list[ToolResult]:
        blocks = [block for message in self.state.messages for block in message.content]
        return [block for block in blocks if isinstance(block, ToolResult)]

    @property
    def user_texts(self) -> list[str]:
        """The user's texts after the task: tool results and reminders."""
        messages = self.state.messages[1:]
        return [
            block.content if isinstance(block, ToolResult) else block.text
            for message in messages
            if message.role == "user"
            for block in message.content
            if not isinstance(block, ToolCall)
        ]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"id-{name}", name, arguments)


async def run_script(folder: Path, script: ModelScript, *, usd: str | None = "5", **settings: Any) -> LoopRun:
    """Run the loop in a session at ``folder``, with a model that replies ``script(turn from 0, request)``."""
    requests = 0

    def answer(request: Request) -> Any:
        nonlocal requests
        requests += 1
        return script(sum(message.role == "user" for message in request.messages) - 1, request)

    scripted = ScriptedModel("m", answer, price=PRICE, ledger=folder / "ledger.jsonl")
    model = MeteredModel(scripted, PRICE, RateLimiter("m", maximum=2), retries={})
    state = AgentState([Message("user", (TextBlock("begin"),))])
    context = Context()
    loop_settings = LoopSettings(
        "system", "begin", TOOLS, **{"max_turns": 20, "max_output_tokens": 2048, **settings}
    )

    async def run(job: JobContext) -> Json:
        return str(await run_loop(loop_settings, model, context, job, state))

    limits = BudgetLimits(usd=None if usd is None else Decimal(usd))
    events: list[Event] = []
    async with open_session(folder / "run", limits, retries={}, observers=[events.append]) as session:
        outcomes = await session.run([closure_job(session, "talk", run, session.budget.child("flow"), "f")])
    return LoopRun(state.end, state, context, outcomes["talk"], requests, events)


def then_finish(*first: Any) -> ModelScript:
    """Return a script that replies ``first`` one by one, and then finishes."""
    return lambda turn, _request: first[turn] if turn < len(first) else call("finish")


async def test_tool_results_come_in_order_and_finish_ends_loop(tmp_path: Path) -> None:
    run = await run_script(tmp_path, then_finish([call("note", text="a"), call("note", text="b", times=2)]))
    assert run.end is LoopEnd.FINISHED
    assert run.user_texts == ["noted 1", "noted 3", "bye"]
    assert (run.state.turns, run.state.tool_calls, run.state.mistakes) == (
        2,
        3,
        0,
    )
    assert [message.role for message in run.state.messages] == [
        "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (call("nowhere"), "There is no tool 'nowhere'. Tools: note, contained"),
        (call("note"), "bad arguments for note: text: Field required"),
        (call("note", text="a", times="many"), "times:"),
        (ToolCall("x", "note", {}, fault="no JSON"), "could not be read and was not run: no JSON"),
        (
            ScriptedReply([call("note", text="a")], stop=StopReason.LENGTH),
            "cut off at its limit of 2048 tokens",
        ),
        (ScriptedReply("I was about to", stop=StopReason.LENGTH), "Go on in smaller steps"),
        ("I am done, I believe.", "called no tool"),
        ('<tool_call>\n{"name": "note"}\n</tool_call>', "a tool call as text ('<tool_call>')"),
        ('So:\n```json\n{"name": "note", "arguments": {}}\n```', 'a tool call as text (\'"name": "note"'),
        ('note(text="a")', "a tool call as text ('note(text=\"a\")')"),
        ("<function=note>\n<parameter=text>", "a tool call as text ('<function=note>')"),
        ("<\uff5ctool\u2581calls\u2581begin\uff5c>note", "a tool call as text"),
        ('[TOOL_CALLS][{"name": "note"}]', "a tool call as text"),
        ("Thought: go on\nAction: note", "a tool call as text ('Action: note')"),
        ("", "Your reply was empty"),
        ([], "Your reply was empty"),
    ],
)
async def test_invalid_tool_call_is_reported_to_model_and_loop_continues(
    tmp_path: Path, mistake: Any, expected: str
) -> None:
    run = await run_script(tmp_path, then_finish(mistake, call("note", text="right")))
    assert run.end is LoopEnd.FINISHED
    assert expected in run.user_texts[0]
    assert run.context.calls == ["right"]
    assert run.state.mistakes == 1
    assert all(result.is_error for result in run.results[:-2])


async def test_tool_call_in_truncated_reply_is_not_run(tmp_path: Path) -> None:
    run = await run_script(tmp_path, then_finish(call("note", text="x" * 20_000)))
    assert "not run; make it smaller" in run.user_texts[0]
    assert run.context.calls == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fail", "fail failed: ValueError: it broke"), ("refuse", "not like this")],
)
async def test_tool_that_raises_returns_error_and_rolls_back_facts(
    tmp_path: Path, name: str, expected: str
) -> None:
    run = await run_script(tmp_path, then_finish([call(name), call("note", text="after")]))
    assert run.end is LoopEnd.FINISHED
    assert expected in run.user_texts[0]
    assert run.results[0].is_error
    assert run.context.facts.of_kind("noted") == ["after"]
    assert run.state.mistakes == 0  # the call was valid


async def test_fault_of_a_tool_leaves_its_traceback(tmp_path: Path) -> None:
    run = await run_script(tmp_path, then_finish([call("refuse"), call("fail")]))
    (raised,) = (event for event in run.events if isinstance(event, ToolRaised))
    assert (raised.key, raised.tool, raised.name) == ("talk", "fail", "turn-1/tool-2")
    assert 'raise ValueError("it broke' in raised.traceback
    assert f'File "{__file__}"' in raised.traceback


async def test_tool_that_blocks_all_jobs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_MAX_STEP_S", 0.1)
    run = await run_script(tmp_path, then_finish(call("block")))
    notes = [event.text for event in run.events if isinstance(event, Note)]
    assert [text for text in notes if re.match(r"block blocked all jobs for 0\.[2-9] s", text)]
    assert run.user_texts[0] == "done"


async def test_long_tool_result_is_truncated(tmp_path: Path) -> None:
    run = await run_script(tmp_path, then_finish(call("talk")))
    assert len(run.user_texts[0]) < 400
    assert "left out" in run.user_texts[0]


async def test_tool_over_budget_ends_loop(tmp_path: Path) -> None:
    run = await run_script(tmp_path, then_finish(call("note", text="before"), call("spend")))
    assert run.end is LoopEnd.BUDGET_EXCEEDED
    assert run.context.facts.of_kind("noted") == ["before"]


async def test_loop_ends_when_budget_is_exhausted(tmp_path: Path) -> None:
    run = await run_script(tmp_path, lambda _turn, _request: call("note", text="x" * 100), usd="0.05")
    assert run.end is LoopEnd.BUDGET_EXCEEDED
    assert run.context.calls
    assert run.outcome.cost.spent.usd <= Decimal("0.05")


@pytest.mark.parametrize(
    ("reply", "end"),
    [
        ("words", LoopEnd.NO_TOOL_CALL),
        ("", LoopEnd.NO_TOOL_CALL),
        (call("nowhere"), LoopEnd.MALFORMED),
        (ScriptedReply("words", stop=StopReason.LENGTH), LoopEnd.MALFORMED),
    ],
)
async def test_loop_ends_after_consecutive_mistakes(tmp_path: Path, reply: Any, end: LoopEnd) -> None:
    run = await run_script(tmp_path, lambda _turn, _request: reply, max_mistakes_in_a_row=3)
    assert run.end is end
    assert run.state.turns == run.requests == 3


async def test_unknown_arguments_are_no_mistake(tmp_path: Path) -> None:
    run = await run_script(tmp_path, then_finish(*[call("note", text="a", loud=True)] * 5))
    assert run.end is LoopEnd.FINISHED
    assert run.user_texts[0] == "[ignored: note has no argument 'loud']\nnoted 1"


async def test_final_words_with_a_call_as_text_do_not_end_the_work(tmp_path: Path) -> None:
    script = then_finish('<tool_call>{"name": "note"}', call("note", text="a"), "Done.")
    run = await run_script(tmp_path, script, finishes_without_tool_call=True)
    assert (run.end, run.context.calls) == (LoopEnd.FINISHED, ["a"])


async def test_refusal_by_policy_ends_loop_as_the_refusal_of_a_model(tmp_path: Path) -> None:
    def script(_turn: int, _request: Request) -> Any:
        raise ModelRefused("HTTP 400: content_filter")

    run = await run_script(tmp_path, script)
    assert (run.end, run.state.end_text) == (LoopEnd.REFUSED, "HTTP 400: content_filter")


async def test_valid_call_resets_consecutive_mistakes(tmp_path: Path) -> None:
    wrong = "words"
    script = then_finish(wrong, wrong, call("note", text="a"), wrong, wrong, call("note", text="b"), wrong)
    run = await run_script(tmp_path, script, max_mistakes_in_a_row=3)
    assert run.end is LoopEnd.FINISHED
    assert run.state.mistakes == 5


async def test_turn_with_a_valid_call_is_no_mistake(tmp_path: Path) -> None:
    script = then_finish(*[[call("nowhere"), call("note", text="a")]] * 4)
    run = await run_script(tmp_path, script, max_mistakes_in_a_row=2)
    assert run.end is LoopEnd.FINISHED
    assert run.state.mistakes == 0


async def test_number_of_turns_is_limited(tmp_path: Path) -> None:
    run = await run_script(tmp_path, lambda _turn, _request: call("note", text="again"), max_turns=4)
    assert run.end is LoopEnd.MAX_TURNS
    assert run.requests == 4


async def test_model_refusal_ends_loop(tmp_path: Path) -> None:
    run = await run_script(
        tmp_path, then_finish(call("note", text="a"), ScriptedReply("no", stop=StopReason.REFUSAL))
    )
    assert run.end is LoopEnd.REFUSED
    assert run.context.facts.of_kind("noted") == ["a"]


async def test_permanent_model_error_fails_job_with_message(tmp_path: Path) -> None:
    def script(turn: int, _request: Request) -> Any:
        if turn == 2:
            raise ModelSetupError("the key is revoked")
        return call("note", text="a")

    run = await run_script(tmp_path, script)
    assert run.end is None
    assert (run.outcome.status, run.outcome.cause) == ("failed", "setup")
    assert "the key is revoked" in run.outcome.error
    assert len(run.context.calls) == 2  # earlier messages are still available


async def test_resume_after_failure_restores_facts_without_new_calls(tmp_path: Path) -> None:
    """The second session starts with an empty context, like a new process."""

    def make_script(broken: bool) -> ModelScript:
        def script(turn: int, _request: Request) -> Block | list[Block]:
            if turn == 2 and broken:
                raise ModelSetupError("for now")
            steps: list[Block | list[Block]] = [
                call("note", text="a"),
                [call("fail"), call("note", text="b", times=2)],
                call("note", text="c"),
            ]
            return steps[turn] if turn < len(steps) else call("finish")

        return script

    first = await run_script(tmp_path, make_script(broken=True))
    assert first.context.facts.of_kind("noted") == ["a", "b", "b"]
    second = await run_script(tmp_path, make_script(broken=False))
    assert second.end is LoopEnd.FINISHED
    assert second.context.calls == ["c"]
    assert second.context.facts.of_kind("noted") == ["a", "b", "b", "c"]
    assert second.requests == 2  # turns 3 and 4 only
    assert second.user_texts == [
        "noted 1",
        "fail failed: ValueError: it broke\nin two lines",
        "noted 3",
        "noted 4",
        "bye",
    ]
    third = await run_script(tmp_path, make_script(broken=False))
    assert third.outcome.resumed
    assert third.requests == 0


async def test_infrastructure_error_in_tool_is_not_recorded_as_answer(
    tmp_path: Path,
) -> None:
    MENDED.clear()
    script = then_finish(call("note", text="a"), call("contained"))
    first = await run_script(tmp_path, script)
    assert (first.outcome.status, first.outcome.cause) == ("failed", "sandbox")
    MENDED.append(True)
    second = await run_script(tmp_path, script)
    assert second.end is LoopEnd.FINISHED
    assert second.user_texts == ["noted 1", "contained", "bye"]
    assert second.requests == 1
