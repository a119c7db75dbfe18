"""The judge of a multiplan trial: a plain model call that picks one plan (CodeTaste §3.5, Figure 17).

The judge gets the whole description, which no agent on the open track may see. So only the number of a plan
leaves this job, and the judge's transcript is in a folder from which no sandbox gets any file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from codetaste.agent.loop import AgentState, LoopSettings
from codetaste.benchmark.layout import FinishReason
from codetaste.core.units import format_exact_usd
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.flows.agents.result import AgentRunResult
from codetaste.flows.transcript import write_transcript
from codetaste.llm.messages import Message, StopReason, TextBlock
from codetaste.llm.prompts import load_prompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.flows.agents.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.llm.messages import Request
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


MAX_JUDGE_CALLS = 3
"""Judge calls without a usable answer before the step fails."""

_OUTPUT_TOKENS = 4096


def judge_settings(step: Step, plans: Sequence[str], context: InferenceContext) -> LoopSettings:
    """Return the prompt and the limits of the judge's call."""
    task = load_prompt("judge").render(
        description=context.benchmark.description(step.trial.instance), plans=list(plans)
    )
    return LoopSettings(system="", task=task, tools=(), max_output_tokens=_OUTPUT_TOKENS)


def opening_request(step: Step, context: InferenceContext) -> Request:
    """Return a request without the plans, which costs less than any request that will be made."""
    settings = judge_settings(step, [], context)
    return settings.build_request(settings.first_messages())


def repeated_question(plans: int) -> str:
    """Return the question after an answer that does not name exactly one of ``plans`` plans."""
    return load_prompt("judge_again").render(plans=plans)


async def judge(step: Step, context: InferenceContext, job: JobContext) -> Json:
    """Let the judge pick a plan and return the job's value: the finish reason and the plan's number (from 0).

    Raises:
        ModelError: the provider stayed unusable after all retries.
    """
    planned: Any = job.needs[step.previous_steps[0].key]
    if not planned["plans"]:
        return _value(planned["finish_reason"], None, AgentRunResult(), job)
    texts = [await job.load_text(digest) for digest in planned["plans"]]
    settings, result = judge_settings(step, texts, context), AgentRunResult()
    state, selected = AgentState(settings.first_messages()), None
    try:
        with job.budget.deadline() as scope:
            selected = await _select_plan(step, settings, len(texts), state, result, context, job)
        if scope.cancelled_caught:
            job.end_early(DeadlineExceeded("the time limit was reached in the judge step"))
            return _value(FinishReason.TIMEOUT, None, result, job)
    except BudgetExceeded as error:
        job.end_early(error)
        return _value(FinishReason.BUDGET_EXCEEDED, None, result, job)
    finally:
        with job.cleanup_scope():
            await write_transcript(context.out, job.key, step.lane, settings, state)
    if selected is None:
        job.note(f"the judge did not name exactly one plan in {state.turns} answers")
    return _value(
        FinishReason.ERROR_JUDGE if selected is None else FinishReason.SUCCESS, selected, result, job
    )


async def _select_plan(
    step: Step,
    settings: LoopSettings,
    plans: int,
    state: AgentState,
    result: AgentRunResult,
    context: InferenceContext,
    job: JobContext,
) -> int | None:
    """Call the judge up to ``MAX_JUDGE_CALLS`` times; return a plan's number, None if no answer names one."""
    model = context.models[step.model_id]
    while state.turns < MAX_JUDGE_CALLS:
        state.turns += 1
        request = settings.build_request(state.messages)
        reply = await model.complete(request, ctx=job, name=f"ask-{state.turns}/reply")
        result.add_usage(reply.usage)
        if reply.message.content:
            state.messages.append(reply.message)
        if reply.stop is not StopReason.REFUSAL:
            selected = selected_plan(reply.message.text, plans)
            if selected is not None:
                return selected
        state.messages.append(Message("user", (TextBlock(repeated_question(plans)),)))
    return None


def _value(reason: str, selected: int | None, result: AgentRunResult, job: JobContext) -> Json:
    data = result.to_json()
    return {
        "finish_reason": reason,
        "selected": selected,
        "tokens": data["tokens"],
        "start_time": data["start_time"],
        "finish_time": data["finish_time"],
        "cost_usd": format_exact_usd(job.budget.snapshot().spent.usd),
    }


_MARK = r"[*_`'\"\[\](){}<>#]"

_BEGINS_LINE = rf"^[ \t]*(?:[-+>][ \t]+)*{_MARK}*[ \t]*Selected"

_STATEMENT = re.compile(
    rf"""
    (?: (?<![A-Za-z0-9]) SELECTED | {_BEGINS_LINE} )
    (?: [ \t]+ (?i:plan) )?
    (?: \s | {_MARK} ){{0,20}} [:\uff1a] (?: \s | {_MARK} ){{0,20}}
    (?: (?i: (?:refactoring_)? plan (?: [ \t]+ (?: number | no\.? ) )? ) (?: [ \t_:-] | {_MARK} ){{0,20}} )?
    (?P<number> \d+ )
    (?P<rest> [^\n]{{0,80}} )
    """,
    re.VERBOSE | re.MULTILINE,
)

_NOT_ALONE = re.compile(
    rf"\w|[.,:]\d|%|{_MARK}*[ \t]*(?:[,;/&+–—-]|(?:and|or|to)\b)[ \t]*{_MARK}*(?:plans?[ \t]*)?{_MARK}*\d",
    re.IGNORECASE,
)
"""Text after a number which shows that the number is not a whole number, or that another one is named."""


def selected_plan(answer: str, plans: int) -> int | None:
    """Return the plan (from 0, below ``plans``) that ``answer`` states; None unless it states exactly one."""
    stated: set[int | None] = set()
    for match in _STATEMENT.finditer(answer):
        digits = match["number"]
        whole = len(digits) < 4 and not _NOT_ALONE.match(match["rest"])  # noqa: PLR2004 - under 1,000 plans
        stated.add(int(digits) if whole and int(digits) < plans else None)
    return stated.pop() if len(stated) == 1 else None
