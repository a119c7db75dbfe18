"""Test runs as jobs: the baseline of each instance, and one for each prediction (CodeTaste §4.1).

Every behaviour of the tests is a result. What only the machine is to blame for is tried again, and ends as a
result of its own, which never counts as a failed test.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.core.hashing import canonical_json
from codetaste.core.text import one_line
from codetaste.environment.images.runtime import RuntimeEnvironment
from codetaste.errors import PatchDoesNotApply, PatchError, SandboxError, SandboxMissing
from codetaste.evaluation.pseudo_agents import golden_patch
from codetaste.evaluation.test_runs.gates import Side
from codetaste.evaluation.test_runs.problems import RunProblem
from codetaste.evaluation.test_runs.put_patch import put_patch
from codetaste.evaluation.test_runs.suite import run_suite
from codetaste.evaluation.test_runs.test_run import TestRun
from codetaste.flows.environment.suites import SuiteSandbox, open_suite_sandbox, repeat_while_faulty
from codetaste.flows.evaluate.context import EvaluationInputs
from codetaste.flows.evaluate.plan import BaselineTask, baseline_tasks
from codetaste.flows.evaluate.predictions import prediction_patch
from codetaste.flows.evaluate.stored_runs import store_run
from codetaste.flows.sources import digest_parts
from codetaste.harness.testbed.status import clean_testbed
from codetaste.orchestration.job import Job
from codetaste.orchestration.shortfall import Shortfall
from codetaste.sandbox.base import NO_EGRESS
from codetaste.source.checkout import checkout_trees
from codetaste.source.patch.apply import applied_patch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.flows.environment.suites import SuiteServices
    from codetaste.flows.evaluate.context import EvaluationContext
    from codetaste.flows.evaluate.plan import EvaluationTask
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.source.tree.overlay import OverlayTree

BASELINE, PREDICTION = "tests.baseline", "tests.prediction"
"""The kinds of the jobs."""
VERSION = 4
"""Increment it when a change of the flow changes the result of a test run."""
_NO_ENVIRONMENT = "the instance has no execution environment"


def test_jobs(tasks: Iterable[EvaluationTask], suites: SuiteServices, budget: BudgetPath) -> list[Job]:
    """Return the test runs that ``tasks`` need, under ``budget``."""
    limits = [VERSION, suites.limits.setup_s, suites.limits.tests_s, suites.memory_bytes]
    resources = {"sandbox": 1, "cpu": suites.cpus, "memory": suites.memory_reserved_bytes}
    made: dict[str, Job] = {}

    def add(
        key: str, title: str, kind: str, task: BaselineTask | EvaluationTask, needs: tuple[str, ...]
    ) -> None:
        instance = task.instance
        made[key] = Job(
            key,
            kind,
            budget,
            fingerprint=digest_parts(
                kind, canonical_json(limits), instance.commit_hash, instance.golden_commit_hash
            ),
            parameters=task,
            needs=needs,
            resources=resources,
            title=title,
            group="test runs",
            costs_nothing=True,
        )

    for task in tasks:
        titles = task.test_titles
        for each in baseline_tasks(task.instance, task.baseline_runs):
            add(each.key, titles[each.key], BASELINE, each, (task.image_key,))
        if task.baseline_runs:
            needs = (task.image_key, task.sources_key, *task.patch_keys)
            add(task.tests_key, titles[task.tests_key], PREDICTION, task, needs)
    return list(made.values())


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
    if value is None:  # the job that makes the image says why, and decides whether that is final
        return await store_run(TestRun(problem=RunProblem.IMAGE_UNAVAILABLE, message=_NO_ENVIRONMENT), job)
    scratch = context.scratch / digest_parts(job.key)[:16]
    trees = await checkout_trees(context.benchmark.origin(code.instance), suites.cache)
    environment = RuntimeEnvironment.from_json(value)
    await to_thread.run_sync(partial(scratch.mkdir, parents=True, exist_ok=True))
    try:
        patch = await code.patch(scratch)
        async with applied_patch(trees.base, patch, scratch) as applied:
            run = await repeat_while_faulty(
                lambda: _run_once(applied.tree, environment, suites, job), _fault_of_machine, job
            )
    except (PatchError, PatchDoesNotApply) as error:
        run = TestRun(problem=RunProblem.BAD_PATCH, message=one_line(error))
    finally:
        await to_thread.run_sync(partial(shutil.rmtree, scratch, ignore_errors=True))
    if run.problem is not None and run.problem.infrastructure:
        job.fall_short(Shortfall(run.problem.value, run.message, transient=True))
    return await store_run(run, job)


def _fault_of_machine(run: TestRun) -> str:
    return run.message if run.problem is not None and run.problem.infrastructure else ""


async def _run_once(
    tree: OverlayTree, environment: RuntimeEnvironment, suites: SuiteServices, job: JobContext
) -> TestRun:
    scripts = await suites.mount_scripts(environment, job.load_text)
    network = suites.network if environment.hosts else NO_EGRESS
    privileges = environment.privileges
    wanted = SuiteSandbox(job.key, environment.image_id, scripts, privileges, network)
    try:
        async with open_suite_sandbox(suites, wanted) as sandbox:
            if environment.copies:
                await clean_testbed(sandbox)
            await put_patch(sandbox, tree)
            hidden = network.env if environment.hides_proxy else ()
            run = await run_suite(sandbox, privileges, suites.limits, hidden=hidden)
            limit, reserved = suites.memory_bytes, suites.memory_reserved_bytes
            return replace(run, memory_bytes=limit, memory_reserved_bytes=reserved)
    except SandboxMissing as error:
        return TestRun(problem=RunProblem.IMAGE_UNAVAILABLE, message=one_line(error))
    except SandboxError as error:
        return TestRun(problem=RunProblem.SANDBOX_LOST, message=one_line(error))
