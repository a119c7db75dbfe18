"""Inference: agents work on tasks, each trial in its steps, each step a job (CodeTaste §3.5).

What a trial may cost and how long it may work holds for its steps together: their budgets lie below the
trial's. A step that has a result is never made again, so that a kill between two buys no plan twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.agent.loop import Brief
from codetaste.flows.execution import execute, execute_task
from codetaste.flows.judge import judge, opening_request, question_again
from codetaste.flows.planning import plan, plan_task
from codetaste.flows.players import own_brief
from codetaste.flows.sources import digest, sources_job
from codetaste.flows.trials import PLANS, StepKind
from codetaste.llm.codec import canonical
from codetaste.orchestration.job import Job
from codetaste.orchestration.money import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.flows.site import Site
    from codetaste.flows.trials import Step
    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.job import JobContext, Json
    from codetaste.orchestration.money import Cost

VERSION = 1
"""Raise it when the flow changes what a step with the same prompts and tools comes to."""
_WORK = {StepKind.PLAN: plan, StepKind.JUDGE: judge, StepKind.EXECUTE: execute}
_SHARED = "install"


def jobs(steps: Iterable[Step], site: Site, budget: Budget) -> list[Job]:
    """Make the jobs of ``steps``, with those that bring sources and programs, below ``budget``."""
    made: dict[str, Job] = {}
    for step in steps:
        if step.kind is not StepKind.JUDGE:
            if step.sources not in made:
                made[step.sources] = sources_job(
                    step.sources, step.trial.instance, site.benchmark, site.cache, budget
                )
            if step.install and step.install not in made:
                made[step.install] = _install_job(step, site, budget)
        made[step.key] = _step_job(step, site, trial_budget(step, budget))
    return list(made.values())


def trial_budget(step: Step, budget: Budget) -> Budget:
    """Return the node that all steps of the trial draw from, below the flow's ``budget``."""
    agent = step.trial.agent
    return budget.child(step.trial.node, Limits(usd=agent.budget_usd, working_s=agent.time_limit))


def _step_job(step: Step, site: Site, trial: Budget) -> Job:
    if step.kind is StepKind.PLAN:
        # The job's own node, which the scheduler would make without limits.
        trial.child(step.key, Limits(working_s=step.trial.track.plan_time_limit))

    async def run(job: JobContext) -> Json:
        return await _WORK[step.kind](step, site, job)

    return Job(
        step.key,
        run,
        trial,
        fingerprint=_fingerprint(step, site),
        needs=step.needs,
        resources={} if step.kind is StepKind.JUDGE else {"sandbox": 1},
        lane=step.lane,
        title=step.title,
        least=_least(step, site),
    )


def _task(step: Step, site: Site) -> str:
    """Return what the agent of ``step`` is asked; an execution's plan comes later, with its fingerprint."""
    return plan_task(step, site) if step.kind is StepKind.PLAN else execute_task(step, site, None)


def _fingerprint(step: Step, site: Site) -> str:
    """Stand for all that decides the result of ``step``, but for the results that it needs."""
    trial, agent = step.trial, step.trial.agent
    common = (str(VERSION), trial.instance.commit_hash, step.kind, site.digests[step.model_id])
    if step.kind is StepKind.JUDGE:
        request = opening_request(step, site)
        words = (request.messages[0].text, question_again(PLANS))
        return digest(*common, *words, str(request.max_output_tokens))
    task = _task(step, site)
    boxed = (site.box_facts, str(trial.attempt), task)
    if agent.own:
        brief = own_brief(agent, task)
        tools = [f"{tool.spec.name} {tool.digest}" for tool in brief.tools]
        caps = f"{brief.max_turns} {brief.max_output_tokens}"
        return digest(*common, *boxed, brief.system, caps, canonical(dict(agent.options)), *tools)
    adapter = site.adapters[agent.id]
    options = canonical(adapter.options(agent.options))
    return digest(*common, *boxed, adapter.digest, site.version(agent), options)


def _least(step: Step, site: Site) -> Cost | None:
    """Return what the first call of ``step`` needs at the least, where that can be known."""
    model = site.models[step.model_id]
    if step.kind is StepKind.JUDGE:
        return model.least_cost(opening_request(step, site))
    agent, task = step.trial.agent, _task(step, site)
    if not agent.own and site.adapters[agent.id].protocol == "none":
        return None
    # A program says more than its task, and nobody knows how much: this is less than its first call needs.
    brief = own_brief(agent, task) if agent.own else Brief(system="", task=task, tools=())
    return model.least_cost(brief.request(brief.opening()))


def _install_job(step: Step, site: Site, budget: Budget) -> Job:
    agent = step.trial.agent
    adapter = site.adapters[agent.id]
    version = site.version(agent)

    async def run(_job: JobContext) -> Json:
        installed = await site.install(agent)
        return {"id": installed.id, "digest": installed.digest, "version": installed.version}

    return Job(
        step.install,
        run,
        budget,
        fingerprint=digest(_SHARED, adapter.digest, version),
        resources={"cpu": 1},
        title=f"install {adapter.name} {version}",
        free=True,
        for_others=True,
    )
