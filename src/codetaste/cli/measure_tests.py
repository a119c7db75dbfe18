"""Measure PASS outside of an experiment: a run of nothing but test runs of predictions and of the baseline.

It is a run as any other, with a journal: what was measured once is not measured again.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from codetaste.flows.environment.plan import EnvironmentTask
from codetaste.flows.environment.publish import ENVIRONMENTS_FOLDER
from codetaste.flows.evaluate.context import EvaluationInputs
from codetaste.flows.evaluate.finish import write_measured_baselines
from codetaste.flows.evaluate.measured_tests import MeasuredTests, measured_tests
from codetaste.orchestration.job import Status
from codetaste.run.execute import open_run, run_jobs
from codetaste.run.flow_plan import FlowPlan
from codetaste.run.plan import RunOptions
from codetaste.run.signals import StopRequest, until_stopped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.flows.evaluate.plan import EvaluationTask
    from codetaste.orchestration.job import Outcome
    from codetaste.run.plan import RunPlan
    from codetaste.run.results import RunContext


async def measure_tests(
    planned: RunPlan, tasks: Sequence[EvaluationTask]
) -> dict[str, MeasuredTests | str] | None:
    """Run the tests of ``tasks`` and of their baselines in the runtime images of their instances.

    Images that are not there are built from the benchmark's scripts. The rest of ``planned`` is not run.

    Returns:
        What was measured, by the key of the task, or why nothing was; None if a signal stopped it.

    Raises:
        SandboxMissing: there is no container engine, or no base image.
        JournalError: the run's folder is in use, damaged, or full.
    """
    instances = {task.instance.id: task.instance for task in tasks}
    flows = FlowPlan(
        environments=tuple(EnvironmentTask(each, proves=False) for each in instances.values()),
        tested=tuple(tasks),
        selected_keys=frozenset(key for task in tasks for key in task.test_titles),
    )
    planned, stop = replace(planned, flows=flows), StopRequest()

    async def run() -> dict[str, MeasuredTests | str]:
        async with AsyncExitStack() as stack:
            context = await open_run(stack, planned, RunOptions())
            outcomes = await run_jobs(context, planned, stop)
            blobs = context.session.record.blobs
            await write_measured_baselines(tasks, outcomes, context.out / ENVIRONMENTS_FOLDER, blobs)
            return {task.key: await _measured(task, context, outcomes) for task in tasks}

    found = await until_stopped(stop, run)
    return None if stop.reason else found


async def _measured(
    task: EvaluationTask, context: RunContext, outcomes: Mapping[str, Outcome]
) -> MeasuredTests | str:
    keys = (task.sources_key, task.image_key, *task.test_titles)
    failed = [outcomes[key] for key in keys if not outcomes[key].usable]
    # A skipped job only says that one before it has failed.
    for outcome in sorted(failed, key=lambda each: each.status is Status.SKIPPED):
        return f"{outcome.key}: {outcome.error}"
    image = outcomes[task.image_key]
    if image.value is None:
        return "no environment" if image.shortfall is None else image.shortfall.text
    values = {key: outcome.value for key, outcome in outcomes.items()}
    inputs = EvaluationInputs(values, context.session.record.blobs.load, "")
    return await measured_tests(task, inputs)
