"""The execute step of a trial: an agent changes the code, and the host extracts the patch from its sandbox.

The patch is extracted however the run ends. If the budget or the time limit ended it, that patch is the
trial's outcome. If the run was stopped or the sandbox was lost, the partial patch is written and the job has
no result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import FinishReason, Mode
from codetaste.benchmark.trial_identity import StepKind
from codetaste.errors import BudgetExceeded, CodetasteError, DeadlineExceeded
from codetaste.flows.agents.patch_run import PatchRun, load_partial_patch, store_partial_patch
from codetaste.flows.agents.result import AgentRunResult, utc_now
from codetaste.flows.agents.run import AgentRunSpec
from codetaste.flows.describe.result import take_descriptions
from codetaste.flows.infer.environment import environment_of
from codetaste.flows.infer.outputs import Prediction, TrialEnd, inference_metadata, write_prediction
from codetaste.flows.infer.results import AgentStep, JudgeResult, PlanResult
from codetaste.orchestration.shortfall import Shortfall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.flows.infer.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.flows.infer.results import StepMetadata
    from codetaste.harness.patch.extract import ExtractedPatch
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


def execution_prompt(step: Step, context: InferenceContext, plan: str | None) -> str:
    """Return the executing agent's prompt: its track's description or the plan, and nothing else."""
    trial = step.trial
    if trial.track.mode is not Mode.DIRECT:
        return context.prompts.load("execute_plan").render(plan=plan or "")
    task = context.benchmark.description(trial.instance, trial.track.track)
    return context.prompts.load("infer").render(task=task)


@dataclass(frozen=True, slots=True)
class _PriorSteps:
    """Results of the earlier steps: a ``reason`` to end the trial here, or the ``plan`` to carry out.

    ``judgement`` is the judge's answer, which is written beside the patch, and which no agent may see.
    """

    reason: FinishReason | None = None
    message: str = ""
    plan: str | None = None
    plans: tuple[str, ...] = ()
    judgement: str = ""
    steps: Mapping[str, StepMetadata] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Execution:
    """One attempt at the execute step."""

    step: Step
    context: InferenceContext
    job: JobContext
    prior: _PriorSteps

    async def finish(self, result: AgentRunResult, patch: ExtractedPatch | None) -> Json:
        """Write the prediction, and return the job's value."""
        job = self.job
        if patch is not None and result.finish_reason == FinishReason.BUDGET_EXCEEDED:
            job.end_early(BudgetExceeded(f"no money after {result.turns} turns: {result.message}"))
        elif patch is not None and result.finish_reason == FinishReason.TIMEOUT:
            job.end_early(DeadlineExceeded(f"the time limit was reached after {result.turns} turns"))
        elif result.shortfall is not None:
            job.fall_short(result.shortfall)
        elif patch is not None and patch.problem:
            job.fall_short(Shortfall("bad_patch", patch.problem))
        if result.cost_mismatch_note():
            job.note(result.cost_mismatch_note())
        if patch is not None and patch.problem:
            job.note(f"the patch: {patch.problem}")
        prediction = self.prediction(result, patch)
        await write_prediction(self.step.trial, prediction, self.context)
        return (await prediction.store(job)).to_json()

    async def save_partial(self, run: PatchRun, patch: ExtractedPatch, error: BaseException) -> None:
        """Write the patch of an attempt without a result; an error here must not hide the job's own error."""
        why = str(error) if isinstance(error, CodetasteError) else "stopped"
        run.result.finish_reason, run.result.message = FinishReason.UNKNOWN, why
        prediction = self.prediction(run.result, patch, interruption=why)
        try:
            await write_prediction(self.step.trial, prediction, self.context)
            await store_partial_patch(self.job, patch)
        except CodetasteError as problem:
            self.job.note(f"the partial patch could not be written: {problem}")

    def prediction(
        self, result: AgentRunResult, patch: ExtractedPatch | None, interruption: str = ""
    ) -> Prediction:
        """Return the trial's prediction; ``interruption`` says why it is a partial one."""
        result.finished_at = result.finished_at or utc_now()
        steps = {
            **self.prior.steps,
            **({StepKind.EXECUTE.value: AgentStep(result.to_json())} if patch else {}),
        }
        environment = environment_of(self.step.trial, self.job)
        end = TrialEnd(
            result.finish_reason,
            result.finished_at,
            result.message,
            patch,
            interruption,
            environment.image if environment else self.context.agents.sandbox_config.image,
        )
        money = self.job.budget.chain[-2].snapshot()
        metadata = inference_metadata(self.step.trial, self.context, steps, money, end)
        return Prediction(patch.patch if patch else b"", metadata, self.prior.plans, self.prior.judgement)


async def execute(step: Step, context: InferenceContext, job: JobContext) -> Json:
    """Run the agent on the task and return the job's value, which has the whole prediction.

    Raises:
        SandboxError: no sandbox could be opened.
        ModelError: the provider stayed unusable after all retries.
    """
    await take_descriptions(step.trial.instance, context.benchmark, job)
    prior, trial = await _prior_steps(step, job), step.trial
    execution = _Execution(step, context, job, prior)
    if prior.reason is not None:
        return await execution.finish(AgentRunResult(finish_reason=prior.reason, message=prior.message), None)
    task = execution_prompt(step, context, prior.plan)
    origin, track = context.benchmark.origin(trial.instance), trial.track
    environment = environment_of(trial, job)
    spec = AgentRunSpec(
        trial.agent,
        origin,
        task,
        step.lane,
        track=track.track,
        mode=track.mode,
        environment=environment,
    )
    run = PatchRun(spec, context.agents, job)
    try:
        async with run:
            await run.run_agent()
    except BaseException as error:
        if run.patch is not None:
            with job.cleanup_scope():
                await execution.save_partial(run, run.patch, error)
        raise
    with job.cleanup_scope():
        patch, result = run.patch, run.result
        if result.finish_reason in {FinishReason.BUDGET_EXCEEDED, FinishReason.TIMEOUT} and not result.turns:
            patch = await load_partial_patch(job) or patch
        return await execution.finish(result, patch)


async def _prior_steps(step: Step, job: JobContext) -> _PriorSteps:
    """Read the results of the earlier steps."""
    values = {each.kind: job.needs[each.key] for each in step.previous_steps}
    if StepKind.PLAN not in values:
        return _PriorSteps()
    planned = PlanResult.from_json(values[StepKind.PLAN])
    steps: dict[str, StepMetadata] = {StepKind.PLAN.value: planned}
    plans = tuple([await job.load_text(digest) for digest in planned.plans])
    selected, judgement = 0, ""
    if StepKind.JUDGE in values:
        steps[StepKind.JUDGE.value] = judged = JudgeResult.from_json(values[StepKind.JUDGE])
        judgement = await job.load_text(judged.answer) if judged.answer else ""
        if plans and judged.selected is None:
            why = "no plan was selected"
            return _PriorSteps(judged.finish_reason, why, plans=plans, judgement=judgement, steps=steps)
        selected = judged.selected or 0
    if not plans:
        return _PriorSteps(planned.finish_reason, planned.problem, steps=steps)
    return _PriorSteps(plan=plans[selected], plans=plans, judgement=judgement, steps=steps)
