"""Outcomes of evaluations after all jobs have ended, and the files of each evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import CodetasteError, ConfigError, JournalError
from codetaste.evaluation.test_runs.baseline import make_baseline
from codetaste.evaluation.test_runs.gates import Side
from codetaste.evaluation.test_runs.recorded import write_baseline
from codetaste.evaluation.trials.read import read_outputs
from codetaste.evaluation.trials.records import TrialRecords
from codetaste.flows.agents.result import utc_now
from codetaste.flows.evaluate.context import EvaluationInputs
from codetaste.flows.evaluate.evaluate_prediction import (
    evaluate_prediction,
    files_unchanged,
    write_evaluated_prediction,
)
from codetaste.flows.evaluate.plan import baseline_tasks
from codetaste.flows.evaluate.predictions import prediction_folder
from codetaste.flows.evaluate.result import EvaluationResult
from codetaste.flows.evaluate.stored_runs import load_run
from codetaste.flows.job_keys import baseline_key
from codetaste.orchestration.job import Status
from codetaste.orchestration.journal.results import result_from_json, result_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.flows.evaluate.context import EvaluationContext
    from codetaste.flows.evaluate.plan import EvaluationTask
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.journal.blobs import Blobs


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

    ``outcomes`` are those of all jobs, ``trials`` those of the trials, by key.

    Raises:
        JournalError: a file cannot be read or written; StorageFull is one of these.
    """
    finished: dict[str, Outcome] = {}
    for task in tasks:
        outcome, needs = outcomes[task.key], {need: outcomes[need] for need in task.needs}
        if task.execution is not None:
            needs[task.execution.key] = trials[task.execution.trial.key]
            if task.baseline_runs and needs[task.tests_key].status is Status.SKIPPED:
                # Its step did not begin, so that its patch is empty: the code is R.
                needs[task.tests_key] = outcomes[baseline_key(task.instance, Side.BASE, 1)]
        timestamp = ""
        if outcome.usable and outcome.resumed:
            result = result_from_json(EvaluationResult, outcome.value)
            folder = prediction_folder(context.out, task)
            if not await to_thread.run_sync(files_unchanged, folder, result.files):
                timestamp = result.timestamp
        elif outcome.status is Status.SKIPPED and all(each.usable for each in needs.values()):
            timestamp = utc_now()
        if timestamp:
            values = {key: need.value for key, need in needs.items()}
            inputs = EvaluationInputs(values, blobs.load, timestamp)
            outcome = await _evaluate_now(task, context, inputs, outcome)
        finished[task.key] = outcome
    return finished


async def _evaluate_now(
    task: EvaluationTask, context: EvaluationContext, inputs: EvaluationInputs, outcome: Outcome
) -> Outcome:
    try:
        evaluated = await evaluate_prediction(task, context, inputs)
        result = await to_thread.run_sync(
            write_evaluated_prediction, task, context, evaluated, inputs.timestamp
        )
    except JournalError:
        raise
    except CodetasteError as error:
        return replace(outcome, status=Status.FAILED, value=None, cause=error.cause, error=str(error))
    return replace(
        outcome,
        status=Status.DONE,
        value=result_to_json(result),
        cause=None,
        error="",
        shortfall=result.shortfall,
    )


async def write_measured_baselines(
    tasks: Iterable[EvaluationTask], outcomes: Mapping[str, Outcome], root: Path, blobs: Blobs
) -> None:
    """Write the baselines that this run has measured to ``root`` in the published layout.

    A baseline is written whole: with all of its runs, and none that the machine was to blame for.

    Raises:
        JournalError: a text is missing or damaged, or a file cannot be written; StorageFull is one of these.
    """
    for task in {each.instance.id: each for each in tasks if each.baseline_runs}.values():
        ended = [
            (each.side, outcomes.get(each.key)) for each in baseline_tasks(task.instance, task.baseline_runs)
        ]
        runs = [
            (side, await load_run(outcome.value, blobs.load))
            for side, outcome in ended
            if outcome is not None and outcome.usable
        ]
        baseline = make_baseline({side: [run for at, run in runs if at is side] for side in Side})
        if len(runs) < len(ended) or any(baseline.lacking.values()):
            continue
        golden, null = ([run.counts for run in baseline.runs[side]] for side in (Side.GOLDEN, Side.BASE))
        await to_thread.run_sync(write_baseline, root, task.instance, golden, null)


_MAX_NOTES = 5


def read_comparison_records(
    out: Path, benchmark: Benchmark, tasks: Sequence[EvaluationTask], *, pseudo_agents: bool
) -> tuple[TrialRecords, list[str]]:
    """Return the records of ``tasks`` in the run folder ``out``, and notes on problems in them.

    Trials left by another config with the same run name are excluded. With ``pseudo_agents``, those agents at
    all instances of the trials are included.
    """
    try:
        outputs = read_outputs(out, benchmark)
    except ConfigError as error:
        return TrialRecords(), list(error.problems)
    wanted = {task.trial.identity for task in tasks if task.trial is not None}
    instances = {task.instance.id for task in tasks} if pseudo_agents else set()
    records = tuple(
        record
        for record in outputs.records
        if record.identity in wanted or (record.pseudo and record.instance in instances)
    )
    notes = [str(problem) for problem in outputs.problems[:_MAX_NOTES]]
    if len(outputs.problems) > _MAX_NOTES:
        more = len(outputs.problems) - _MAX_NOTES
        notes.append(f"… and {more} more problems; `codetaste report` lists all of them")
    return TrialRecords(records, outputs.problems), notes
