"""Test runs as jobs: the baseline of each instance, and one for each prediction (CodeTaste §4.1).

Every behaviour of the tests is a result. What only the machine is to blame for is tried again, and ends as a
result of its own, which never counts as a failed test.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.core.text import one_line
from codetaste.environment.runtime import RuntimeEnvironment
from codetaste.errors import PatchDoesNotApply, PatchError, SandboxError, SandboxMissing
from codetaste.evaluation.pseudo_agents import golden_patch
from codetaste.evaluation.test_runs.gates import Side
from codetaste.evaluation.test_runs.problems import RunProblem
from codetaste.evaluation.test_runs.put_patch import put_patch
from codetaste.evaluation.test_runs.suite import run_suite
from codetaste.evaluation.test_runs.test_run import TestRun
from codetaste.flows.evaluate.context import EvaluationInputs
from codetaste.flows.evaluate.plan import BaselineTask, baseline_tasks
from codetaste.flows.evaluate.predictions import prediction_patch
from codetaste.flows.evaluate.stored_runs import store_run
from codetaste.flows.sources import digest_parts
from codetaste.flows.test_runs.sandboxes import SuiteSandbox, open_suite_sandbox
from codetaste.orchestration.job import Job
from codetaste.orchestration.shortfall import Shortfall
from codetaste.sandbox.base import NO_EGRESS
from codetaste.source.checkout import checkout_trees
from codetaste.source.patch.apply import applied_patch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.flows.evaluate.context import EvaluationContext
    from codetaste.flows.evaluate.plan import EvaluationTask
    from codetaste.flows.test_runs.context import SuiteServices
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json

BASELINE, PREDICTION = "tests.baseline", "tests.prediction"
"""The kinds of the jobs."""
VERSION = 1
"""Increment it when a change of the flow changes the result of a test run."""
_TRIES = 3
_PAUSE_S = 5.0
_NO_ENVIRONMENT = "the instance has no execution environment"


def test_jobs(tasks: Iterable[EvaluationTask], suites: SuiteServices, budget: BudgetPath) -> list[Job]:
    """Return the test runs that ``tasks`` need, under ``budget``."""
    resources = {"sandbox": 1, "cpu": suites.cpus, "memory": suites.memory_reserved_bytes}
    made: dict[str, Job] = {}
    for task in tasks:
        for each in baseline_tasks(task.instance, task.baseline_runs):
            made[each.key] = _job(each.key, BASELINE, each, each.title, (task.image_key,), resources, budget)
        if task.baseline_runs:
            needs = (task.image_key, task.sources_key, *task.patch_keys)
            title = f"{task.title} tests"
            made[task.tests_key] = _job(task.tests_key, PREDICTION, task, title, needs, resources, budget)
    return list(made.values())


def _job(
    key: str,
    kind: str,
    parameters: BaselineTask | EvaluationTask,
    title: str,
    needs: tuple[str, ...],
    resources: Mapping[str, float],
    budget: BudgetPath,
) -> Job:
    instance = parameters.instance
    return Job(
        key,
        kind,
        budget,
        fingerprint=digest_parts(kind, str(VERSION), instance.commit_hash, instance.golden_commit_hash),
        parameters=parameters,
        needs=needs,
        resources=resources,
        title=title,
        group="test runs",
        costs_nothing=True,
    )


def test_handlers(context: EvaluationContext, suites: SuiteServices) -> dict[str, Handler]:
    """Return what runs the jobs of ``test_jobs``, by kind."""
    return {
        BASELINE: lambda job, run: _run_baseline(job.parameters, context, suites, run),
        PREDICTION: lambda job, run: _run_prediction(job.parameters, context, suites, run),
    }


async def _run_baseline(
    task: BaselineTask, context: EvaluationContext, suites: SuiteServices, job: JobContext
) -> Json:
    async def patch(scratch: Path) -> bytes:
        if task.side is Side.BASE:
            return b""
        trees = await checkout_trees(context.benchmark.origin(task.instance), suites.cache)
        return await golden_patch(context.benchmark, task.instance, trees, scratch)

    return await _run(_TestedCode(task.instance, task.image_key, patch), context, suites, job)


async def _run_prediction(
    task: EvaluationTask, context: EvaluationContext, suites: SuiteServices, job: JobContext
) -> Json:
    async def patch(scratch: Path) -> bytes:
        trees = await checkout_trees(context.benchmark.origin(task.instance), suites.cache)
        inputs = EvaluationInputs(job.needs, job.load_text, "")
        return await prediction_patch(task, context, inputs, trees, scratch)

    return await _run(_TestedCode(task.instance, task.image_key, patch), context, suites, job)


@dataclass(frozen=True, slots=True)
class _TestedCode:
    """The code of a test run: R of ``instance`` with the patch that ``patch`` makes in a scratch folder."""

    instance: Instance
    image_key: str
    patch: Callable[[Path], Awaitable[bytes]]


async def _run(code: _TestedCode, context: EvaluationContext, suites: SuiteServices, job: JobContext) -> Json:
    """Run the tests, up to three times if only the machine is to blame; return the job's value."""
    value: Any = job.needs[code.image_key]
    run = TestRun(problem=RunProblem.IMAGE_UNAVAILABLE, message=_NO_ENVIRONMENT)
    if value is not None:
        environment = RuntimeEnvironment.from_json(value)
        scratch = context.scratch / digest_parts(job.key)[:16]
        for attempt in range(1, _TRIES + 1):
            await to_thread.run_sync(partial(scratch.mkdir, parents=True, exist_ok=True))
            try:
                run = await _run_once(code, environment, context, suites, job.key, scratch)
            finally:
                await to_thread.run_sync(partial(shutil.rmtree, scratch, ignore_errors=True))
            if run.problem is None or not run.problem.infrastructure:
                break
            job.note(f"attempt {attempt} of {_TRIES}: {run.message}")
            if attempt < _TRIES:
                await anyio.sleep(_PAUSE_S * attempt)
    if run.problem is not None and run.problem.infrastructure:
        job.fall_short(Shortfall(run.problem.value, run.message))
    return await store_run(run, job)


async def _run_once(
    code: _TestedCode,
    environment: RuntimeEnvironment,
    context: EvaluationContext,
    suites: SuiteServices,
    key: str,
    scratch: Path,
) -> TestRun:
    trees = await checkout_trees(context.benchmark.origin(code.instance), suites.cache)
    patch = await code.patch(scratch)
    wanted = SuiteSandbox(
        key,
        environment.image_id,
        suites.scripts_folder(environment),
        environment.privileges,
        suites.network if environment.hosts else NO_EGRESS,
    )
    try:
        async with (
            applied_patch(trees.base, patch, scratch) as applied,
            open_suite_sandbox(suites, wanted) as sandbox,
        ):
            await put_patch(sandbox, applied.tree)
            return await run_suite(sandbox, environment.privileges, suites.limits)
    except (PatchError, PatchDoesNotApply) as error:
        return TestRun(problem=RunProblem.BAD_PATCH, message=one_line(error))
    except SandboxMissing as error:
        return TestRun(problem=RunProblem.IMAGE_UNAVAILABLE, message=one_line(error))
    except SandboxError as error:
        return TestRun(problem=RunProblem.SANDBOX_LOST, message=one_line(error))
