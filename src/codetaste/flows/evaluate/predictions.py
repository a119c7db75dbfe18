"""The patch of a prediction, and where its files are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.layout import GOLDEN, OUTPUTS_FOLDER, pseudo_trial_folder
from codetaste.evaluation.pseudo_agents import NULL_PATCH, golden_patch
from codetaste.flows.infer.outputs import output_folder
from codetaste.flows.infer.results import ExecuteResult

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.flows.evaluate.context import EvaluationContext, EvaluationInputs
    from codetaste.flows.evaluate.plan import EvaluationTask
    from codetaste.source.checkout import Trees


def prediction_folder(out: Path, task: EvaluationTask) -> Path:
    """Return the folder of the prediction; predictions of pseudo agents belong to no track."""
    if task.trial is not None:
        return output_folder(out, task.trial)
    return pseudo_trial_folder(out / OUTPUTS_FOLDER, task.instance.path, task.agent_id)


async def prediction_patch(
    task: EvaluationTask, context: EvaluationContext, inputs: EvaluationInputs, trees: Trees, scratch: Path
) -> bytes:
    """Return the patch of a prediction.

    Raises:
        SourceError: the golden patch cannot be read or made.
        JournalError: a text is missing; StorageFull, one of these: no space left.
    """
    if task.patch is not None:
        return task.patch
    if task.execution is not None:
        prediction = ExecuteResult.from_json(inputs.values[task.execution.key])
        return (await inputs.load_text(prediction.patch)).encode("utf-8", "surrogateescape")
    if task.agent_id == GOLDEN:
        return await golden_patch(context.benchmark, task.instance, trees, scratch)
    return NULL_PATCH
