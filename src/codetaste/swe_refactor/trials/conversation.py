"""One prompt and its answer: the strategies ``simple`` and ``rag`` (SWE-Refactor §4.2, §4.3)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.agent.shorten import ContextWindow
from codetaste.errors import ConversationTooLong
from codetaste.llm.messages import Request, StopReason
from codetaste.swe_refactor.answers.apply import apply_answer
from codetaste.swe_refactor.answers.parse import parse_answer
from codetaste.swe_refactor.answers.problem import AnswerProblem
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind
from codetaste.swe_refactor.answers.prompt import render_feedback, render_prompt
from codetaste.swe_refactor.trials.answer import TrialAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.llm.messages import Reply
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.orchestration.job import JobContext
    from codetaste.swe_refactor.answers.edit.tree import TreeReader
    from codetaste.swe_refactor.answers.prompt import PromptExample
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.trials.context import TrialContext
    from codetaste.swe_refactor.trials.plan import StrategyTrial


@dataclass(frozen=True, slots=True)
class AppliedAnswer:
    """The text of a model as files: their whole new content by path, or why there are none."""

    files: Mapping[str, bytes]
    problem: AnswerProblem | None = None


def apply_text(text: str, instance: RefactoringInstance, tree: TreeReader) -> AppliedAnswer:
    """Return what a model's text makes of the files before. Blocking."""
    answer = parse_answer(text, instance)
    if isinstance(answer, AnswerProblem):
        return AppliedAnswer({}, answer)
    edited = apply_answer(instance, answer, tree)
    return AppliedAnswer({}, edited) if isinstance(edited, AnswerProblem) else AppliedAnswer(edited.files)


async def answer_prompt(trial: StrategyTrial, context: TrialContext, job: JobContext) -> TrialAnswer:
    """Send the prompt of an instance, and return the answer; one that cannot be used is asked for again.

    Raises:
        BudgetExceeded: a call does not fit into the budget.
        ModelError: the provider stayed unusable after all retries.
    """
    began_s, instance, tree = time.monotonic(), trial.instance, context.source(trial.instance).tree
    examples: Sequence[PromptExample] = ()
    details: dict[str, Any] = {}
    if (finder := context.finders.get(trial.strategy.title)) is not None:
        found = await finder.find(instance, job)
        examples, details = found.examples, {"examples": found.record}
    java_files = await to_thread.run_sync(lambda: () if instance.structure else tree.java_files)
    messages = await to_thread.run_sync(render_prompt, instance, context.prompts, examples, java_files)
    details["prompt"] = await job.store_text("\n\n".join(message.text for message in messages))
    model = context.models.models[trial.model_id]
    text, applied, cap = "", AppliedAnswer({}), trial.strategy.max_output_tokens
    for turn in range(1, trial.strategy.tries + 1):
        reply = await _ask(model, Request("", tuple(messages), max_output_tokens=cap), job, f"reply-{turn}")
        text, applied = await _read(reply, instance, tree)
        if applied.problem is None or reply is None or turn == trial.strategy.tries:
            break
        if reply.stop is StopReason.LENGTH:
            cap *= 4
        job.note(f"reply {turn} cannot be used: {applied.problem.sentence}")
        own = [reply.message] if reply.message.content else []
        messages = [*messages, *own, render_feedback(applied.problem, instance, context.prompts)]
    return TrialAnswer(applied.files, applied.problem, text, turn, time.monotonic() - began_s, details)


async def _ask(model: MeteredModel, request: Request, job: JobContext, name: str) -> Reply | None:
    """Return the reply; None if the model cannot take the prompt."""
    if not job.is_recorded(name) and ContextWindow(model.context_window).excess_bytes(request):
        return None
    try:
        return await model.complete(request, ctx=job, name=name)
    except ConversationTooLong:
        return None


async def _read(
    reply: Reply | None, instance: RefactoringInstance, tree: TreeReader
) -> tuple[str, AppliedAnswer]:
    if reply is None:
        sentence = "The prompt does not fit into the context window of the model."
        return "", AppliedAnswer({}, AnswerProblem(Kind.PROMPT_TOO_LONG, sentence))
    text = reply.message.text
    if reply.stop is StopReason.REFUSAL:
        return text, AppliedAnswer({}, AnswerProblem(Kind.REFUSED, "The model refuses to answer."))
    applied = await to_thread.run_sync(apply_text, text, instance, tree)
    if applied.problem is not None and reply.stop is StopReason.LENGTH:
        sentence = f"The reply was cut off at its limit of tokens. {applied.problem.sentence}"
        return text, AppliedAnswer({}, AnswerProblem(Kind.CUT_OFF, sentence))
    return text, applied


def first_request(trial: StrategyTrial, context: TrialContext) -> Request:
    """Return a request that costs no more than the first call: a prompt without examples."""
    messages = render_prompt(trial.instance, context.prompts)
    return Request("", tuple(messages), max_output_tokens=trial.strategy.max_output_tokens)
