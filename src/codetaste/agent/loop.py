"""The tool-use loop: a model speaks, its tools answer, until it finishes or something ends it.

Every reply and every answer is an effect of the job (``orchestration/job.py``): after a crash the same loop
runs through what was recorded without buying anything twice, and goes on with the next turn. Only calls of
tools that say so are made again, for what they changed died with the process (``agent/rebuild.py``). What a
model gets wrong (a reply cut off, a call that cannot be read, a tool that does not exist) goes back to it as
an error, a bounded number of times in a row.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from codetaste.agent.rebuild import NOT_THE_MODELS, make_again
from codetaste.agent.tool import BadArguments, bound
from codetaste.errors import BudgetExceeded, ToolError
from codetaste.llm.messages import Message, Request, Stop, Text, ToolResult
from codetaste.orchestration.events import ToolCalled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.agent.facts import HasFacts
    from codetaste.agent.tool import Tool
    from codetaste.llm.messages import Reply, ToolCall
    from codetaste.orchestration.job import JobContext


CUT_OFF = "Your reply was cut off at its limit of {limit} tokens."


class End(StrEnum):
    """Why a conversation ended."""

    FINISHED = "finished"
    MAX_TURNS = "max_turns"
    NO_TOOL_CALL = "no_tool_call"
    MALFORMED = "malformed"
    REFUSED = "refused"
    BUDGET_EXCEEDED = "budget_exceeded"
    TIMEOUT = "timeout"


class Asked(Protocol):
    """Who speaks in a conversation: a metered model, or what stands in front of one."""

    async def complete(self, request: Request, *, ctx: JobContext, name: str) -> Reply:
        """Answer ``request`` as effect ``name`` of the job; see ``MeteredModel.complete``."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What an agent is told and may use. ``patience`` bounds mistakes in a row before it is given up.

    ``ends_in_words``: a reply that calls no tool says that it has finished, and is no mistake. ``prefix`` is
    what the names of its effects begin with: where a job has several conversations, each has its own.
    """

    system: str
    task: str
    tools: tuple[Tool, ...]
    max_turns: int = 80
    max_output_tokens: int = 8192
    patience: int = 4
    options: Mapping[str, Any] = field(default_factory=dict)
    ends_in_words: bool = False
    prefix: str = ""

    def opening(self) -> list[Message]:
        """Return what the conversation begins with."""
        return [Message("user", (Text(self.task),))]

    def request(self, messages: Sequence[Message]) -> Request:
        """Return what the model is asked after ``messages``."""
        return Request(
            system=self.system,
            messages=tuple(messages),
            tools=tuple(tool.spec for tool in self.tools),
            max_output_tokens=self.max_output_tokens,
            options=self.options,
        )


@dataclass(slots=True)
class Conversation:
    """A conversation as far as it has come; still readable when the loop was cancelled."""

    messages: list[Message]
    turns: int = 0
    tool_calls: int = 0
    mistakes: int = 0
    end: End | None = None


async def converse(
    brief: Brief, model: Asked, context: HasFacts, job: JobContext, conversation: Conversation
) -> End:
    """Let ``model`` work with ``brief.tools`` until it finishes, gives up, or exhausts turns or budget.

    Cancellation (a deadline) passes through; ``conversation`` then holds what was said until there.

    Raises:
        ModelError: the provider stayed unusable after all retries.
        SandboxError: a tool's command could not be contained.
        EngineError: a tool could not run the rule engine.
    """
    try:
        conversation.end = await _turns(brief, model, context, job, conversation)
    except BudgetExceeded as error:
        job.note(str(error))
        conversation.end = End.BUDGET_EXCEEDED
    return conversation.end


async def _turns(
    brief: Brief, model: Asked, context: HasFacts, job: JobContext, conversation: Conversation
) -> End:
    mistakes_in_a_row = 0
    while conversation.turns < brief.max_turns:
        conversation.turns += 1
        request = brief.request(conversation.messages)
        name = f"{brief.prefix}turn-{conversation.turns}"
        reply = await model.complete(request, ctx=job, name=f"{name}/reply")
        if reply.stop is Stop.REFUSAL:
            return End.REFUSED
        if reply.message.content:
            conversation.messages.append(reply.message)
        calls = reply.message.tool_calls
        if calls:
            answers = await _answer_all(calls, reply.stop, brief, context, job, conversation)
            conversation.messages.append(Message("user", tuple(answer.result for answer in answers)))
            if any(answer.finish for answer in answers):
                return End.FINISHED
            mistaken = all(answer.mistake for answer in answers)
        elif brief.ends_in_words and reply.message.text.strip() and reply.stop is not Stop.LENGTH:
            return End.FINISHED
        else:
            conversation.messages.append(Message("user", (Text(_nudge(reply, brief)),)))
            mistaken = True
        mistakes_in_a_row = mistakes_in_a_row + 1 if mistaken else 0
        conversation.mistakes += mistaken
        if mistakes_in_a_row >= brief.patience:
            return End.MALFORMED if calls or reply.stop is Stop.LENGTH else End.NO_TOOL_CALL
    return End.MAX_TURNS


def _nudge(reply: Reply, brief: Brief) -> str:
    """What to tell a model that did not call a tool."""
    if reply.stop is Stop.LENGTH:
        return f"{CUT_OFF.format(limit=brief.max_output_tokens)} Go on in smaller steps."
    if not reply.message.content:
        return "Your reply was empty. Go on with a tool call."
    names = ", ".join(tool.spec.name for tool in brief.tools)
    return f"Your reply called no tool, so nothing happened. Work by calling tools ({names})."


@dataclass(frozen=True, slots=True)
class _Answered:
    """A tool call's answer; ``mistake`` when the call itself was wrong and nothing was run."""

    result: ToolResult
    mistake: bool = False
    finish: bool = False


async def _answer_all(
    calls: Sequence[ToolCall],
    stop: Stop,
    brief: Brief,
    context: HasFacts,
    job: JobContext,
    conversation: Conversation,
) -> list[_Answered]:
    """Answer the calls of one turn in their order: an earlier one may change what a later one sees."""
    tools = {tool.spec.name: tool for tool in brief.tools}
    answers: list[_Answered] = []
    for number, call in enumerate(calls, 1):
        if stop is Stop.LENGTH:
            fault = f"{CUT_OFF.format(limit=brief.max_output_tokens)} This call was not run; make it smaller."
        elif call.fault is not None:
            fault = f"This call could not be read and was not run: {call.fault}"
        elif call.name not in tools:
            fault = f"There is no tool {call.name!r}. Tools: {', '.join(tools)}."
        else:
            name = f"{brief.prefix}turn-{conversation.turns}/tool-{number}"
            answers.append(await _run_tool(tools[call.name], call, context, job, name))
            conversation.tool_calls += 1
            continue
        answers.append(_Answered(ToolResult(call.id, fault, is_error=True), mistake=True))
    return answers


async def _run_tool(tool: Tool, call: ToolCall, context: HasFacts, job: JobContext, name: str) -> _Answered:
    """Run one tool, or take its answer and its facts from the journal."""
    replayed = job.recorded(name)

    async def run() -> dict[str, Any]:
        content, is_error, mistake, finish = "", False, False, False
        began_s = time.monotonic()
        try:
            answer = await tool.call(context, call.arguments)
            content, finish = answer.text, answer.finish
        except BadArguments as error:
            content, is_error, mistake = str(error), True, True
        except ToolError as error:
            content, is_error = str(error), True
        except NOT_THE_MODELS:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool that fails must not end the run
            content, is_error = f"{call.name} failed: {type(error).__name__}: {error}", True
            job.note(content)
        job.publish(ToolCalled(job.key, call.name, name, time.monotonic() - began_s, is_error))
        if is_error:
            context.facts.drop_pending()
        return {
            "content": bound(content, tool.output_limit),
            "is_error": is_error,
            "mistake": mistake,
            "finish": finish,
            "facts": context.facts.take_pending(),
        }

    recorded: Any = await job.effect(name, run)
    if replayed:
        if tool.rebuilds and not recorded["mistake"]:
            await make_again(tool, call, context, job, name, recorded)
        context.facts.restore(recorded["facts"])
    return _Answered(
        ToolResult(call.id, recorded["content"], is_error=recorded["is_error"]),
        mistake=recorded["mistake"],
        finish=recorded["finish"],
    )
