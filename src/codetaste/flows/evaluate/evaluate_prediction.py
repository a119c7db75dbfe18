"""Evaluate one prediction: apply it to R, scan and count, and write the result beside the patch."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import (
    AGENT_CONFIG_FILE,
    EVALUATION_FOLDER,
    GOLDEN,
    METADATA_FILE,
    PREDICTION_FILE,
    FinishReason,
)
from codetaste.core.files import write_atomically
from codetaste.errors import ConfigError, RuleError
from codetaste.evaluation.activity.counts import write_activity
from codetaste.evaluation.activity.transcripts import activity_of_trial
from codetaste.evaluation.evaluate import Evaluation, EvaluationStatus, evaluate
from codetaste.evaluation.metrics import ifr
from codetaste.evaluation.output.result_files import read_recorded_tests, write_evaluation
from codetaste.evaluation.output.scores_json import scores_to_json
from codetaste.evaluation.pseudo_agents import pseudo_agent_config
from codetaste.evaluation.rule_set import RuleSet
from codetaste.evaluation.test_runs.recorded import compare_with_baseline
from codetaste.flows.evaluate.measured_tests import measured_tests, with_test_run
from codetaste.flows.evaluate.predictions import prediction_folder, prediction_patch
from codetaste.flows.evaluate.result import EvaluationResult
from codetaste.flows.infer.results import ExecuteResult
from codetaste.flows.sources import digest_parts, file_digest
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.evaluation.metrics import TestCounts
    from codetaste.flows.evaluate.context import EvaluationContext, EvaluationInputs
    from codetaste.flows.evaluate.plan import EvaluationTask


@dataclass(frozen=True, slots=True)
class EvaluatedPrediction:
    """The evaluation of one prediction, before its files are written."""

    evaluation: Evaluation
    patch: bytes
    metadata: Mapping[str, Any]


async def evaluate_prediction(
    task: EvaluationTask, context: EvaluationContext, inputs: EvaluationInputs
) -> EvaluatedPrediction:
    """Evaluate one prediction; no file is left on the disk.

    Raises:
        SourceError: the trees cannot be checked out.
        EngineError: the rule engine could not be run at all.
        JournalError: a text is missing; StorageFull, one of these: no space for the patched tree.
    """
    trees = await checkout_trees(context.benchmark.origin(task.instance), context.scan.cache)
    scratch = context.scratch / digest_parts(task.key)[:16]
    await to_thread.run_sync(partial(scratch.mkdir, parents=True, exist_ok=True))
    patch = await prediction_patch(task, context, inputs, trees, scratch)
    problem = ""
    try:
        rules = await context.load_rules(task, inputs)
    except (ConfigError, RuleError) as error:
        rules, problem = RuleSet(), "; ".join(str(error).split("\n"))
    reference = context.references[task.instance.id]
    measured = await measured_tests(task, inputs) if task.baseline_runs else None
    if measured is None:
        tests, tests_problem = await to_thread.run_sync(recorded_test_counts, task, context, patch)
        pass_result = compare_with_baseline(tests, reference.baseline)
    else:
        tests_problem, pass_result = "", measured.result
    evaluation = await evaluate(
        rules,
        trees.base,
        patch,
        context.scan.scanner,
        scratch=scratch,
        exclusions=context.config.exclusions,
        pass_result=pass_result,
        engine=context.scan.engine.label,
    )
    if problem and evaluation.status is EvaluationStatus.NO_RULES:
        evaluation = replace(evaluation, reason=problem)
    problem = "" if measured else reference.problem
    notes = (*evaluation.notes, *filter(None, (tests_problem, problem)))
    evaluation = replace(evaluation, notes=notes)
    if measured is not None:
        evaluation = await with_test_run(evaluation, measured, patch, trees, scratch)
    return EvaluatedPrediction(evaluation, patch, _metadata(task, inputs))


def _metadata(task: EvaluationTask, inputs: EvaluationInputs) -> Mapping[str, Any]:
    """Return ``inference_metadata.json`` of the prediction; a pseudo agent needs no time and no money."""
    if task.execution is not None:
        return ExecuteResult.from_json(inputs.values[task.execution.key]).metadata
    at = inputs.timestamp
    return {
        "cost_usd": 0.0,
        "finish_reason": FinishReason.SUCCESS,
        "start_time": at,
        "finish_time": at,
        "additional": None,
    }


def recorded_test_counts(
    task: EvaluationTask, context: EvaluationContext, patch: bytes | None = None
) -> tuple[TestCounts | None, str]:
    """Return the recorded test counts of a prediction, and why they cannot be read ("" if they can).

    Test counts of pseudo agents come from the baseline, all others from the file beside the prediction, which
    counts only if it is about this patch. With ``patch`` None it is compared with the patch file on disk.
    """
    if task.trial is None and (known := context.references[task.instance.id].tests.get(task.agent_id)):
        return known, ""
    folder = prediction_folder(context.out, task)
    tested = file_digest(folder / PREDICTION_FILE) if patch is None else sha256(patch).hexdigest()
    try:
        return read_recorded_tests(folder / EVALUATION_FOLDER, tested), ""
    except ConfigError as error:
        return None, str(error)


def write_evaluated_prediction(
    task: EvaluationTask, context: EvaluationContext, result: EvaluatedPrediction, timestamp: str
) -> EvaluationResult:
    """Write all files of an evaluated prediction, and return the job's value for the journal.

    Raises:
        JournalError: a file cannot be written; StorageFull is one of these.
    """
    folder, trial = prediction_folder(context.out, task), task.trial
    files: dict[str, str] = {}
    if trial is None:
        config = pseudo_agent_config(task.agent_id)
        contents = {
            PREDICTION_FILE: result.patch,
            AGENT_CONFIG_FILE: _json(config),
            METADATA_FILE: _json(result.metadata),
        }
        for name, content in contents.items():
            write_atomically(folder / name, content)
            files[name] = sha256(content).hexdigest()
    else:
        config = dict(context.agent_configs[trial.agent.id])
        write_activity(folder / EVALUATION_FOLDER, activity_of_trial(context.out, trial.key))
    try:
        instance_metadata = context.benchmark.metadata(task.instance)
    except ConfigError:
        instance_metadata = None  # the instance reference has the problem
    written = write_evaluation(
        folder / EVALUATION_FOLDER,
        result.evaluation,
        instance=task.instance,
        agent_config=config,
        inference_metadata=result.metadata,
        instance_metadata=instance_metadata,
        timestamp=timestamp,
    )
    files |= {f"{EVALUATION_FOLDER}/{name}": content for name, content in written.items()}
    return EvaluationResult(
        status=str(result.evaluation.status),
        summary=summarize(result.evaluation),
        as_expected=_is_as_expected(task, result.evaluation),
        scores=scores_to_json(result.evaluation),
        files=files,
        timestamp=timestamp,
    )


def files_unchanged(folder: Path, files: Mapping[str, str]) -> bool:
    """Whether the files in ``folder`` still have these SHA-256 digests."""
    return all(file_digest(folder / name) == expected for name, expected in files.items())


def summarize(evaluation: Evaluation) -> str:
    """Summarize the scores of a prediction in a few words."""
    if evaluation.rule_counts is None:
        why = f": {evaluation.reason}" if evaluation.reason else ""
        return f"{evaluation.status.replace('_', ' ')}{why}"
    rate, passed = ifr(evaluation.rule_counts), evaluation.pass_result.passed
    words = ["IFR undefined" if rate is None else f"IFR {rate:.2f}"]
    if evaluation.precision is not None:
        words.append(f"PREC {evaluation.precision.prec:.2f}")
    if passed is not None:
        words.append("PASS" if passed else "tests do not pass")
    return ", ".join(words)


def _is_as_expected(task: EvaluationTask, evaluation: Evaluation) -> bool | None:
    """Whether a pseudo agent has the score that it must have (IFR 1 for X*, 0 for none); None for a trial."""
    if task.trial is not None:
        return None
    rate = None if evaluation.rule_counts is None else ifr(evaluation.rule_counts)
    return rate == (1.0 if task.agent_id == GOLDEN else 0.0)


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
