"""Environment jobs: one proves an instance's environment, one makes its runtime image (CodeTaste §3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.core.hashing import canonical_json
from codetaste.flows.agents.install import INSTALL, install_handler, install_job
from codetaste.flows.environment.inputs import (
    IMAGE_VERSION,
    environment_inputs,
    existing_environment_digest,
)
from codetaste.flows.inputs import digest_of_inputs, digests_of_inputs
from codetaste.flows.sources import SOURCES, digest_parts, sources_handler, sources_job
from codetaste.orchestration.job import Job

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler
    from codetaste.orchestration.journal.history import History

BUILD, IMAGE = "environment.build", "environment.image"
"""The kinds of the jobs."""


def environment_jobs(
    tasks: Iterable[EnvironmentTask], context: EnvironmentContext, budget: BudgetPath
) -> list[Job]:
    """Return the jobs of ``tasks`` and of the sources that they need, under ``budget``; blocking."""
    made: dict[str, Job] = {}
    for task in tasks:
        sources = sources_job(task.instance, budget)
        made.setdefault(sources.key, sources)
        if task.proves:
            made[task.key] = _build_job(task, context, budget)
        if task.agent is not None and (
            install := install_job(task.install_key, task.agent.id, context.agents, budget)
        ):
            made.setdefault(install.key, install)
        made[task.image_key] = Job(
            task.image_key,
            IMAGE,
            budget,
            fingerprint=_image_fingerprint(task, context),
            parameters=task,
            needs=(sources.key, task.key) if task.proves else (sources.key,),
            resources={"sandbox": 1, "cpu": 1, **(_memory(context) if task.builds else {})},
            title=f"{task.instance.id} image",
            group="runtime images",
            costs_nothing=True,
        )
    return list(made.values())


async def lost_images(
    tasks: Iterable[EnvironmentTask], context: EnvironmentContext, history: History
) -> set[str]:
    """Return the keys of the jobs that made a runtime image that the engine no longer has.

    Raises:
        SandboxError: the engine does not answer.
    """
    from codetaste.environment.images.existing import find_image  # noqa: PLC0415 - as in environment_handlers

    lost: set[str] = set()
    for task in tasks:
        for ending in history.job(task.image_key).recorded_ends.values():
            value: Any = ending.value
            if value is not None and not await find_image(context.suites.sandboxes, value["image_id"]):
                lost.add(task.image_key)
    return lost


def _image_fingerprint(task: EnvironmentTask, context: EnvironmentContext) -> str:
    """Return what decides the image, except the result of the job that proves the environment."""
    instance = task.instance
    decides = [IMAGE_VERSION, context.base_image, task.proves, task.builds, list(context.hosts)]
    existing = "" if task.proves else existing_environment_digest(context.benchmark, instance)
    return digest_parts(canonical_json(decides), instance.commit_hash, instance.golden_commit_hash, existing)


def environment_handlers(context: EnvironmentContext) -> dict[str, Handler]:
    """Return what runs the jobs of ``environment_jobs``, by kind."""
    # They load the library of container engines, which only runs with environments need.
    from codetaste.flows.environment.build import build_environment  # noqa: PLC0415
    from codetaste.flows.environment.image import make_runtime_image  # noqa: PLC0415

    return {
        INSTALL: install_handler(context.agents),
        SOURCES: sources_handler(context.benchmark, context.suites.cache),
        BUILD: lambda job, run: build_environment(job.parameters, context, run),
        IMAGE: lambda job, run: make_runtime_image(job.parameters, context, run),
    }


def _memory(context: EnvironmentContext) -> dict[str, float]:
    """The memory that a job's test runs are guaranteed, of which one runs at a time."""
    return {"memory": context.suites.memory_reserved_bytes}


def _build_job(task: EnvironmentTask, context: EnvironmentContext, budget: BudgetPath) -> Job:
    inputs = environment_inputs(task, context.source, context.config, context.adapters)
    handler_limits: dict[str, int] = {}
    if task.agent is not None:
        handler_limits = {"rounds": context.config.rounds, **context.agents.runners[task.agent.id].limits}
    return Job(
        task.key,
        BUILD,
        budget,
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        parameters=task,
        needs=task.needs,
        resources={"sandbox": 1, **_memory(context), **({} if task.agent is None else {task.repository: 1})},
        lane=task.model_label,
        title=task.title,
        group="environments",
        costs_nothing=task.agent is None,
        # It has no minimum cost: what is tried before the agent is free, whatever the budget is.
        limits=task.limits,
        handler_limits=handler_limits,
    )
