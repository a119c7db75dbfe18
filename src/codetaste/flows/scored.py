"""One prediction scored: applied to R, scanned, counted, and told of in files beside its patch."""

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


def scored_folder(out: Path, scoring: Scoring) -> Path:
    """Return where the prediction lies; those of pseudo agents belong to every track."""
    if scoring.trial is not None:
        return output_folder(out, scoring.trial)
    return outputs_root(out) / "pseudo_agents/direct" / scoring.instance.path / scoring.agent_id


@dataclass(frozen=True, slots=True)
class Materials:
    """What one scoring works from.

    Attributes:
        values: of the jobs that it needs, by key.
        fetch: returns a text by its digest.
        timestamp: when it is done, ISO 8601.
    """

    values: Mapping[str, Any]
    fetch: Callable[[str], Awaitable[str]]
    timestamp: str


@dataclass(frozen=True, slots=True)
class Scored:
    """An evaluation of one prediction, not written yet."""

    evaluation: Evaluation
    patch: bytes
    metadata: Mapping[str, Any]


async def scored(scoring: Scoring, lab: Laboratory, materials: Materials) -> Scored:
    """Score one prediction; nothing is left behind on the disk.

    Raises:
        SourceError: the trees cannot be had.
        EngineError: the rule engine could not be run at all.
        JournalError: a text is missing; StorageFull among them: no space for the patched tree.
    """
    trees = await materialise(lab.benchmark.origin(scoring.instance), lab.cache)
    scratch = lab.scratch / digest(scoring.key)[:16]
    await to_thread.run_sync(partial(scratch.mkdir, parents=True, exist_ok=True))
    patch = await _patch(scoring, lab, materials, trees, scratch)
    problem = ""
    try:
        rules = await lab.rules(scoring, materials.values, materials.fetch)
    except (ConfigError, RuleError) as error:
        rules, problem = RuleFiles(), "; ".join(str(error).split("\n"))
    yardstick = lab.yardsticks[scoring.instance.id]
    tests, damage = await to_thread.run_sync(recorded_for, scoring, lab, patch)
    evaluation = await evaluate(
        rules,
        trees.base,
        patch,
        lab.scanner,
        scratch=scratch,
        exclusions=lab.config.exclusions,
        correctness=correctness(tests, yardstick.baseline),
        engine=lab.engine,
    )
    if problem and evaluation.status is Status.NO_RULES:
        evaluation = replace(evaluation, why=problem)
    notes = (*evaluation.notes, *filter(None, (damage, yardstick.problem)))
    return Scored(replace(evaluation, notes=notes), patch, _metadata(scoring, materials))


async def _patch(
    scoring: Scoring, lab: Laboratory, materials: Materials, trees: Trees, scratch: Path
) -> bytes:
    if scoring.execution is not None:
        kept = materials.values[scoring.execution.key]["patch"]
        return (await materials.fetch(kept)).encode("utf-8", "surrogateescape")
    if scoring.agent_id == GOLDEN:
        return await golden_patch(lab.benchmark, scoring.instance, trees, scratch)
    return NULL_PATCH


def _metadata(scoring: Scoring, materials: Materials) -> Mapping[str, Any]:
    """Return ``inference_metadata.json`` of the prediction; a pseudo agent takes no time and no money."""
    if scoring.execution is not None:
        told: Mapping[str, Any] = materials.values[scoring.execution.key]["metadata"]
        return told
    at = materials.timestamp
    return {
        "cost_usd": 0.0,
        "finish_reason": "success",
        "start_time": at,
        "finish_time": at,
        "additional": None,
    }


def recorded_for(
    scoring: Scoring, lab: Laboratory, patch: bytes | None = None
) -> tuple[TestCounts | None, str]:
    """Return the test results that are recorded of a prediction, or why they cannot be read. Blocks.

    Those of pseudo agents are in the baseline, others beside the prediction; there they do not count where
    another patch was tested. ``patch`` is None where nobody has one yet: then the file that is there decides.
    """
    if scoring.trial is None and (known := lab.yardsticks[scoring.instance.id].tests.get(scoring.agent_id)):
        return known, ""
    folder = scored_folder(lab.out, scoring)
    try:
        tested = sha256((folder / PATCH).read_bytes() if patch is None else patch).hexdigest()
    except OSError:
        tested = ""
    try:
        return recorded_tests(folder / EVALUATION, tested), ""
    except ConfigError as error:
        return None, str(error)


def write_scored(scoring: Scoring, lab: Laboratory, result: Scored, timestamp: str) -> dict[str, Any]:
    """Write all files of a scored prediction, and return what the journal keeps of it. Blocks.

    Raises:
        JournalError: they cannot be written; StorageFull among them.
    """
    folder, trial = scored_folder(lab.out, scoring), scoring.trial
    files: dict[str, str] = {}
    if trial is None:
        config = pseudo_config(scoring.agent_id)
        own = {PATCH: result.patch, AGENT: _json(config), METADATA: _json(result.metadata)}
        for name, content in own.items():
            write_atomically(folder / name, content)
            files[name] = sha256(content).hexdigest()
    else:
        config = agent_config(trial, lab.trials_site())
        write_activity(folder / EVALUATION, run_activity(lab.out, trial.key))
    written = write_evaluation(
        folder / EVALUATION,
        result.evaluation,
        instance=scoring.instance,
        agent_config=config,
        inference_metadata=result.metadata,
        instance_metadata=_known(lab, scoring.instance),
        timestamp=timestamp,
    )
    files |= {f"{EVALUATION}/{name}": content for name, content in written.items()}
    return {
        "status": str(result.evaluation.status),
        "said": said(result.evaluation),
        "sound": _sound(scoring, result.evaluation),
        "scores": scores_json(result.evaluation),
        "files": files,
        "timestamp": timestamp,
    }


def _known(lab: Laboratory, instance: Instance) -> Mapping[str, Any] | None:
    try:
        return lab.benchmark.metadata(instance)
    except ConfigError:
        return None  # the yardstick says so


def holds(folder: Path, files: Mapping[str, str]) -> bool:
    """Whether the files in ``folder`` have still these digests. Blocks."""
    try:
        return all(sha256((folder / name).read_bytes()).hexdigest() == is_ for name, is_ in files.items())
    except OSError:
        return False


def said(evaluation: Evaluation) -> str:
    """Say in a few words what a prediction is worth."""
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


def _sound(scoring: Scoring, evaluation: Evaluation) -> bool | None:
    """Whether a pseudo agent scores what it must: X* all rules, and nothing none. None for a trial."""
    if scoring.trial is not None:
        return None
    rate = None if evaluation.counts is None else ifr(evaluation.counts)
    return rate == (1.0 if scoring.agent_id == GOLDEN else 0.0)


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()
