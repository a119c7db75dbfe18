"""The judge of a multiplan trial: a plain model call that picks one plan (CodeTaste §3.5, Figure 17).

It knows the whole description, which no agent on the open track may see. So nothing of its words leaves this
job but a number; its record lies where no box is ever given anything from.
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
"""How often the judge is asked before it is given up."""
_OUTPUT_TOKENS = 4096


def judge_brief(step: Step, plans: Sequence[str], site: Site) -> Brief:
    """Return what the judge is asked."""
    task = load_prompt("judge").render(
        description=site.benchmark.description(step.trial.instance), plans=list(plans)
    )
    return Brief(system="", task=task, tools=(), max_output_tokens=_OUTPUT_TOKENS)


def opening_request(step: Step, site: Site) -> Request:
    """Return a call that asks less than any that will be made: without the plans."""
    brief = judge_brief(step, [], site)
    return brief.request(brief.opening())


def question_again(plans: int) -> str:
    """Return what the judge is asked when its answer names no single one of so many plans."""
    return load_prompt("judge_again").render(plans=plans)


async def judge(step: Step, site: Site, job: JobContext) -> Json:
    """Let the judge pick a plan; the job's value has the finish reason and the plan's number.

    Raises:
        ModelError: the provider stayed unusable after all retries.
    """
    planned: Any = job.needs[step.before[0].key]
    if not planned["plans"]:
        return _value(planned["finish_reason"], None, Effort(), job)
    texts = [await job.fetch(digest) for digest in planned["plans"]]
    brief, effort = judge_brief(step, texts, site), Effort()
    conversation, selected = Conversation(brief.opening()), None
    try:
        with job.budget.deadline() as scope:
            selected = await _asked(step, brief, len(texts), conversation, effort, site, job)
        if scope.cancelled_caught:
            job.cut_short(DeadlineExceeded("the time limit ended the judgement"))
            return _value(TIMEOUT, None, effort, job)
    except BudgetExceeded as error:
        job.cut_short(error)
        return _value(BUDGET, None, effort, job)
    finally:
        with job.cleaning_up():
            await write_transcript(site.out, job.key, step.lane, brief, conversation)
    if selected is None:
        job.note(f"the judge named no single plan, {conversation.turns} times")
    return _value(ERROR if selected is None else SUCCESS, selected, effort, job)


async def _asked(
    step: Step,
    brief: Brief,
    plans: int,
    conversation: Conversation,
    effort: Effort,
    site: Site,
    job: JobContext,
) -> int | None:
    """Ask until the answer names one plan, a bounded number of times."""
    model = site.models[step.model_id]
    while conversation.turns < ASKS:
        conversation.turns += 1
        request = brief.request(conversation.messages)
        reply = await model.complete(request, ctx=job, name=f"ask-{conversation.turns}/reply")
        effort.count(reply.usage)
        if reply.message.content:
            conversation.messages.append(reply.message)
        if reply.stop is not Stop.REFUSAL:
            selected = selected_plan(reply.message.text, plans)
            if selected is not None:
                return selected
        conversation.messages.append(Message("user", (Text(question_again(plans)),)))
    return None


def _value(reason: str, selected: int | None, effort: Effort, job: JobContext) -> Json:
    told = effort.to_json()
    return {
        "finish_reason": reason,
        "selected": selected,
        "tokens": told["tokens"],
        "start_time": told["start_time"],
        "finish_time": told["finish_time"],
        "cost_usd": exact_usd(job.budget.snapshot().spent.usd),
    }
