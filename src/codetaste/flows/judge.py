"""The judge of a multiplan trial: a plain model call that picks one plan (CodeTaste §3.5, Figure 17).

The judge gets the whole description, which no agent on the open track may see. So only the number of a plan
leaves this job, and the judge's transcript is in a folder from which no sandbox gets any file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.agent.loop import Brief, Conversation
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.flows.effort import BUDGET, SUCCESS, TIMEOUT, Effort
from codetaste.flows.selection import selected_plan
from codetaste.flows.transcript import write_transcript
from codetaste.llm.messages import Message, Stop, Text
from codetaste.llm.prompts import load_prompt
from codetaste.units import exact_usd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.flows.site import Site
    from codetaste.flows.trials import Step
    from codetaste.llm.messages import Request
    from codetaste.orchestration.job import JobContext, Json

ERROR = "error_judge"
ASKS = 3
"""Judge calls without a usable answer before the step fails."""
_OUTPUT_TOKENS = 4096


def judge_brief(step: Step, plans: Sequence[str], context: Site) -> Brief:
    """Return the prompt and the limits of the judge's call."""
    task = load_prompt("judge").render(
        description=context.benchmark.description(step.trial.instance), plans=list(plans)
    )
    return Brief(system="", task=task, tools=(), max_output_tokens=_OUTPUT_TOKENS)


def opening_request(step: Step, context: Site) -> Request:
    """Return a request without the plans, which costs less than any request that will be made."""
    settings = judge_brief(step, [], context)
    return settings.request(settings.opening())


def question_again(plans: int) -> str:
    """Return the question after an answer that does not name exactly one of ``plans`` plans."""
    return load_prompt("judge_again").render(plans=plans)


async def judge(step: Step, context: Site, job: JobContext) -> Json:
    """Let the judge pick a plan and return the job's value: the finish reason and the plan's number (from 0).

    Raises:
        ModelError: the provider stayed unusable after all retries.
    """
    planned: Any = job.needs[step.before[0].key]
    if not planned["plans"]:
        return _value(planned["finish_reason"], None, Effort(), job)
    texts = [await job.fetch(digest) for digest in planned["plans"]]
    settings, result = judge_brief(step, texts, context), Effort()
    state, selected = Conversation(settings.opening()), None
    try:
        with job.budget.deadline() as scope:
            selected = await _select_plan(step, settings, len(texts), state, result, context, job)
        if scope.cancelled_caught:
            job.cut_short(DeadlineExceeded("the time limit was reached in the judge step"))
            return _value(TIMEOUT, None, result, job)
    except BudgetExceeded as error:
        job.cut_short(error)
        return _value(BUDGET, None, result, job)
    finally:
        with job.cleaning_up():
            await write_transcript(context.out, job.key, step.lane, settings, state)
    if selected is None:
        job.note(f"the judge did not name exactly one plan in {state.turns} answers")
    return _value(ERROR if selected is None else SUCCESS, selected, result, job)


async def _select_plan(
    step: Step,
    settings: Brief,
    plans: int,
    state: Conversation,
    result: Effort,
    context: Site,
    job: JobContext,
) -> int | None:
    """Call the judge up to ``MAX_JUDGE_CALLS`` times; return a plan's number, None if no answer names one."""
    model = context.models[step.model_id]
    while state.turns < ASKS:
        state.turns += 1
        request = settings.request(state.messages)
        reply = await model.complete(request, ctx=job, name=f"ask-{state.turns}/reply")
        result.count(reply.usage)
        if reply.message.content:
            state.messages.append(reply.message)
        if reply.stop is not Stop.REFUSAL:
            selected = selected_plan(reply.message.text, plans)
            if selected is not None:
                return selected
        state.messages.append(Message("user", (Text(question_again(plans)),)))
    return None


def _value(reason: str, selected: int | None, result: Effort, job: JobContext) -> Json:
    data = result.to_json()
    return {
        "finish_reason": reason,
        "selected": selected,
        "tokens": data["tokens"],
        "start_time": data["start_time"],
        "finish_time": data["finish_time"],
        "cost_usd": exact_usd(job.budget.snapshot().spent.usd),
    }
