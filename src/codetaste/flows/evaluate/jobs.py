"""Evaluation jobs: each applies a prediction to R, scans it and counts (CodeTaste §4.1, Figure 4).

A job costs no money and calls no model. Every patch gets a result with a status: a patch that does not apply
is scored as such and does not fail the run. A trial without a prediction is not evaluated.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.core.hashing import canonical_json
from codetaste.evaluation.metrics import METRICS_VERSION
from codetaste.evaluation.output.scores_json import SCORES_FORMAT
from codetaste.flows.agents.result import utc_now
from codetaste.flows.evaluate.context import EvaluationInputs
from codetaste.flows.evaluate.evaluate_prediction import (
    evaluate_prediction,
    recorded_test_counts,
    write_evaluated_prediction,
)
from codetaste.flows.sources import SOURCES, digest_parts, sources_handler, sources_job
from codetaste.orchestration.job import Job
from codetaste.orchestration.journal.results import result_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.flows.evaluate.context import EvaluationContext
    from codetaste.flows.evaluate.plan import EvaluationTask
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json

EVALUATE = "evaluate"
"""The kind of the jobs."""
VERSION = 1
"""Increment it when the flow changes an evaluation's result; the formulas have their own version."""
_MAX_CONCURRENT = 4
"""Limit for any number of CPUs: agents and their gateway run in the same process and take precedence."""


async def evaluation_jobs(
    tasks: Sequence[EvaluationTask], context: EvaluationContext, budget: BudgetPath, cpus: int
) -> list[Job]:
    """Return the jobs of ``tasks`` and of their sources, under ``budget``, for a host with ``cpus`` CPUs."""
    fingerprints = await to_thread.run_sync(_fingerprints, tasks, context)
    made: dict[str, Job] = {}
    for task in tasks:
        made.setdefault(task.sources_key, sources_job(task.instance, budget))
        made[task.key] = Job(
            task.key,
            EVALUATE,
            budget,
            fingerprint=fingerprints[task.key],
            parameters=task,
            needs=task.needs,
            resources={"cpu": max(1.0, cpus / _MAX_CONCURRENT)},
            title=task.title,
            group=task.group,
            costs_nothing=True,
        )
    return list(made.values())


def evaluation_handlers(context: EvaluationContext) -> dict[str, Handler]:
    """Return what runs the jobs of ``evaluation_jobs``, by kind."""
    return {
        SOURCES: sources_handler(context.benchmark, context.scan.cache),
        EVALUATE: lambda job, run: _evaluate(job.parameters, context, run),
    }


def _fingerprints(tasks: Sequence[EvaluationTask], context: EvaluationContext) -> dict[str, str]:
    """Fingerprint each evaluation's inputs, except results of other jobs: the patch and discovered rules."""
    common = (
        str(VERSION),
        str(METRICS_VERSION),
        str(SCORES_FORMAT),
        context.scan.engine.version,
        context.scan.ignore_text,
        context.config.exclusions,
    )
    fingerprints: dict[str, str] = {}
    for task in tasks:
        reference, instance = context.references[task.instance.id], task.instance
        recorded: list[Any] = []
        if not task.baseline_runs:
            tests, _ = recorded_test_counts(task, context)
            recorded = [tests and list(astuple(tests)), repr(reference.baseline), reference.problem]
        fingerprints[task.key] = digest_parts(
            *common,
            instance.commit_hash,
            instance.golden_commit_hash,
            reference.digest,
            canonical_json(recorded),
        )
    return fingerprints


async def _evaluate(task: EvaluationTask, context: EvaluationContext, job: JobContext) -> Json:
    inputs = EvaluationInputs(job.needs, job.load_text, utc_now())
    evaluated = await evaluate_prediction(task, context, inputs)
    with job.cleanup_scope():
        result = await to_thread.run_sync(
            write_evaluated_prediction, task, context, evaluated, inputs.timestamp
        )
    for note in evaluated.evaluation.notes:
        job.note(note)
    if (shortfall := result.shortfall) is not None:
        job.fall_short(shortfall)
    return result_to_json(result)
