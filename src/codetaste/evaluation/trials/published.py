"""Scores of a trial from the files of the published harness, without its known faults.

The published harness counts a missing or truncated SARIF file as "no rule matches", which is IFR⁻ = 1; here
such a scan is partial. It drops a trial without an evaluation; here the trial is failed, not scored, or does
not apply.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import (
    EVALUATION_FOLDER,
    NEGATIVE_SARIF_FILE,
    POSITIVE_SARIF_FILE,
    PREDICTION_FILE,
    RULE_OUTPUT_FILE,
    TEST_OUTPUT_FILE,
    FinishReason,
)
from codetaste.evaluation.changed_lines import precision_counts
from codetaste.evaluation.metrics import pass_thresholds, passes
from codetaste.evaluation.test_runs.recorded import parse_test_counts
from codetaste.evaluation.trials.coverage import RuleCoverage, read_changed_lines, read_coverage
from codetaste.evaluation.trials.records import ProblemKind, TrialScores, TrialSource, TrialStatus
from codetaste.evaluation.trials.scores import PublishedResult, scores_of_result
from codetaste.evaluation.trials.untrusted_files import FileProblem, ends_like_json, file_size, read_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from codetaste.evaluation.metrics import PassThresholds
    from codetaste.evaluation.trials.context import ReadContext
    from codetaste.evaluation.trials.find import TrialFolder
    from codetaste.evaluation.trials.records import TrialMetadata

_REGULAR_ENDS = frozenset({FinishReason.SUCCESS, FinishReason.BUDGET_EXCEEDED})
_NOT_APPLIED = re.compile(
    rb"error: (patch failed|corrupt patch|.{0,4096}: (patch does not apply|does not exist in index))"
)
_OUTPUT_BYTES = 16 * 1024**2
_EMPTY_PATCH_BYTES = 1


def scores_without_evaluation(
    trial: TrialFolder, metadata: TrialMetadata, context: ReadContext
) -> TrialScores:
    """Return the status of a trial without an evaluation, with |L⁺| and |L⁻| if it has a patch."""
    if metadata.interruption:
        return TrialScores(TrialStatus.NOT_SCORED, f"it was interrupted: {metadata.interruption}")
    size = file_size(trial.folder / PREDICTION_FILE)
    reason = metadata.message or metadata.finish_reason
    because = f" ({reason})" if reason else ""
    if size is None:
        if metadata.finish_reason in _REGULAR_ENDS:
            context.add_problem(f"{trial.label}/{PREDICTION_FILE}", ProblemKind.MISSING, "is missing")
        return TrialScores(TrialStatus.FAILED, f"it left no patch{because}")
    if size <= _EMPTY_PATCH_BYTES and metadata.finish_reason not in _REGULAR_ENDS:
        own_error = metadata.finish_reason == FinishReason.ERROR and metadata.source is TrialSource.CODETASTE
        status = TrialStatus.INFRASTRUCTURE if own_error else TrialStatus.FAILED
        return TrialScores(status, f"it left an empty patch{because}")
    scores = TrialScores(TrialStatus.NOT_SCORED, "it has no evaluation")
    try:
        log = read_file(trial.folder / EVALUATION_FOLDER / RULE_OUTPUT_FILE, context.root, _OUTPUT_BYTES)
    except FileProblem:
        log = b""
    if _NOT_APPLIED.search(log):
        scores = TrialScores(TrialStatus.DOES_NOT_APPLY, f"git could not apply it ({RULE_OUTPUT_FILE})")
    return _with_lines(scores, trial, context)


def scores_of_evaluation(trial: TrialFolder, result: PublishedResult, context: ReadContext) -> TrialScores:
    """Return the scores of a trial's published evaluation, PREC included if its files are complete."""
    folder = trial.folder / EVALUATION_FOLDER
    scores = scores_of_result(result, tests_ran=file_size(folder / TEST_OUTPUT_FILE) is not None)
    tests = scores.tests
    if tests is None:
        scores = replace(scores, reason=scores.reason or "no test results are recorded")
    elif bounds := context.baseline(trial).thresholds or _thresholds_in(result.instance_metadata):
        scores = replace(scores, passed=passes(tests, bounds))
    else:
        scores = replace(scores, reason=scores.reason or "no baseline of R and R∘X* is recorded")
    scores = _with_lines(scores, trial, context, positive=folder / POSITIVE_SARIF_FILE)
    why = _partial(trial, result, context)
    if not why:
        return scores
    return replace(scores, status=TrialStatus.PARTIAL, reason=why, ifr=None, ifr_plus=None, ifr_minus=None)


def _thresholds_in(metadata: Mapping[str, Any]) -> PassThresholds | None:
    """Return the thresholds from an instance's metadata: one run each of R∘X* and R."""
    runs = [parse_test_counts(metadata.get(f"{side}_metrics")) for side in ("golden", "base")]
    return pass_thresholds(run for run in runs if run is not None and not run.is_crash)


def _partial(trial: TrialFolder, result: PublishedResult, context: ReadContext) -> str:
    """Return why the rule counts are not reliable, "" if they are; report problems with the scans.

    If rules matched, their SARIF file was complete when they were counted. If both files are missing and
    rules of either direction matched, the files were deleted afterwards to free space.
    """
    folder, counts = trial.folder / EVALUATION_FOLDER, result.rule_counts
    if file_size(folder / POSITIVE_SARIF_FILE) is None and file_size(folder / NEGATIVE_SARIF_FILE) is None:
        matched = counts.positive_matched or counts.negative_matched
        unmeasured = counts.positive_total + counts.negative_total and not matched
        return "both scans are missing: no match is no measurement" if unmeasured else ""
    problems = []
    for name, matched, total in (
        (POSITIVE_SARIF_FILE, counts.positive_matched, counts.positive_total),
        (NEGATIVE_SARIF_FILE, counts.negative_matched, counts.negative_total),
    ):
        thorough = bool(total and not matched)
        try:
            if thorough:
                read_coverage(folder / name, context.root)
            elif not ends_like_json(folder / name, context.root):
                raise FileProblem(ProblemKind.TRUNCATED, "is truncated")  # noqa: TRY301
        except FileProblem as problem:
            if name == NEGATIVE_SARIF_FILE:
                context.add_fault(f"{trial.label}/{EVALUATION_FOLDER}/{name}", problem)
            if thorough:
                problems.append(f"{name} {problem}")
    return f"{'; '.join(problems)}: no match is no measurement" if problems else ""


def _with_lines(
    scores: TrialScores, trial: TrialFolder, context: ReadContext, positive: Path | None = None
) -> TrialScores:
    """Add |L⁺| and |L⁻|, and PREC where there is a SARIF file of Γ⁺ on R∘X̂."""
    try:
        lines = read_changed_lines(trial.folder / PREDICTION_FILE, context.root)
    except FileProblem as problem:
        context.add_fault(f"{trial.label}/{PREDICTION_FILE}", problem)
        return replace(scores, notes=(*scores.notes, f"no precision: {PREDICTION_FILE} {problem}"))
    added, removed = lines.counts
    scores = replace(scores, added=added, removed=removed)
    if positive is None:
        return scores
    covered: RuleCoverage | str
    try:
        covered = read_coverage(positive, context.root, lines.added)
    except FileProblem as problem:
        context.add_fault(f"{trial.label}/{EVALUATION_FOLDER}/{positive.name}", problem)
        covered = f"{positive.name} {problem}"
    null = context.null_coverage(trial)
    if isinstance(covered, str) or isinstance(null, str):
        why = covered if isinstance(covered, str) else str(null)
        return replace(scores, notes=(*scores.notes, f"no precision: {why}"))
    share = precision_counts(lines, covered.lines, null.lines)
    return replace(
        scores,
        prec=share.prec,
        prec_plus=share.prec_plus,
        prec_minus=share.prec_minus,
        scored_by=f"opengrep {covered.engine}" if covered.engine else "",
    )
