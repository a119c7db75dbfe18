"""Jobs that compare the refactorings of predictions with the human's; they call no model and cost nothing."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import EVALUATION_FOLDER
from codetaste.core.hashing import canonical_json
from codetaste.evaluation.activity.refactorings import (
    compare_patches,
    refactoring_rows,
    refactorings_to_json,
    write_refactorings,
)
from codetaste.evaluation.pseudo_agents import golden_patch
from codetaste.flows.evaluate.context import EvaluationInputs
from codetaste.flows.evaluate.predictions import prediction_folder, prediction_patch
from codetaste.flows.sources import digest_parts
from codetaste.orchestration.job import Job
from codetaste.orchestration.shortfall import Shortfall
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.flows.evaluate.context import EvaluationContext
    from codetaste.flows.evaluate.plan import EvaluationTask
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler, JobContext, Outcome
    from codetaste.orchestration.journal.blobs import Blobs
    from codetaste.orchestration.journal.journal import Json
    from codetaste.refactorings.service import RefactoringService

REFACTORINGS = "refactorings"
"""The kind of the jobs."""
VERSION = 1
"""Increment it when the flow changes a result."""


@dataclass(frozen=True, slots=True)
class RefactoringContext:
    """What the jobs share: the evaluations, and the open service."""

    evaluation: EvaluationContext
    service: RefactoringService


def refactoring_jobs(
    tasks: Iterable[EvaluationTask], context: RefactoringContext, budget: BudgetPath
) -> list[Job]:
    """Return the jobs of ``tasks`` under ``budget``; the jobs that they need are those of the evaluations."""
    section = canonical_json(context.evaluation.config.refactoring_miner.model_dump(mode="json"))
    return [
        Job(
            task.refactorings_key,
            REFACTORINGS,
            budget,
            fingerprint=digest_parts(
                REFACTORINGS,
                str(VERSION),
                section,
                task.instance.commit_hash,
                context.evaluation.references[task.instance.id].digest,
            ),
            parameters=task,
            needs=task.refactoring_needs,
            resources={"cpu": 1},
            title=f"{task.title} refactorings",
            group="refactorings",
            costs_nothing=True,
        )
        for task in tasks
    ]


def refactoring_handlers(context: RefactoringContext) -> dict[str, Handler]:
    """Return what runs the jobs of ``refactoring_jobs``, by kind."""
    return {REFACTORINGS: lambda job, run: _compare(job.parameters, context, run)}


async def _compare(task: EvaluationTask, context: RefactoringContext, job: JobContext) -> Json:
    evaluation = context.evaluation
    trees = await checkout_trees(evaluation.benchmark.origin(task.instance), evaluation.scan.cache)
    scratch = evaluation.scratch / digest_parts(job.key)[:16]
    await to_thread.run_sync(partial(scratch.mkdir, parents=True, exist_ok=True))
    try:
        human = await golden_patch(evaluation.benchmark, task.instance, trees, scratch)
        inputs = EvaluationInputs(job.needs, job.load_text, "")
        agent = await prediction_patch(task, evaluation, inputs, trees, scratch)
        comparison = await compare_patches(context.service, trees.base, human, agent, scratch)
    finally:
        await to_thread.run_sync(partial(shutil.rmtree, scratch, ignore_errors=True))
    if not comparison.is_answer:
        job.fall_short(Shortfall(comparison.outcome, comparison.reason))
    return {
        **refactorings_to_json(comparison),
        "rows": await job.store_text(refactoring_rows(comparison)),
        "text": comparison.describe(),
    }


def describe_refactorings(outcome: Outcome) -> str:
    """Return the comparison in a few words, "" if there is none."""
    value: Any = outcome.value
    return "" if value is None else str(value["text"])


async def write_compared_refactorings(
    tasks: Iterable[EvaluationTask], outcomes: Mapping[str, Outcome], context: EvaluationContext, blobs: Blobs
) -> None:
    """Write the files of all comparisons beside the scores of their predictions.

    Raises:
        JournalError: a text is missing, or a file cannot be written; StorageFull is one of these.
    """
    for task in tasks:
        value: Any = outcomes[task.refactorings_key].value
        if value is not None:
            summary = {name: each for name, each in value.items() if name not in {"rows", "text"}}
            rows = await blobs.load(value["rows"])
            folder = prediction_folder(context.out, task) / EVALUATION_FOLDER
            await to_thread.run_sync(write_refactorings, folder, summary, rows)
