"""Read one trial's folder, our own or published, into a record; a problem affects only one value."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

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
    REFACTORINGS_FILE,
    RESULT_FILE,
    SCORES_FILE,
    Mode,
    Track,
)
from codetaste.core.text import printable
from codetaste.evaluation.activity.counts import activity_from_json
from codetaste.evaluation.activity.refactorings import refactoring_counts_from_json
from codetaste.evaluation.evaluate import EvaluationStatus
from codetaste.evaluation.metrics import passes
from codetaste.evaluation.output.scores_json import SCORES_FORMAT
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
    from codetaste.evaluation.activity.counts import Activity
    from codetaste.evaluation.activity.refactorings import RefactoringCounts
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
        context.add_problem(trial.label, ProblemKind.UNKNOWN_INSTANCE, text)
        return None
    pseudo = trial.pseudo or trial.agent in {GOLDEN, NULL}
    metadata = read_metadata(trial, context, pseudo=pseudo)
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
        refactorings=_refactorings(trial, context),
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
        context.add_problem(f"{trial.label}/{AGENT_CONFIG_FILE}", ProblemKind.NAME, text)
        name = trial.agent
    shown = printable(name, _MAX_NAME_CHARS)
    if not _SAFE_NAME.fullmatch(name):
        text = f"the agent's id {shown!r} is not a plain name (letters, digits, '.', '_', '+', '@', '-')"
        context.add_problem(f"{trial.label}/{AGENT_CONFIG_FILE}", ProblemKind.NAME, text)
    return shown


def _track(
    trial: TrialFolder, metadata: TrialMetadata, context: ReadContext, *, pseudo: bool
) -> tuple[str, str]:
    """Return track and mode: the folder's, else those of the metadata."""
    if pseudo:
        return "", Mode.DIRECT
    recorded = (metadata.track, metadata.mode)
    valid = metadata.track in set(Track) and metadata.mode in MODES
    if not trial.track:
        if not valid:
            text = "neither the folder nor the metadata contain its track and mode"
            context.add_problem(trial.label, ProblemKind.LAYOUT, text)
        return recorded if valid else ("", "")
    if any(recorded) and recorded != (trial.track, trial.mode):
        text = f"has {printable('/'.join(recorded))} in the folder of {trial.track}/{trial.mode}"
        context.add_problem(f"{trial.label}/{METADATA_FILE}", ProblemKind.LAYOUT, text)
    return trial.track, trial.mode


def _result(trial: TrialFolder, context: ReadContext) -> tuple[PublishedResult | None, str]:
    """Return the content of ``evaluation_result.json``, and what is wrong with it."""
    folder = trial.folder / EVALUATION_FOLDER
    label = f"{trial.label}/{EVALUATION_FOLDER}/{RESULT_FILE}"
    try:
        if is_link(folder):
            raise FileProblem(ProblemKind.LINK, "its folder is a link, which is not followed")  # noqa: TRY301
        result = result_from_json(read_json_object(folder / RESULT_FILE, context.root))
    except FileProblem as problem:
        if problem.kind is ProblemKind.MISSING:
            return None, ""
        context.add_fault(label, problem)
        return None, f"{RESULT_FILE} {problem}"
    if result.invalid_tests:
        text = "agent_test_metrics are not valid test counts: taken as not recorded"
        context.add_problem(label, ProblemKind.NUMBER, text)
    instance = context.instance(trial)
    base, golden = (instance.commit_hash, instance.golden_commit_hash) if instance else (trial.hash8, "")
    for key, expected in (("base_hash", base), ("golden_hash", golden)):
        recorded = result.instance_metadata.get(key)
        if isinstance(recorded, str) and not recorded.startswith(expected):
            mismatch = f"its {key} is {printable(recorded[:12])}, the instance's is {expected[:12]}"
            context.add_problem(label, ProblemKind.OTHER_COMMIT, mismatch)
            return result, mismatch
    return result, ""


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
    """Return the scores in ``scores.json``, if it exists; not scored if it has another format or patch."""
    path, prediction = trial.folder / EVALUATION_FOLDER / SCORES_FILE, trial.folder / PREDICTION_FILE
    label = f"{trial.label}/{EVALUATION_FOLDER}/{SCORES_FILE}"
    if is_link(path.parent):  # already reported
        return None
    try:
        scores = read_json_object(path, context.root)
    except FileProblem as problem:
        if problem.kind is not ProblemKind.MISSING:
            context.add_fault(label, problem)
        return None
    if (written := scores.get("format", 1)) != SCORES_FORMAT:
        shown = printable(str(written), 20) if isinstance(written, int) else "unknown"
        text = f"has format {shown}, this codetaste reads format {SCORES_FORMAT}: evaluate it again"
        context.add_problem(label, ProblemKind.FORMAT, text)
        return TrialScores(TrialStatus.NOT_SCORED, f"its {SCORES_FILE} {text}")
    try:
        digest = scores.get("patch_sha256")
        if scores.get("status") == EvaluationStatus.TOO_LARGE and not digest:  # the patch was not read
            same = file_size(prediction) == scores.get("patch_bytes")
        else:
            patch = read_file(prediction, context.root, MAX_PATCH_BYTES)
            same = digest == hashlib.sha256(patch).hexdigest()
        if same:
            return scores_from_json(scores)
    except FileProblem as fault:
        missing = fault.kind is ProblemKind.MISSING
        context.add_fault(f"{trial.label}/{PREDICTION_FILE}" if missing else label, fault)
        return None
    stale = f"is of another {PREDICTION_FILE} than the trial's"
    context.add_problem(label, ProblemKind.STALE, stale)
    # The files written with it are stale too.
    return TrialScores(TrialStatus.NOT_SCORED, f"its {SCORES_FILE} {stale}")


def _activity(trial: TrialFolder, context: ReadContext) -> Activity | None:
    label = f"{trial.label}/{EVALUATION_FOLDER}/{ACTIVITY_FILE}"
    try:
        data = read_json_object(trial.folder / EVALUATION_FOLDER / ACTIVITY_FILE, context.root)
    except FileProblem as problem:
        if problem.kind is not ProblemKind.MISSING:
            context.add_fault(label, problem)
        return None
    activity = activity_from_json(data)
    if activity is None:
        context.add_problem(label, ProblemKind.NUMBER, "does not contain activity counts")
    return activity


def _refactorings(trial: TrialFolder, context: ReadContext) -> RefactoringCounts | None:
    label = f"{trial.label}/{EVALUATION_FOLDER}/{REFACTORINGS_FILE}"
    try:
        data = read_json_object(trial.folder / EVALUATION_FOLDER / REFACTORINGS_FILE, context.root)
        return refactoring_counts_from_json(data)
    except FileProblem as problem:
        if problem.kind is not ProblemKind.MISSING:
            context.add_fault(label, problem)
    except ValueError as error:
        context.add_problem(label, ProblemKind.FORMAT, str(error))
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
    counts, passed = result.rule_counts, None
    total = counts.positive_total + counts.negative_total
    met = counts.positive_matched + counts.negative_total - counts.negative_matched
    thresholds = context.baseline(trial).thresholds
    recorded = context.baseline(trial).source == BASELINES_FOLDER
    if result.instance_metadata.get("has_execution_environment") and recorded and thresholds is not None:
        # Its ``test_success`` is 0 without results.
        passed = float(result.tests is not None and passes(result.tests, thresholds))
    return PublishedScores(
        passed=passed,
        ifr=met / total if total else 1.0,
        ifr_plus=counts.positive_matched / counts.positive_total if counts.positive_total else 1.0,
        ifr_minus=1 - counts.negative_matched / counts.negative_total if counts.negative_total else 1.0,
        prec=scores.prec,
        prec_plus=scores.prec_plus,
        prec_minus=scores.prec_minus,
        cost_usd=metadata.known_cost_usd,
    )
