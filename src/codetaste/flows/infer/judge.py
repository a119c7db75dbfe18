"""The judge of a multiplan trial: a plain model call that picks one plan (CodeTaste §3.5, Figure 17).

The judge gets the whole description, which no agent on the open track may see. So only the number of a plan
gets into a later prompt; the judge's answer and transcript are in folders that no sandbox gets.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.agent.loop import AgentState, LoopSettings
from codetaste.agent.shorten import ContextWindow
from codetaste.agent.tool import truncate
from codetaste.benchmark.layout import FinishReason
from codetaste.core.units import format_exact_usd
from codetaste.errors import BudgetExceeded, ConversationTooLong, DeadlineExceeded
from codetaste.flows.agents.result import AgentRunResult
from codetaste.flows.agents.transcript import write_transcript
from codetaste.flows.describe.result import take_descriptions
from codetaste.flows.infer.results import JudgeResult, PlanResult
from codetaste.llm.messages import Message, StopReason, TextBlock
from codetaste.orchestration.shortfall import Shortfall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.flows.infer.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.llm.messages import Reply, Request
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


MAX_JUDGE_CALLS = 3
"""Judge calls without a usable answer before the step fails."""

CUT_OFF = "; the last one was cut at its limit: raise judge_max_output_tokens in [[tracks]]"
MIN_PLAN_CHARS = 400
"""A plan is not cut to fewer characters; a choice between shorter ones would say nothing."""


def judge_settings(step: Step, plans: Sequence[str], context: InferenceContext) -> LoopSettings:
    """Return the prompt and the limits of the judge's call."""
    task = context.prompts.load("judge").render(
        description=context.benchmark.description(step.trial.instance), plans=list(plans)
    )
    cap = step.trial.track.judge_max_output_tokens
    return LoopSettings(system="", task=task, tools=(), max_output_tokens=cap)


def opening_request(step: Step, context: InferenceContext) -> Request:
    """Return a request without the plans, which costs less than any request that will be made."""
    settings = judge_settings(step, [], context)
    return settings.build_request(settings.first_messages())


def repeated_question(plans: int, context: InferenceContext) -> str:
    """Return the question after an answer that does not name exactly one of ``plans`` plans."""
    return context.prompts.load("judge_again").render(plans=plans)


async def judge(step: Step, context: InferenceContext, job: JobContext) -> Json:
    """Let the judge pick a plan and return the job's value: the finish reason and the plan's number (from 0).

    Raises:
        ModelError: the provider stayed unusable after all retries.
    """
    await take_descriptions(step.trial.instance, context.benchmark, job)
    planned, result = PlanResult.from_json(job.needs[step.previous_steps[0].key]), AgentRunResult()
    if not planned.plans:
        job.fall_short(
            Shortfall(planned.finish_reason.value, planned.problem, planned.finish_reason.by_limit)
        )
        return await _value(planned.finish_reason, None, result, job)
    texts = [await job.load_text(digest) for digest in planned.plans]
    question, settings = _Question(step, texts, context, result), judge_settings(step, texts, context)
    window = ContextWindow(context.models.models[step.model_id].context_window)
    state, selected, cut = AgentState(settings.first_messages()), None, ""
    again = repeated_question(len(texts), context)
    try:
        with job.budget.deadline() as scope:
            while selected is None and not cut and state.turns < MAX_JUDGE_CALLS:
                state.turns += 1
                reply = await _ask(question, window, job, state)
                selected = _take_reply(reply, state, len(texts), again)
                cut = CUT_OFF if reply.stop is StopReason.LENGTH else ""
        if scope.cancelled_caught:
            job.end_early(DeadlineExceeded("the time limit was reached in the judge step"))
            return await _value(FinishReason.TIMEOUT, None, result, job, state)
    except BudgetExceeded as error:
        job.end_early(error)
        return await _value(FinishReason.BUDGET_EXCEEDED, None, result, job, state)
    except ConversationTooLong as error:
        _fail(f"the judge cannot read the plans, however short they are cut: {error}", job)
        return await _value(FinishReason.ERROR_JUDGE, None, result, job, state)
    finally:
        with job.cleanup_scope():
            await write_transcript(context.out, job.key, step.lane, settings, state)
    if selected is None:
        _fail(f"the judge did not name exactly one plan in {state.turns} answers{cut}", job)
    reason = FinishReason.ERROR_JUDGE if selected is None else FinishReason.SUCCESS
    return await _value(reason, selected, result, job, state)


def _fail(why: str, job: JobContext) -> None:
    job.note(why)
    job.fall_short(Shortfall(FinishReason.ERROR_JUDGE.value, why))


@dataclass(slots=True)
class _Question:
    """The question of a step; the plans may be cut."""

    step: Step
    plans: Sequence[str]
    context: InferenceContext
    result: AgentRunResult

    def settings(self) -> LoopSettings:
        return judge_settings(self.step, self.plans, self.context)


async def _ask(question: _Question, window: ContextWindow, job: JobContext, state: AgentState) -> Reply:
    """Return the judge's reply; if its model cannot take so much, all plans are cut to one length.

    Raises:
        ConversationTooLong: it cannot take the shortest plans either.
    """
    model, call = question.context.models.models[question.step.model_id], f"call-{state.turns}"
    cuts, too_long = 0, None
    while True:
        request = window.fit(question.settings().build_request(state.conversation))
        effect = f"{call}/shorten-{cuts + 1}"
        excess_bytes = 0
        if not job.is_recorded(f"{call}/reply"):
            excess_bytes = window.learn_refusal(request) if too_long else window.excess_bytes(request)
        plan_chars = _plan_chars(question.plans, excess_bytes) if excess_bytes else None
        if plan_chars is not None or job.is_recorded(effect):
            plan_chars = await _record_cut(plan_chars, window, job, effect)
            question.plans = [truncate(plan, plan_chars) for plan in question.plans]
            first, later = question.settings().first_messages(), state.conversation[1:]
            state.conversation = [*first, *(message.without_thinking() for message in later)]
            cuts, too_long = cuts + 1, None
            continue
        if too_long is not None:
            raise too_long
        try:
            reply = await model.complete_whole(
                request,
                ctx=job,
                name=f"{call}/reply",
                usable=lambda text: selected_plan(text, len(question.plans)) is not None,
                on_reply=lambda reply: question.result.add_usage(reply.usage),
            )
        except ConversationTooLong as error:
            job.note(str(error))
            too_long = error
            continue
        window.learn(request, reply.usage)
        return reply


def _plan_chars(plans: Sequence[str], excess_bytes: int) -> int | None:
    """Return the length in characters to which all plans are cut; None if they are that short already."""
    left = sum(map(len, plans)) - excess_bytes
    lengths = range(MIN_PLAN_CHARS, max(map(len, plans)))
    fitting = bisect_right(lengths, left, key=lambda length: sum(min(len(plan), length) for plan in plans))
    chars = lengths[max(0, fitting - 1)] if lengths else MIN_PLAN_CHARS
    cut = [truncate(plan, chars) for plan in plans]
    return chars if sum(map(len, cut)) < sum(map(len, plans)) else None


async def _record_cut(plan_chars: int | None, window: ContextWindow, job: JobContext, effect: str) -> int:
    """Record the length to which all plans are cut, or return that recorded before a crash."""

    async def cut() -> dict[str, Any]:
        job.note(f"the plans are too long for the judge's model: each is cut to {plan_chars:,} characters")
        return {"plan_chars": plan_chars, "window": window.tokens}

    recorded: Any = await job.effect(effect, cut)
    window.tokens = recorded["window"]
    return int(recorded["plan_chars"])


def _take_reply(reply: Reply, state: AgentState, plans: int, again: str) -> int | None:
    """Return the number of the plan that the reply names; without one, add the question ``again``."""
    if reply.message.content:
        state.add(reply.message)
    refused = reply.stop is StopReason.REFUSAL
    selected = None if refused else selected_plan(reply.message.text, plans)
    if selected is None:
        state.add(Message("user", (TextBlock(again),)))
    return selected


async def _value(
    reason: FinishReason,
    selected: int | None,
    result: AgentRunResult,
    job: JobContext,
    state: AgentState | None = None,
) -> Json:
    data = result.to_json()
    cost_usd = format_exact_usd(job.budget.snapshot().spent.usd)
    replies = [message.text for message in state.messages if message.role == "assistant"] if state else []
    answer = await job.store_text(replies[-1]) if replies else ""
    return JudgeResult(
        reason, selected, data["tokens"], data["start_time"], data["finish_time"], cost_usd, answer
    ).to_json()


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
