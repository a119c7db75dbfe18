"""The plan step of a trial: an agent writes one plan or five, in up to three fresh boxes (CodeTaste §3.5).

A go that leaves no plans that can be used is followed by another one, as far as the trial's budget and the
step's time reach. After the last one the trial has an outcome of its own: ``error_planmode`` or
``error_multiplan``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.catalog import Track
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.flows.boxed import work
from codetaste.flows.effort import BUDGET, SUCCESS, TIMEOUT, Effort
from codetaste.flows.plan_files import Plans, read_plans
from codetaste.flows.trials import PLANS
from codetaste.llm.prompts import load_prompt
from codetaste.units import exact_usd

if TYPE_CHECKING:
    from codetaste.flows.site import Site
    from codetaste.flows.trials import Step
    from codetaste.harness.testbed import Testbed
    from codetaste.orchestration.job import JobContext, Json
    from codetaste.sandbox.box import Box

FAILED = {"plan": "error_planmode", "multiplan": "error_multiplan"}


def plan_task(step: Step, site: Site) -> str:
    """Return what the planning agent is asked: of the task it knows the area alone."""
    area = site.benchmark.description(step.trial.instance, Track.OPEN)
    if step.trial.track.mode == "plan":
        return load_prompt("plan").render(task=area)
    return load_prompt("multiplan").render(task=area, plans=PLANS)


async def plan(step: Step, site: Site, job: JobContext) -> Json:
    """Let the agent plan; the job's value has the finish reason, and the digests of the plans' texts.

    Raises:
        SandboxError: no box could be had.
        ModelError: the provider stayed unusable after all retries.
    """
    track = step.trial.track
    task = plan_task(step, site)
    goes: list[Any] = []
    for number in range(1, track.plan_attempts + 1):
        name = f"go-{number}"
        told, cut = None, ""
        if not job.recorded(name):
            effort, plans = await _go(step, task, site, job, name)
            told = await _told(effort, plans, job)
            cut = "" if plans.texts else _cut_short(effort, track.mode, job)
        # A go that was cut short is no effect: under a higher limit it goes on, or is made again.
        goes.append(told if cut else await job.effect(name, partial(_same, told)))
        if cut or goes[-1]["plans"]:
            return _value(cut or SUCCESS, goes, job)
        job.note(f"go {number} of {track.plan_attempts} left no plan that can be used: {goes[-1]['problem']}")
    return _value(FAILED[track.mode], goes, job)


async def _go(step: Step, task: str, site: Site, job: JobContext, name: str) -> tuple[Effort, Plans]:
    """Let the agent try once, in a box of its own."""
    effort, found = Effort(), Plans(problem="nothing was written")

    async def collect(box: Box, _testbed: Testbed) -> None:
        nonlocal found
        found = await read_plans(box, step.trial.track.mode)

    await work(step, task, site, job, effort, collect, name)
    if effort.notable():
        job.note(effort.notable())
    return effort, found


def _cut_short(effort: Effort, mode: str, job: JobContext) -> str:
    """Return the finish reason of a trial that its budget or a time limit ended here, "" if none did.

    The step's own time limit is the plan's failure; that of the trial or the run is nobody's plan.
    """
    if effort.finish_reason == BUDGET:
        job.cut_short(BudgetExceeded(f"the budget ended the planning after {effort.turns} turns"))
        return BUDGET
    if effort.finish_reason == TIMEOUT:
        job.cut_short(DeadlineExceeded(f"the time limit ended the planning after {effort.turns} turns"))
        return TIMEOUT if job.budget.chain[-2].clock.time_left_s() <= 0 else FAILED[mode]
    return ""


async def _told(effort: Effort, plans: Plans, job: JobContext) -> Json:
    kept = [await job.keep(text) for text in plans.texts]
    return {**effort.to_json(), "plans": kept, "problem": plans.problem}


async def _same(value: Json) -> Json:
    return value


def _value(reason: str, goes: list[Any], job: JobContext) -> Json:
    return {
        "finish_reason": reason,
        "plans": goes[-1]["plans"],
        "problem": goes[-1]["problem"],
        "goes": goes,
        "cost_usd": exact_usd(job.budget.snapshot().spent.usd),
    }
