"""Evaluate one prediction: apply it to R, scan and count, and write the result beside the patch."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.atomic import write_atomically
from codetaste.errors import ConfigError, RuleError
from codetaste.evaluation.activity import write_activity
from codetaste.evaluation.baseline import correctness
from codetaste.evaluation.evaluate import Evaluation, Status, evaluate
from codetaste.evaluation.pseudo import NULL_PATCH, golden_patch, pseudo_config
from codetaste.evaluation.records import GOLDEN
from codetaste.evaluation.result_files import recorded_tests, write_evaluation
from codetaste.evaluation.rule_files import RuleFiles
from codetaste.evaluation.score import ifr
from codetaste.evaluation.scores_file import scores_json
from codetaste.evaluation.traces import run_activity
from codetaste.flows.metadata import agent_config
from codetaste.flows.outputs import AGENT, METADATA, PATCH, output_folder, outputs_root
from codetaste.flows.sources import digest
from codetaste.source.trees import materialise

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.score import TestCounts
    from codetaste.flows.laboratory import Laboratory
    from codetaste.flows.scorings import Scoring
    from codetaste.source.trees import Trees

EVALUATION = "evaluation"


def scored_folder(out: Path, task: Scoring) -> Path:
    """Return the folder of the prediction; predictions of pseudo agents belong to no track."""
    if task.trial is not None:
        return output_folder(out, task.trial)
    return outputs_root(out) / "pseudo_agents/direct" / task.instance.path / task.agent_id


@dataclass(frozen=True, slots=True)
class Materials:
    """The inputs of one evaluation.

    Attributes:
        values: values of the jobs that it needs, by key.
        load_text: returns a text by its digest.
        timestamp: time of the evaluation, ISO 8601.
    """

    values: Mapping[str, Any]
    fetch: Callable[[str], Awaitable[str]]
    timestamp: str


@dataclass(frozen=True, slots=True)
class Scored:
    """The evaluation of one prediction, before its files are written."""

    evaluation: Evaluation
    patch: bytes
    metadata: Mapping[str, Any]


async def scored(task: Scoring, context: Laboratory, inputs: Materials) -> Scored:
    """Evaluate one prediction; no file is left on the disk.

    Raises:
        SourceError: the trees cannot be checked out.
        EngineError: the rule engine could not be run at all.
        JournalError: a text is missing; StorageFull, one of these: no space for the patched tree.
    """
    trees = await materialise(context.benchmark.origin(task.instance), context.cache)
    scratch = context.scratch / digest(task.key)[:16]
    await to_thread.run_sync(partial(scratch.mkdir, parents=True, exist_ok=True))
    patch = await _patch(task, context, inputs, trees, scratch)
    problem = ""
    try:
        rules = await context.rules(task, inputs.values, inputs.fetch)
    except (ConfigError, RuleError) as error:
        rules, problem = RuleFiles(), "; ".join(str(error).split("\n"))
    reference = context.yardsticks[task.instance.id]
    tests, tests_problem = await to_thread.run_sync(recorded_for, task, context, patch)
    evaluation = await evaluate(
        rules,
        trees.base,
        patch,
        context.scanner,
        scratch=scratch,
        exclusions=context.config.exclusions,
        correctness=correctness(tests, reference.baseline),
        engine=context.engine,
    )
    if problem and evaluation.status is Status.NO_RULES:
        evaluation = replace(evaluation, why=problem)
    notes = (*evaluation.notes, *filter(None, (tests_problem, reference.problem)))
    return Scored(replace(evaluation, notes=notes), patch, _metadata(task, inputs))


async def _patch(task: Scoring, context: Laboratory, inputs: Materials, trees: Trees, scratch: Path) -> bytes:
    if task.execution is not None:
        patch_digest = inputs.values[task.execution.key]["patch"]
        return (await inputs.fetch(patch_digest)).encode("utf-8", "surrogateescape")
    if task.agent_id == GOLDEN:
        return await golden_patch(context.benchmark, task.instance, trees, scratch)
    return NULL_PATCH


def _metadata(task: Scoring, inputs: Materials) -> Mapping[str, Any]:
    """Return ``inference_metadata.json`` of the prediction; a pseudo agent needs no time and no money."""
    if task.execution is not None:
        metadata: Mapping[str, Any] = inputs.values[task.execution.key]["metadata"]
        return metadata
    at = inputs.timestamp
    return {
        "cost_usd": 0.0,
        "finish_reason": "success",
        "start_time": at,
        "finish_time": at,
        "additional": None,
    }


def recorded_for(
    task: Scoring, context: Laboratory, patch: bytes | None = None
) -> tuple[TestCounts | None, str]:
    """Return the recorded test counts of a prediction, and why they cannot be read ("" if they can).

    Test counts of pseudo agents come from the baseline, all others from the file beside the prediction, which
    counts only if it is about this patch. With ``patch`` None it is compared with the patch file on disk.
    """
    if task.trial is None and (known := context.yardsticks[task.instance.id].tests.get(task.agent_id)):
        return known, ""
    folder = scored_folder(context.out, task)
    try:
        tested = sha256((folder / PATCH).read_bytes() if patch is None else patch).hexdigest()
    except OSError:
        tested = ""
    try:
        return recorded_tests(folder / EVALUATION, tested), ""
    except ConfigError as error:
        return None, str(error)


def write_scored(task: Scoring, context: Laboratory, result: Scored, timestamp: str) -> dict[str, Any]:
    """Write all files of an evaluated prediction, and return the job's value for the journal.

    Raises:
        JournalError: a file cannot be written; StorageFull is one of these.
    """
    folder, trial = scored_folder(context.out, task), task.trial
    files: dict[str, str] = {}
    if trial is None:
        config = pseudo_config(task.agent_id)
        contents = {PATCH: result.patch, AGENT: _json(config), METADATA: _json(result.metadata)}
        for name, content in contents.items():
            write_atomically(folder / name, content)
            files[name] = sha256(content).hexdigest()
    else:
        config = agent_config(trial, context.trials_site())
        write_activity(folder / EVALUATION, run_activity(context.out, trial.key))
    written = write_evaluation(
        folder / EVALUATION,
        result.evaluation,
        instance=task.instance,
        agent_config=config,
        inference_metadata=result.metadata,
        instance_metadata=_instance_metadata(context, task.instance),
        timestamp=timestamp,
    )
    files |= {f"{EVALUATION}/{name}": content for name, content in written.items()}
    return {
        "status": str(result.evaluation.status),
        "said": said(result.evaluation),
        "sound": _sound(task, result.evaluation),
        "scores": scores_json(result.evaluation),
        "files": files,
        "timestamp": timestamp,
    }


def _instance_metadata(context: Laboratory, instance: Instance) -> Mapping[str, Any] | None:
    try:
        return context.benchmark.metadata(instance)
    except ConfigError:
        return None  # the instance reference has the problem


def holds(folder: Path, files: Mapping[str, str]) -> bool:
    """Whether the files in ``folder`` still have these SHA-256 digests."""
    try:
        return all(
            sha256((folder / name).read_bytes()).hexdigest() == expected for name, expected in files.items()
        )
    except OSError:
        return False


def said(evaluation: Evaluation) -> str:
    """Summarize the scores of a prediction in a few words."""
    if evaluation.counts is None:
        why = f": {evaluation.why}" if evaluation.why else ""
        return f"{evaluation.status.replace('_', ' ')}{why}"
    rate, passed = ifr(evaluation.counts), evaluation.correctness.passed
    words = ["IFR undefined" if rate is None else f"IFR {rate:.2f}"]
    if evaluation.precision is not None:
        words.append(f"PREC {evaluation.precision.prec:.2f}")
    if passed is not None:
        words.append("PASS" if passed else "tests do not pass")
    return ", ".join(words)


def _sound(task: Scoring, evaluation: Evaluation) -> bool | None:
    """Whether a pseudo agent has the score that it must have (IFR 1 for X*, 0 for none); None for a trial."""
    if task.trial is not None:
        return None
    rate = None if evaluation.counts is None else ifr(evaluation.counts)
    return rate == (1.0 if task.agent_id == GOLDEN else 0.0)


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
