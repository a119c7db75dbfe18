"""Read one trial's folder, our own or published, into a record; a problem affects only one value."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import (
    ACTIVITY_FILE,
    AGENT_CONFIG_FILE,
    BASELINES_FOLDER,
    EVALUATION_FOLDER,
    GOLDEN,
    METADATA_FILE,
    MODES,
    NULL,
    PREDICTION_FILE,
    RESULT_FILE,
    SCORES_FILE,
    Track,
)
from codetaste.core.text import printable
from codetaste.evaluation.activity.counts import read_activity
from codetaste.evaluation.evaluate import EvaluationStatus
from codetaste.evaluation.metrics import passes
from codetaste.evaluation.trials.metadata import read_metadata
from codetaste.evaluation.trials.published import scores_of_evaluation, scores_without_evaluation
from codetaste.evaluation.trials.records import (
    ProblemKind,
    PublishedScores,
    TrialRecord,
    TrialScores,
    TrialSource,
    TrialStatus,
)
from codetaste.evaluation.trials.scores import result_from_json, scores_from_json
from codetaste.evaluation.trials.untrusted_files import (
    FileProblem,
    file_size,
    is_link,
    read_file,
    read_json_object,
)
from codetaste.source.patch.parse import MAX_PATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.evaluation.activity.counts import Activity
    from codetaste.evaluation.trials.context import ReadContext
    from codetaste.evaluation.trials.find import TrialFolder
    from codetaste.evaluation.trials.records import TrialMetadata
    from codetaste.evaluation.trials.scores import PublishedResult

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,99}")
_MAX_NAME_CHARS = 100


def read_trial(trial: TrialFolder, context: ReadContext) -> TrialRecord | None:
    """Return the record of ``trial``; None if the benchmark does not have its instance."""
    instance = context.instance(trial)
    if context.benchmark is not None and instance is None:
        text = f"the benchmark has no instance {printable(trial.instance_path)}; it is left out"
        context.add_problem(trial.label, FileProblem(ProblemKind.UNKNOWN_INSTANCE, text))
        return None
    pseudo = trial.pseudo or trial.agent in {GOLDEN, NULL}
    metadata = read_metadata(
        trial.folder,
        context.root,
        trial.mode,
        pseudo=pseudo,
        report=lambda name, problem: context.add_problem(f"{trial.label}/{name}", problem),
    )
    result, problem = _result(trial, context)
    scores, own = _scores(trial, metadata, result, problem, context)
    track, mode = _track(trial, metadata, context, pseudo=pseudo)
    return TrialRecord(
        run=context.run_name,
        agent=_agent(trial, metadata, result, context),
        track=track,
        mode=mode,
        instance=trial.instance_id,
        repository=f"{trial.owner}/{trial.repo}",
        language=instance.language if instance else "",
        category=printable(instance.category) if instance else "",
        attempt=trial.attempt,
        folder=trial.folder,
        metadata=replace(metadata, source=TrialSource.CODETASTE) if own and pseudo else metadata,
        scores=scores,
        activity=_activity(trial, context),
        published=_published(trial, metadata, result, scores, context),
    )


def _agent(
    trial: TrialFolder, metadata: TrialMetadata, result: PublishedResult | None, context: ReadContext
) -> str:
    """Return the agent's id: from its metadata, by which the published harness groups, else its folder."""
    recorded = result.agent_config.get("id") if result is not None else ""
    name = metadata.agent_id or (recorded if isinstance(recorded, str) else "") or trial.agent
    if name != trial.agent and not {GOLDEN, NULL}.isdisjoint((name, trial.agent)):
        # Otherwise an agent's trial would be taken for a pseudo agent's and not counted, or the reverse.
        text = f"has the id {printable(name)!r} in the folder of {printable(trial.agent)}, which is used"
        context.add_problem(f"{trial.label}/{AGENT_CONFIG_FILE}", FileProblem(ProblemKind.NAME, text))
        name = trial.agent
    shown = printable(name, _MAX_NAME_CHARS)
    if not _SAFE_NAME.fullmatch(name):
        text = f"the agent's id {shown!r} is not a plain name (letters, digits, '.', '_', '+', '@', '-')"
        context.add_problem(f"{trial.label}/{AGENT_CONFIG_FILE}", FileProblem(ProblemKind.NAME, text))
    return shown


def _track(
    trial: TrialFolder, metadata: TrialMetadata, context: ReadContext, *, pseudo: bool
) -> tuple[str, str]:
    """Return track and mode: the folder's, else those of the metadata."""
    if pseudo:
        return "", "direct"
    recorded = (metadata.track, metadata.mode)
    valid = metadata.track in set(Track) and metadata.mode in MODES
    if not trial.track:
        if not valid:
            text = "neither the folder nor the metadata contain its track and mode"
            context.add_problem(trial.label, FileProblem(ProblemKind.LAYOUT, text))
        return recorded if valid else ("", "")
    if any(recorded) and recorded != (trial.track, trial.mode):
        text = f"has {printable('/'.join(recorded))} in the folder of {trial.track}/{trial.mode}"
        context.add_problem(f"{trial.label}/{METADATA_FILE}", FileProblem(ProblemKind.LAYOUT, text))
    return trial.track, trial.mode


def _result(trial: TrialFolder, context: ReadContext) -> tuple[PublishedResult | None, str]:
    """Return the content of ``evaluation_result.json``, and what is wrong with it."""
    folder = trial.folder / EVALUATION_FOLDER
    try:
        if is_link(folder):
            raise FileProblem(ProblemKind.LINK, "its folder is a link, which is not followed")  # noqa: TRY301
        result = result_from_json(read_json_object(folder / RESULT_FILE, context.root))
    except FileNotFoundError:
        return None, ""
    except FileProblem as problem:
        context.add_problem(f"{trial.label}/{EVALUATION_FOLDER}/{RESULT_FILE}", problem)
        return None, f"{RESULT_FILE} {problem}"
    label = f"{trial.label}/{EVALUATION_FOLDER}/{RESULT_FILE}"
    if result.invalid_tests:
        text = "agent_test_metrics are not valid test counts: taken as not recorded"
        context.add_problem(label, FileProblem(ProblemKind.NUMBER, text))
    mismatch = _other_commit(trial, result, context)
    if mismatch:
        context.add_problem(label, FileProblem(ProblemKind.OTHER_COMMIT, mismatch))
    return result, mismatch


def _other_commit(trial: TrialFolder, result: PublishedResult, context: ReadContext) -> str:
    """Return how the commits of an evaluation differ from the instance's, "" if they do not."""
    instance = context.instance(trial)
    base, golden = (instance.commit_hash, instance.golden_commit_hash) if instance else (trial.hash8, "")
    for key, expected in (("base_hash", base), ("golden_hash", golden)):
        recorded = result.instance_metadata.get(key)
        if isinstance(recorded, str) and not recorded.startswith(expected):
            return f"its {key} is {printable(recorded[:12])}, the instance's is {expected[:12]}"
    return ""


def _scores(
    trial: TrialFolder,
    metadata: TrialMetadata,
    result: PublishedResult | None,
    problem: str,
    context: ReadContext,
) -> tuple[TrialScores, bool]:
    """Return the trial's scores, and whether they are from our own ``scores.json``."""
    own = _own_scores(trial, context)
    if own is not None and not (problem and result):
        return own, True
    if result is not None and not problem:
        return scores_of_evaluation(trial, result, context), False
    if problem:
        status = TrialStatus.UNREADABLE if result is None else TrialStatus.NOT_SCORED
        return TrialScores(status, problem), False
    if file_size(trial.folder / EVALUATION_FOLDER / SCORES_FILE) is not None:
        return TrialScores(TrialStatus.NOT_SCORED, f"its {SCORES_FILE} cannot be used"), False
    return scores_without_evaluation(trial, metadata, context), False


def _own_scores(trial: TrialFolder, context: ReadContext) -> TrialScores | None:
    """Return the scores in our ``scores.json``, if it exists and is of this patch."""
    path = trial.folder / EVALUATION_FOLDER / SCORES_FILE
    if is_link(path.parent):  # already reported
        return None
    label = f"{trial.label}/{EVALUATION_FOLDER}/{SCORES_FILE}"
    try:
        scores = read_json_object(path, context.root)
    except FileNotFoundError:
        return None
    except FileProblem as problem:
        context.add_problem(label, problem)
        return None
    try:
        _check_patch(scores, trial, context)
        return scores_from_json(scores)
    except FileNotFoundError:
        context.add_problem(
            f"{trial.label}/{PREDICTION_FILE}", FileProblem(ProblemKind.MISSING, "is missing")
        )
    except FileProblem as fault:
        context.add_problem(label, fault)
        if fault.kind is ProblemKind.STALE:  # the files written with it are stale too
            return TrialScores(TrialStatus.NOT_SCORED, f"its {SCORES_FILE} {fault}")
    return None


def _check_patch(scores: Mapping[str, Any], trial: TrialFolder, context: ReadContext) -> None:
    """Check that the scores are of the trial's patch, by size if the patch was too large to be read."""
    digest = scores.get("patch_sha256")
    if scores.get("status") == EvaluationStatus.TOO_LARGE and not digest:
        same = file_size(trial.folder / PREDICTION_FILE) == scores.get("patch_bytes")
    else:
        patch = read_file(trial.folder / PREDICTION_FILE, context.root, MAX_PATCH_BYTES)
        same = digest == hashlib.sha256(patch).hexdigest()
    if not same:
        raise FileProblem(ProblemKind.STALE, f"is of another {PREDICTION_FILE} than the trial's")


def _activity(trial: TrialFolder, context: ReadContext) -> Activity | None:
    try:
        return read_activity(trial.folder / EVALUATION_FOLDER)
    except ValueError as error:
        text = f"cannot be read: {str(error).rpartition(': ')[2]}"
        context.add_problem(
            f"{trial.label}/{EVALUATION_FOLDER}/{ACTIVITY_FILE}", FileProblem(ProblemKind.UNREADABLE, text)
        )
        return None


def _published(
    trial: TrialFolder,
    metadata: TrialMetadata,
    result: PublishedResult | None,
    scores: TrialScores,
    context: ReadContext,
) -> PublishedScores | None:
    """Return the values of this trial that the published harness averages; None if it drops the trial.

    It reads only ``evaluation_result.json``, validated by its own models, drops trials without track and
    mode, and reads only first attempts.
    """
    if result is None or not result.loadable or trial.attempt > 1:
        return None
    if trial.agent in {GOLDEN, NULL}:
        if not trial.pseudo:
            return None
    elif not (metadata.loadable and metadata.track and metadata.mode):
        return None
    counts = result.rule_counts
    total = counts.positive_total + counts.negative_total
    met = counts.positive_matched + counts.negative_total - counts.negative_matched
    return PublishedScores(
        passed=_published_pass(trial, result, context),
        ifr=met / total if total else 1.0,
        ifr_plus=counts.positive_matched / counts.positive_total if counts.positive_total else 1.0,
        ifr_minus=1 - counts.negative_matched / counts.negative_total if counts.negative_total else 1.0,
        prec=scores.prec,
        prec_plus=scores.prec_plus,
        prec_minus=scores.prec_minus,
        cost_usd=metadata.known_cost_usd,
    )


def _published_pass(trial: TrialFolder, result: PublishedResult, context: ReadContext) -> float | None:
    """Its ``test_success``: None without an environment or recorded baseline runs, 0 without results."""
    has_environment = result.instance_metadata.get("has_execution_environment")
    baseline = context.baseline(trial)
    if not has_environment or baseline.thresholds is None or baseline.source != BASELINES_FOLDER:
        return None
    return float(result.tests is not None and passes(result.tests, baseline.thresholds))
