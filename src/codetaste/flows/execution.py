"""The execution step of a trial: an agent changes the code, and the host takes the patch from its box.

However the work ends, the patch so far is taken: when the budget or the time limit ends it, that is the
trial's outcome; when we are stopped or the box is lost, the patch is written beside the job, which has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.catalog import Track
from codetaste.errors import BudgetExceeded, CodetasteError, DeadlineExceeded
from codetaste.flows.boxed import work
from codetaste.flows.earlier import left_before, remember
from codetaste.flows.effort import BUDGET, TIMEOUT, UNKNOWN, Effort, now
from codetaste.flows.metadata import Ending, inference_metadata, without_plans
from codetaste.flows.outputs import Prediction, write_prediction
from codetaste.flows.trials import StepKind
from codetaste.harness.harvest import Harvest, HarvestLimits, harvest
from codetaste.llm.prompts import load_prompt
from codetaste.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.flows.site import Site
    from codetaste.flows.trials import Step
    from codetaste.harness.testbed import Testbed
    from codetaste.orchestration.job import JobContext, Json
    from codetaste.sandbox.box import Box


def execute_task(step: Step, site: Site, plan: str | None) -> str:
    """Return what the executing agent is asked: its track's description, or the plan, and nothing else."""
    trial = step.trial
    if trial.track.mode != "direct":
        return load_prompt("execute_plan").render(plan=plan or "")
    track = Track(trial.track.track)
    return load_prompt("infer").render(task=site.benchmark.description(trial.instance, track))


@dataclass(frozen=True, slots=True)
class _Before:
    """What the steps before came to. ``reason`` ends the trial here; otherwise ``plan`` is what to do.

    ``steps`` are their values by name, without the texts of plans.
    """

    reason: str = ""
    message: str = ""
    plan: str | None = None
    plans: tuple[str, ...] = ()
    steps: Mapping[str, Any] = field(default_factory=dict)


async def execute(step: Step, site: Site, job: JobContext) -> Json:
    """Let the agent do the task; the job's value has the whole prediction.

    Raises:
        SandboxError: no box could be had.
        ModelError: the provider stayed unusable after all retries.
    """
    before, effort, harvests = await _before(step, job), Effort(), list[Harvest]()
    if before.reason:
        effort.finish_reason, effort.message = before.reason, before.message
        return await _concluded(step, site, job, before, effort, None)

    async def collect(box: Box, testbed: Testbed) -> None:
        async with site.harvests:
            harvests.append(await harvest(box, testbed, HarvestLimits()))

    try:
        await work(step, execute_task(step, site, before.plan), site, job, effort, collect)
    except BaseException as error:
        if harvests:
            with job.cleaning_up():
                await _keep_what_there_is(step, site, job, before, effort, harvests[0], error)
        raise
    with job.cleaning_up():
        taken = harvests[0]
        if effort.finish_reason in {BUDGET, TIMEOUT} and not effort.turns:
            taken = await left_before(job) or taken
        return await _concluded(step, site, job, before, effort, taken)


async def _before(step: Step, job: JobContext) -> _Before:
    """Read what the steps before came to; of the judgement nothing but a number is there to be read."""
    values: dict[StepKind, Any] = {each.kind: job.needs[each.key] for each in step.before}
    planned, judged = values.get(StepKind.PLAN), values.get(StepKind.JUDGE)
    if planned is None:
        return _Before()
    steps = {kind.value: without_plans(value) for kind, value in values.items()}
    plans = tuple([await job.fetch(digest) for digest in planned["plans"]])
    if not plans:
        return _Before(planned["finish_reason"], planned["problem"], steps=steps)
    if judged is None:
        return _Before(plan=plans[0], plans=plans, steps=steps)
    if judged["selected"] is None:
        return _Before(judged["finish_reason"], "no plan was selected", plans=plans, steps=steps)
    return _Before(plan=plans[judged["selected"]], plans=plans, steps=steps)


async def _concluded(
    step: Step, site: Site, job: JobContext, before: _Before, effort: Effort, taken: Harvest | None
) -> Json:
    """Write the prediction, and return all of it as the job's value."""
    if taken is not None and effort.finish_reason == BUDGET:
        job.cut_short(BudgetExceeded(f"the budget ended it after {effort.turns} turns"))
    elif taken is not None and effort.finish_reason == TIMEOUT:
        job.cut_short(DeadlineExceeded(f"the time limit ended it after {effort.turns} turns"))
    if effort.notable():
        job.note(effort.notable())
    if taken is not None and taken.problem:
        job.note(f"the patch: {taken.problem}")
    prediction = _prediction(step, site, job, before, effort, taken)
    await write_prediction(site.out, step.trial, prediction, site)
    return await prediction.kept(job)


async def _keep_what_there_is(
    step: Step,
    site: Site,
    job: JobContext,
    before: _Before,
    effort: Effort,
    taken: Harvest,
    error: BaseException,
) -> None:
    """Write the patch so far beside a job that has no result; nothing here may hide why it has none."""
    why = str(error) if isinstance(error, CodetasteError) else "stopped"
    effort.finish_reason, effort.message = UNKNOWN, why
    prediction = _prediction(step, site, job, before, effort, taken, interrupted=why)
    try:
        await write_prediction(site.out, step.trial, prediction, site)
        await remember(job, taken)
    except CodetasteError as problem:
        job.note(f"the patch so far could not be written: {problem}")


def _prediction(
    step: Step,
    site: Site,
    job: JobContext,
    before: _Before,
    effort: Effort,
    taken: Harvest | None,
    *,
    interrupted: str = "",
) -> Prediction:
    effort.finished = effort.finished or now()
    steps = {**before.steps, **({StepKind.EXECUTE.value: effort.to_json()} if taken else {})}
    ending = Ending(effort.finish_reason, effort.finished, effort.message, taken, interrupted)
    money = job.budget.chain[-2].snapshot()
    metadata = inference_metadata(step.trial, site, steps, money, ending)
    return Prediction(taken.patch if taken else b"", metadata, before.plans)


def found(value: Any) -> str:  # noqa: ANN401 - a job's value
    """Say what a trial came to, from the value of its execution: "" where there is none."""
    if value is None:
        return ""
    metadata = value["metadata"]
    told = metadata["additional"]
    files = "1 file" if told["patch_files"] == 1 else f"{told['patch_files']} files"
    size = format_size(told["patch_bytes"])
    came_to = f"{told['turns']} turns, {files} changed, patch of {size}"
    if told["patch_problem"]:
        came_to += f"; {told['patch_problem']}"
    reason = metadata["finish_reason"]
    # What was cut short says so by its status.
    return came_to if reason in {BUDGET, TIMEOUT} else f"{reason.replace('_', ' ')}, {came_to}"
