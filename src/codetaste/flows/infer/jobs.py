"""Inference jobs: each trial consists of steps, and each step is a job (CodeTaste §3.5).

The steps' budgets are children of the trial's. Its limits hold for all its steps together, or each step has
limits of its own (``[[tracks]] budgets``). A step that has a result is never run again, so a kill between two
steps does not pay for a plan twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.trial_identity import StepKind
from codetaste.flows.agents.install import INSTALL, install_handler, install_job
from codetaste.flows.infer.execute_step import execute, execution_prompt
from codetaste.flows.infer.inputs import step_inputs
from codetaste.flows.infer.judge import judge, opening_request
from codetaste.flows.infer.plan_step import plan, planning_prompt
from codetaste.flows.inputs import digest_of_inputs, digests_of_inputs
from codetaste.flows.sources import SOURCES, sources_handler, sources_job
from codetaste.orchestration.budget.cost import BudgetPath, NamedLimits
from codetaste.orchestration.job import Job

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.flows.infer.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.llm.messages import Request
    from codetaste.orchestration.job import Handler


def inference_jobs(steps: Iterable[Step], context: InferenceContext, budget: BudgetPath) -> list[Job]:
    """Return the jobs of ``steps`` and of the sources and CLI agents that they need, under ``budget``."""
    made: dict[str, Job] = {}
    for step in steps:
        if step.kind is not StepKind.JUDGE:
            made.setdefault(step.sources_key, sources_job(step.trial.instance, budget))
            if install := install_job(step.install_key, step.trial.agent.id, context.agents, budget):
                made.setdefault(install.key, install)
        made[step.key] = _step_job(step, context, budget)
    return list(made.values())


def inference_handlers(context: InferenceContext) -> dict[str, Handler]:
    """Return what runs the jobs of ``inference_jobs``, by kind; that of a step is "infer." and its kind."""
    return {
        SOURCES: sources_handler(context.benchmark, context.agents.cache),
        INSTALL: install_handler(context.agents),
        "infer.plan": lambda job, run: plan(job.parameters, context, run),
        "infer.judge": lambda job, run: judge(job.parameters, context, run),
        "infer.execute": lambda job, run: execute(job.parameters, context, run),
    }


def _step_job(step: Step, context: InferenceContext, budget: BudgetPath) -> Job:
    trial, agent = step.trial, step.trial.agent
    request: Request | None
    handler_limits: Mapping[str, int] = {}
    if step.kind is StepKind.JUDGE:
        request = opening_request(step, context)
    else:
        planning = step.kind is StepKind.PLAN
        task = planning_prompt(step, context) if planning else execution_prompt(step, context, None)
        request = context.runner(agent).first_request(task)
        handler_limits = context.runner(agent).limits

    inputs = step_inputs(step, context.source, context.agents.sandbox_config, context.adapters)
    return Job(
        step.key,
        f"infer.{step.kind}",
        (*budget, NamedLimits(trial.budget_name, trial.limits)),
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        parameters=step,
        needs=step.needs,
        resources={} if step.kind is StepKind.JUDGE else {"sandbox": 1},
        lane=step.lane,
        title=step.title,
        group=step.group,
        min_cost=None if request is None else context.models.models[step.model_id].min_cost(request),
        limits=step.limits,
        handler_limits=handler_limits,
    )
