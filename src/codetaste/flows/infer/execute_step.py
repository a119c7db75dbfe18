"""The execute step of a trial: an agent changes the code, and the host extracts the patch from its sandbox.

The patch is extracted however the run ends. If the budget or the time limit ended it, that patch is the
trial's outcome. If the run was stopped or the sandbox was lost, the partial patch is written and the job has
no result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import FinishReason, Track
from codetaste.core.text import plural
from codetaste.core.units import format_size
from codetaste.errors import BudgetExceeded, CodetasteError, DeadlineExceeded, JournalError
from codetaste.flows.agents.result import AgentRunResult, utc_now
from codetaste.flows.agents.run import run_agent_in_sandbox
from codetaste.flows.infer.outputs import (
    Prediction,
    TrialEnd,
    inference_metadata,
    without_plans,
    write_prediction,
)
from codetaste.flows.infer.plan import StepKind
from codetaste.harness.patch.extract import ExtractedPatch, ExtractionLimits, extract_patch
from codetaste.llm.prompts import load_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.flows.agents.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.sandbox.base import Sandbox


def execution_prompt(step: Step, context: InferenceContext, plan: str | None) -> str:
    """Return the executing agent's prompt: its track's description or the plan, and nothing else."""
    trial = step.trial
    if trial.track.mode != "direct":
        return load_prompt("execute_plan").render(plan=plan or "")
    track = Track(trial.track.track)
    return load_prompt("infer").render(task=context.benchmark.description(trial.instance, track))


@dataclass(frozen=True, slots=True)
class _PriorSteps:
    """Results of the earlier steps: a ``reason`` to end the trial here, or the ``plan`` to carry out.

    ``steps`` are the values of the earlier steps by name, without the texts of plans.
    """

    reason: FinishReason | None = None
    message: str = ""
    plan: str | None = None
    plans: tuple[str, ...] = ()
    steps: Mapping[str, Any] = field(default_factory=dict)


async def execute(step: Step, context: InferenceContext, job: JobContext) -> Json:
    """Run the agent on the task and return the job's value, which has the whole prediction.

    Raises:
        SandboxError: no sandbox could be opened.
        ModelError: the provider stayed unusable after all retries.
    """
    prior, result, patches = await _prior_steps(step, job), AgentRunResult(), list[ExtractedPatch]()
    if prior.reason:
        result.finish_reason, result.message = prior.reason, prior.message
        return await _finish(step, context, job, prior, result, None)

    async def collect(sandbox: Sandbox, testbed: Testbed) -> None:
        async with context.extraction_limiter:
            patches.append(await extract_patch(sandbox, testbed, ExtractionLimits()))

    try:
        await run_agent_in_sandbox(
            step, execution_prompt(step, context, prior.plan), context, job, result, collect
        )
    except BaseException as error:
        if patches:
            with job.cleanup_scope():
                await _save_partial(step, context, job, prior, result, patches[0], error)
        raise
    with job.cleanup_scope():
        extracted = patches[0]
        if result.finish_reason in {FinishReason.BUDGET_EXCEEDED, FinishReason.TIMEOUT} and not result.turns:
            extracted = await load_partial_patch(job) or extracted
        return await _finish(step, context, job, prior, result, extracted)


async def _prior_steps(step: Step, job: JobContext) -> _PriorSteps:
    """Read the results of the earlier steps; the judge's result has only the number of a plan."""
    values: dict[StepKind, Any] = {each.kind: job.needs[each.key] for each in step.previous_steps}
    planned, judged = values.get(StepKind.PLAN), values.get(StepKind.JUDGE)
    if planned is None:
        return _PriorSteps()
    steps = {kind.value: without_plans(value) for kind, value in values.items()}
    plans = tuple([await job.load_text(digest) for digest in planned["plans"]])
    if not plans:
        return _PriorSteps(FinishReason(planned["finish_reason"]), planned["problem"], steps=steps)
    if judged is None:
        return _PriorSteps(plan=plans[0], plans=plans, steps=steps)
    if judged["selected"] is None:
        return _PriorSteps(
            FinishReason(judged["finish_reason"]), "no plan was selected", plans=plans, steps=steps
        )
    return _PriorSteps(plan=plans[judged["selected"]], plans=plans, steps=steps)


async def _finish(
    step: Step,
    context: InferenceContext,
    job: JobContext,
    prior: _PriorSteps,
    result: AgentRunResult,
    extracted: ExtractedPatch | None,
) -> Json:
    if extracted is not None and result.finish_reason == FinishReason.BUDGET_EXCEEDED:
        job.end_early(BudgetExceeded(f"the budget was used up after {result.turns} turns"))
    elif extracted is not None and result.finish_reason == FinishReason.TIMEOUT:
        job.end_early(DeadlineExceeded(f"the time limit was reached after {result.turns} turns"))
    if result.cost_mismatch_note():
        job.note(result.cost_mismatch_note())
    if extracted is not None and extracted.problem:
        job.note(f"the patch: {extracted.problem}")
    prediction = _prediction(step, context, job, prior, result, extracted)
    await write_prediction(context.out, step.trial, prediction, context)
    return await prediction.store(job)


async def _save_partial(
    step: Step,
    context: InferenceContext,
    job: JobContext,
    prior: _PriorSteps,
    result: AgentRunResult,
    extracted: ExtractedPatch,
    error: BaseException,
) -> None:
    """Write the partial patch of a job without a result; an error here must not hide the job's own error."""
    why = str(error) if isinstance(error, CodetasteError) else "stopped"
    result.finish_reason, result.message = FinishReason.UNKNOWN, why
    prediction = _prediction(step, context, job, prior, result, extracted, interrupted=why)
    try:
        await write_prediction(context.out, step.trial, prediction, context)
        await store_partial_patch(job, extracted)
    except CodetasteError as problem:
        job.note(f"the partial patch could not be written: {problem}")


def _prediction(
    step: Step,
    context: InferenceContext,
    job: JobContext,
    prior: _PriorSteps,
    result: AgentRunResult,
    extracted: ExtractedPatch | None,
    *,
    interrupted: str = "",
) -> Prediction:
    result.finished_at = result.finished_at or utc_now()
    steps = {**prior.steps, **({StepKind.EXECUTE.value: result.to_json()} if extracted else {})}
    ending = TrialEnd(result.finish_reason, result.finished_at, result.message, extracted, interrupted)
    money = job.budget.chain[-2].snapshot()
    metadata = inference_metadata(step.trial, context, steps, money, ending)
    return Prediction(extracted.patch if extracted else b"", metadata, prior.plans)


def describe_trial(value: Any) -> str:  # noqa: ANN401 - a job's value
    """Describe a trial's outcome in one line, from the value of its execute step; "" where there is none."""
    if value is None:
        return ""
    metadata = value["metadata"]
    facts = metadata["additional"]
    files = plural(facts["patch_files"], "file")
    size = format_size(facts["patch_bytes"])
    text = f"{facts['turns']} turns, {files} changed, patch of {size}"
    if facts["patch_problem"]:
        text += f"; {facts['patch_problem']}"
    reason = metadata["finish_reason"]
    # For these two the job's status already shows the reason.
    return (
        text
        if reason in {FinishReason.BUDGET_EXCEEDED, FinishReason.TIMEOUT}
        else f"{reason.replace('_', ' ')}, {text}"
    )


async def store_partial_patch(job: JobContext, extracted: ExtractedPatch) -> None:
    """Store the patch of this attempt in the journal.

    Raises:
        JournalError: the journal cannot be written; StorageFull is one of these.
    """

    async def stored() -> Json:
        patch = await job.store_text(extracted.patch.decode("utf-8", "surrogateescape"))
        return {
            "patch": patch,
            "files": extracted.files,
            "problem": extracted.problem,
            "notes": list(extracted.notes),
        }

    await job.effect(_effect_name(job.attempt), stored)


async def load_partial_patch(job: JobContext) -> ExtractedPatch | None:
    """Return the patch of the last earlier attempt that stored one; None where no attempt did.

    Raises:
        JournalError: the journal cannot be read.
    """
    for attempt in range(job.attempt - 1, 0, -1):
        if job.is_recorded(_effect_name(attempt)):
            value: Any = await job.effect(_effect_name(attempt), _must_be_recorded)
            patch = (await job.load_text(value["patch"])).encode("utf-8", "surrogateescape")
            note = f"taken from attempt {attempt}: no budget or time was left for a new attempt"
            return ExtractedPatch(patch, value["files"], value["problem"], (*value["notes"], note))
    return None


def _effect_name(attempt: int) -> str:
    return f"left/attempt-{attempt}"


async def _must_be_recorded() -> Json:
    raise JournalError("internal error: a recorded effect was run again")
