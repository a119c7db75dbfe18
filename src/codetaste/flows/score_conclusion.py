"""Outcomes of evaluations after all jobs have ended, and the files of each evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.errors import CodetasteError, JournalError
from codetaste.flows.effort import utc_now
from codetaste.flows.scored import (
    EvaluationInputs,
    evaluate_prediction,
    files_unchanged,
    prediction_folder,
    write_evaluated_prediction,
)
from codetaste.orchestration.job import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.flows.laboratory import EvaluationContext
    from codetaste.flows.scorings import EvaluationTask
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.storage import Blobs


async def finish_evaluations(
    tasks: Sequence[EvaluationTask],
    outcomes: Mapping[str, Outcome],
    trials: Mapping[str, Outcome],
    context: EvaluationContext,
    blobs: Blobs,
) -> dict[str, Outcome]:
    """Return the outcome of each evaluation, by key.

    A trial that used up its budget or time before its execute step began has an empty patch, which is
    evaluated here. Evaluations whose files were removed, or overwritten by another config with the same run
    name, are made again, because their files are too large to be stored in the journal as well.

    Args:
        tasks: the evaluations of the run.
        outcomes: the outcomes of all jobs, by key.
        trials: the outcomes of the trials, by key.
        context: the context that all evaluations share.
        blobs: the store of long texts.

    Raises:
        JournalError: a file cannot be read or written; StorageFull is one of these.
    """
    finished: dict[str, Outcome] = {}
    for task in tasks:
        outcome = outcomes[task.key]
        values = {need: outcomes[need].value for need in task.needs}
        if task.execution is not None:
            values[task.execution.key] = trials[task.execution.trial.key].value
        if await _must_evaluate(task, outcome, outcomes, trials, context):
            value: Any = outcome.value
            at = value["timestamp"] if outcome.usable else utc_now()
            inputs = EvaluationInputs(values, blobs.load, at)
            outcome = await _evaluate_again(task, context, inputs, outcome)
        finished[task.key] = outcome
    return finished


async def _must_evaluate(
    task: EvaluationTask,
    outcome: Outcome,
    outcomes: Mapping[str, Outcome],
    trials: Mapping[str, Outcome],
    context: EvaluationContext,
) -> bool:
    if outcome.usable:
        value: Any = outcome.value
        folder = prediction_folder(context.out, task)
        return outcome.resumed and not await to_thread.run_sync(files_unchanged, folder, value["files"])
    if outcome.status is not Status.SKIPPED or task.execution is None:
        return False
    trial = trials[task.execution.trial.key]
    others = (outcomes[need] for need in task.needs if need != task.execution.key)
    return trial.usable and trial.value is not None and all(other.usable for other in others)


async def _evaluate_again(
    task: EvaluationTask, context: EvaluationContext, inputs: EvaluationInputs, outcome: Outcome
) -> Outcome:
    try:
        result = await evaluate_prediction(task, context, inputs)
        value = await to_thread.run_sync(write_evaluated_prediction, task, context, result, inputs.timestamp)
    except JournalError:
        raise
    except CodetasteError as error:
        return replace(outcome, status=Status.FAILED, value=None, cause=error.cause, error=str(error))
    return replace(outcome, status=Status.DONE, value=value, cause=None, error="")
