"""The tool-use loop: call the model, run its tool calls, and repeat until it finishes or a limit is reached.

Every reply and every tool answer is an effect of the job (``orchestration/job.py``). After a crash the loop
reads the recorded effects without paying for any of them twice, and continues with the next turn. Only calls
of tools with ``replay_on_resume`` are repeated, because their changes were lost with the process
(``agent/replay.py``). Mistakes of the model (a truncated reply, an unreadable call, an unknown tool) are
returned to it as errors, a limited number of times in a row.

A conversation that fills the model's context window, or that the provider refuses as too long, is shortened
by rule (``agent/shorten.py``) before the next request; what is left out is an effect, too.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from codetaste.agent.replay import INFRASTRUCTURE_ERRORS, replay_tool_call
from codetaste.agent.shorten import ContextWindow, Edits, plan_edits
from codetaste.agent.tool import BadArguments, call_in_text, truncate
from codetaste.core.concurrency import StepTimer
from codetaste.errors import BudgetExceeded, Cause, ConversationTooLong, ModelRefused, ToolError
from codetaste.llm.messages import Message, Request, StopReason, TextBlock, ToolResult
from codetaste.orchestration.events import ToolCalled, ToolRaised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.agent.facts import HasFacts
    from codetaste.agent.tool import Tool
    from codetaste.llm.messages import Reply, ToolCall
    from codetaste.orchestration.job import JobContext


_MAX_STEP_S = 1.0
"""A tool that lets no other job run for longer is named."""
_MAX_END_TEXT = 300
_CONTEXT_FULL = "the conversation does not fit into the model's context window, however short it is made"
CUT_OFF_MESSAGE = "Your reply was cut off at its limit of {limit} tokens."


class LoopEnd(StrEnum):
    """Why a loop ended."""

    FINISHED = "finished"
    MAX_TURNS = "max_turns"
    NO_TOOL_CALL = "no_tool_call"
    MALFORMED = "malformed"
    REFUSED = "refused"
    BUDGET_EXCEEDED = "budget_exceeded"
    TIMEOUT = "timeout"
    REPEATED = "repeated"
    """It only repeated what it had submitted before."""
    CONTEXT_FULL = "context_full"
    """The conversation does not fit into the model's context window, however short it is made."""

    @property
    def by_limit(self) -> bool:
        """Whether a limit ended the loop, not the agent or its model."""
        limits = {LoopEnd.MAX_TURNS, LoopEnd.CONTEXT_FULL, LoopEnd.BUDGET_EXCEEDED, LoopEnd.TIMEOUT}
        return self in limits


class ChatModel(Protocol):
    """The model of a loop: a metered model, or a wrapper of one."""

    async def complete(self, request: Request, *, ctx: JobContext, name: str) -> Reply:
        """Return the reply to ``request``, as effect ``name`` of the job; see ``MeteredModel.complete``."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """Prompts, tools and limits of a loop.

    Attributes:
        system: system prompt.
        task: first user message.
        tools: tools that the model may call.
        max_turns: limit of model calls.
        max_output_tokens: limit of one reply.
        context_window: tokens of prompt and reply together that the model can take; None if it is not known.
        max_mistakes_in_a_row: the loop ends after so many turns in a row that contain only mistakes.
        options: provider options of each request.
        finishes_without_tool_call: a reply without tool call ends the loop and is not a mistake.
        effect_prefix: start of the effect names; each loop of a job needs its own.
    """

    system: str
    task: str
    tools: tuple[Tool, ...]
    max_turns: int = 80
    max_output_tokens: int = 8192
    context_window: int | None = None
    max_mistakes_in_a_row: int = 4
    options: Mapping[str, Any] = field(default_factory=dict)
    finishes_without_tool_call: bool = False
    effect_prefix: str = ""

    def first_messages(self) -> list[Message]:
        """Return the messages before the first turn."""
        return [Message("user", (TextBlock(self.task),))]

    def build_request(self, messages: Sequence[Message]) -> Request:
        """Return the request for the reply to ``messages``."""
        return Request(
            system=self.system,
            messages=tuple(messages),
            tools=tuple(tool.spec for tool in self.tools),
            max_output_tokens=self.max_output_tokens,
            options=self.options,
        )


@dataclass(slots=True)
class AgentState:
    """Messages and counts of a loop so far; valid also after the loop was cancelled.

    Attributes:
        messages: all messages.
        conversation: those that the model gets; older ones may be shortened or left out.
        repeats: calls in a row that only repeat earlier ones, by tool.
        end: why the loop ended.
        end_text: more about it, in one line.
    """

    messages: list[Message]
    conversation: list[Message] = field(init=False)
    turns: int = 0
    tool_calls: int = 0
    mistakes: int = 0
    repeats: dict[str, int] = field(default_factory=dict)
    end: LoopEnd | None = None
    end_text: str = ""

    def __post_init__(self) -> None:
        self.conversation = [*self.messages]

    def add(self, message: Message) -> None:
        """Add a message."""
        self.messages.append(message)
        self.conversation.append(message)


async def run_loop(
    settings: LoopSettings, model: ChatModel, context: HasFacts, job: JobContext, state: AgentState
) -> LoopEnd:
    """Run ``model`` with ``settings.tools`` until it finishes or a limit is reached.

    Cancellation (a deadline) passes through; ``state`` then holds the messages so far.

    Raises:
        ModelError: the provider still failed after all retries.
        SandboxError: the sandbox or its containment failed.
        EngineError: the rule engine failed.
    """
    try:
        state.end = await _turns(settings, model, context, job, state)
    except BudgetExceeded as error:
        job.note(str(error))
        state.end, state.end_text = LoopEnd.BUDGET_EXCEEDED, str(error)
    except ModelRefused as error:
        if error.cause is not Cause.REFUSED:
            raise
        state.end, state.end_text = LoopEnd.REFUSED, str(error)
    return state.end


async def _turns(
    settings: LoopSettings, model: ChatModel, context: HasFacts, job: JobContext, state: AgentState
) -> LoopEnd:
    mistakes_in_a_row, window = 0, ContextWindow(settings.context_window)
    while state.turns < settings.max_turns:
        state.turns += 1
        reply = await _ask(settings, model, window, job, state)
        if reply is None:
            state.end_text = _CONTEXT_FULL
            return LoopEnd.CONTEXT_FULL
        if reply.stop is StopReason.REFUSAL:
            state.end_text = _first_line(reply.message.text) or "the provider reports a refusal"
            return LoopEnd.REFUSED
        if reply.message.content:
            state.add(reply.message)
        calls = reply.message.tool_calls
        if calls:
            answers = await _run_tools(calls, reply.stop, settings, context, job, state)
            state.add(Message("user", tuple(answer.result for answer in answers)))
            if any(answer.finish for answer in answers):
                return LoopEnd.FINISHED
            mistaken = all(answer.mistake for answer in answers)
        elif (
            settings.finishes_without_tool_call
            and reply.message.text.strip()
            and reply.stop is not StopReason.LENGTH
            and (mistakes_in_a_row or not call_in_text(reply.message.text, settings.tools))
        ):
            return LoopEnd.FINISHED
        else:
            state.add(Message("user", (TextBlock(_continue_prompt(reply, settings)),)))
            mistaken = True
        mistakes_in_a_row = mistakes_in_a_row + 1 if mistaken else 0
        state.mistakes += mistaken
        if max(mistakes_in_a_row, *state.repeats.values(), 0) >= settings.max_mistakes_in_a_row:
            return _end_by_faults(mistakes_in_a_row, reply, state)
    state.end_text = f"the limit of {settings.max_turns} turns was reached"
    return LoopEnd.MAX_TURNS


def _end_by_faults(mistakes: int, reply: Reply, state: AgentState) -> LoopEnd:
    """Return the end after ``mistakes`` turns in a row without a usable tool call, or after repetitions."""
    repeats, tool = max(((count, name) for name, count in state.repeats.items()), default=(0, ""))
    what = _first_line(reply.message.text)
    if repeats > mistakes:
        state.end_text = f"{repeats} calls of {tool} in a row only repeated earlier ones"
        return LoopEnd.REPEATED
    if reply.message.tool_calls:
        faults = (block.content for block in state.messages[-1].content if isinstance(block, ToolResult))
        state.end_text = (
            f"{mistakes} turns in a row had no usable tool call; the last: {_first_line(next(faults, ''))}"
        )
        return LoopEnd.MALFORMED
    state.end_text = f"{mistakes} replies were empty"
    if what:
        state.end_text = f"{mistakes} turns in a row called no tool; the last: {what!r}"
    return LoopEnd.MALFORMED if reply.stop is StopReason.LENGTH else LoopEnd.NO_TOOL_CALL


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return truncate(lines[0], _MAX_END_TEXT) if lines else ""


async def _ask(
    settings: LoopSettings, model: ChatModel, window: ContextWindow, job: JobContext, state: AgentState
) -> Reply | None:
    """Return the reply to the conversation, shortened if need be; None if it stays too long for the model."""
    turn = f"{settings.effect_prefix}turn-{state.turns}"
    shortened = refused_bytes = 0
    while True:
        request = window.fit(settings.build_request(state.conversation))
        effect = f"{turn}/shorten-{shortened + 1}"
        excess_bytes = 0
        if not job.is_recorded(f"{turn}/reply"):
            excess_bytes = refused_bytes or window.excess_bytes(request)
        edits = plan_edits(state.conversation, excess_bytes) if excess_bytes else Edits()
        if job.is_recorded(effect) or edits != Edits():
            edits = await _record_edits(edits, window, job, effect)
            state.conversation = edits.apply(state.conversation)
            shortened, refused_bytes = shortened + 1, 0
            continue
        if refused_bytes:
            return None
        try:
            reply = await model.complete(request, ctx=job, name=f"{turn}/reply")
        except ConversationTooLong as error:
            job.note(str(error))
            refused_bytes = window.learn_refusal(request)
            continue
        window.learn(request, reply.usage)
        return reply


async def _record_edits(edits: Edits, window: ContextWindow, job: JobContext, effect: str) -> Edits:
    """Record what is left out of a conversation, or return what was left out before a crash.

    The record has the size of the window too, as it may be known from a refusal only.
    """

    async def shorten() -> dict[str, Any]:
        job.note(f"the conversation is too long for the model and is shortened: {edits.describe()}")
        return {**edits.to_json(), "window": window.tokens}

    recorded: Any = await job.effect(effect, shorten)
    window.tokens = recorded["window"]
    return Edits.from_json(recorded)


def _continue_prompt(reply: Reply, settings: LoopSettings) -> str:
    if reply.stop is StopReason.LENGTH:
        return f"{CUT_OFF_MESSAGE.format(limit=settings.max_output_tokens)} Go on in smaller steps."
    if not reply.message.content:
        return "Your reply was empty. Go on with a tool call."
    names = ", ".join(tool.spec.name for tool in settings.tools)
    if found := call_in_text(reply.message.text, settings.tools):
        return (
            f"Your reply has a tool call as text ({found!r}), which is not run. Call the tool itself, by the "
            f"tool interface, not in the text of a reply (tools: {names})."
        )
    return f"Your reply called no tool, so nothing happened. Work by calling tools ({names})."


@dataclass(frozen=True, slots=True)
class _ToolOutcome:
    """The result of a tool call; ``mistake``: the call was invalid and nothing was run."""

    result: ToolResult
    mistake: bool = False
    finish: bool = False
    repeats: bool = False


async def _run_tools(
    calls: Sequence[ToolCall],
    stop: StopReason,
    settings: LoopSettings,
    context: HasFacts,
    job: JobContext,
    state: AgentState,
) -> list[_ToolOutcome]:
    """Run the calls of one turn in order: an earlier call may affect a later one."""
    tools = {tool.spec.name: tool for tool in settings.tools}
    answers: list[_ToolOutcome] = []
    for number, call in enumerate(calls, 1):
        if stop is StopReason.LENGTH:
            cut_off = CUT_OFF_MESSAGE.format(limit=settings.max_output_tokens)
            fault = f"{cut_off} This call was not run; make it smaller."
        elif call.fault is not None:
            fault = f"This call could not be read and was not run: {call.fault}"
        elif call.name not in tools:
            fault = f"There is no tool {call.name!r}. Tools: {', '.join(tools)}."
        else:
            name = f"{settings.effect_prefix}turn-{state.turns}/tool-{number}"
            answers.append(await _run_tool(tools[call.name], call, context, job, name))
            state.repeats[call.name] = state.repeats.get(call.name, 0) + 1 if answers[-1].repeats else 0
            state.tool_calls += 1
            continue
        answers.append(_ToolOutcome(ToolResult(call.id, fault, is_error=True), mistake=True))
    return answers


async def _run_tool(
    tool: Tool, call: ToolCall, context: HasFacts, job: JobContext, name: str
) -> _ToolOutcome:
    """Run one tool call, or take its answer and facts from the journal."""
    replayed = job.is_recorded(name)

    async def run() -> dict[str, Any]:
        content, is_error, mistake, finish, repeats = "", False, False, False, False
        began_s = time.monotonic()
        timer = StepTimer(tool.call(context, call.arguments))
        try:
            answer = await timer
            content, finish, repeats = answer.text, answer.finish, answer.repeats
        except BadArguments as error:
            content, is_error, mistake = str(error), True, True
        except ToolError as error:
            content, is_error = str(error), True
        except INFRASTRUCTURE_ERRORS:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a failing tool must not end the run
            content, is_error = f"{call.name} failed: {type(error).__name__}: {error}", True
            trace = "".join(traceback.format_exception(error))
            job.publish(ToolRaised(job.key, call.name, name, trace))
            job.note(content)
        if timer.longest_s > _MAX_STEP_S:
            job.note(
                f"{call.name} blocked all jobs for {timer.longest_s:.1f} s: await what takes time, "
                "or run it in a thread"
            )
        job.publish(ToolCalled(job.key, call.name, name, time.monotonic() - began_s, is_error))
        if is_error:
            context.facts.drop_pending()
        return {
            "content": truncate(content, tool.output_limit),
            "is_error": is_error,
            "mistake": mistake,
            "finish": finish,
            "repeats": repeats,
            "facts": context.facts.take_pending(),
        }

    recorded: Any = await job.effect(name, run)
    if replayed:
        if tool.replay_on_resume and not recorded["mistake"]:
            await replay_tool_call(tool, call, context, job, name, recorded)
        context.facts.restore(recorded["facts"])
    return _ToolOutcome(
        ToolResult(call.id, recorded["content"], is_error=recorded["is_error"]),
        mistake=recorded["mistake"],
        finish=recorded["finish"],
        repeats=recorded.get("repeats", False),
    )
