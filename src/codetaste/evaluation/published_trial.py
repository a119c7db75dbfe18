"""The values of a trial from the files of the published harness, its known faults not repeated.

A SARIF file that is missing or cut off counts there as "no rule matches", which is IFR⁻ = 1: here such a scan
is partial. A trial without an evaluation vanishes there: here it is failed, not scored, or does not apply.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from codetaste.evaluation.baseline import RecordedBaseline, counts_of
from codetaste.evaluation.planned_trials import INTERRUPTED
from codetaste.evaluation.published_lines import Coverage, measure, read_coverage, read_lines
from codetaste.evaluation.records import ProblemKind, TrialStatus
from codetaste.evaluation.result_files import NEGATIVE_SARIF, POSITIVE_SARIF, RULE_OUTPUT, TEST_OUTPUT
from codetaste.evaluation.score import baseline_of, passes
from codetaste.evaluation.stray_files import Faulty, ends_whole, file_size, read_file
from codetaste.evaluation.trial_values import Result, Values, result_values

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path
    from typing import Any

    from codetaste.evaluation.trial_context import Context
    from codetaste.evaluation.trial_places import Place
    from codetaste.evaluation.trial_story import Story

PATCH = "prediction.diff"
_ENDED_WELL = frozenset({"success", "budget_exceeded"})
_NOT_APPLIED = re.compile(
    rb"error: (patch failed|corrupt patch|.{0,4096}: (patch does not apply|does not exist in index))"
)
_OUTPUT_BYTES = 16 * 1024**2
_BLANK_BYTES = 1


def without_evaluation(place: Place, story: Story, context: Context) -> Values:
    """Return what became of a trial that has no evaluation, with |L⁺| and |L⁻| where it has a patch."""
    if story.interrupted:
        return Values(TrialStatus.NOT_SCORED, f"{INTERRUPTED}: {story.interrupted}")
    size = file_size(place.folder / PATCH)
    said = story.message or story.finish_reason
    if size is None:
        if story.finish_reason in _ENDED_WELL:
            context.report(f"{place.label}/{PATCH}", Faulty(ProblemKind.MISSING, "is missing"))
        return Values(TrialStatus.FAILED, f"it left no patch ({said})" if said else "it left no patch")
    if size <= _BLANK_BYTES and story.finish_reason not in _ENDED_WELL:
        return Values(
            TrialStatus.FAILED, f"it left an empty patch ({said})" if said else "it left an empty patch"
        )
    values = Values(TrialStatus.NOT_SCORED, "there is no evaluation of it")
    try:
        log = read_file(place.folder / "evaluation" / RULE_OUTPUT, context.root, _OUTPUT_BYTES)
    except (FileNotFoundError, Faulty):
        log = b""
    if _NOT_APPLIED.search(log):
        values = Values(TrialStatus.DOES_NOT_APPLY, f"git could not apply it ({RULE_OUTPUT})")
    return _with_lines(values, place, context)


def evaluated(place: Place, result: Result, context: Context) -> Values:
    """Return what the published evaluation of a trial is worth, PREC included where its files are whole."""
    folder = place.folder / "evaluation"
    values = result_values(result, tests_ran=file_size(folder / TEST_OUTPUT) is not None)
    values = replace(values, **_pass(values, place, result, context))
    values = _with_lines(values, place, context, positive=folder / POSITIVE_SARIF)
    why = _partial(place, result, context)
    if not why:
        return values
    return replace(values, status=TrialStatus.PARTIAL, why=why, ifr=None, ifr_plus=None, ifr_minus=None)


def _pass(values: Values, place: Place, result: Result, context: Context) -> dict[str, Any]:
    """Return ``passed``, and why it is not known."""
    if values.tests is None:
        return {"why": values.why or "no test results are recorded"}
    bounds = context.baseline(place).bounds or recorded_in(result.instance).bounds
    if bounds is None:
        return {"why": values.why or "no baseline of R and R∘X* is recorded"}
    return {"passed": passes(values.tests, bounds)}


def recorded_in(metadata: Mapping[str, Any]) -> RecordedBaseline:
    """Return the baseline in an instance's metadata: one run of each."""
    runs = [counts_of(metadata.get(f"{side}_metrics")) for side in ("golden", "base")]
    found = [run for run in runs if run is not None]
    return RecordedBaseline(baseline_of(found), len(found), "instance_metadata" if found else "")


def _partial(place: Place, result: Result, context: Context) -> str:
    """Return why the counts cannot be believed, "" where they can; what is wrong with scans is reported.

    Where rules did match, their SARIF was whole when they were counted; where both files are gone and rules
    of either direction matched, somebody has cleared space.
    """
    folder, counts = place.folder / "evaluation", result.counts
    if file_size(folder / POSITIVE_SARIF) is None and file_size(folder / NEGATIVE_SARIF) is None:
        matched = counts.positive_matched or counts.negative_matched
        return (
            ""
            if matched or not (counts.positive_total + counts.negative_total)
            else "both scans are missing: no match is no measurement"
        )
    wrong = []
    for name, matched, total in (
        (POSITIVE_SARIF, counts.positive_matched, counts.positive_total),
        (NEGATIVE_SARIF, counts.negative_matched, counts.negative_total),
    ):
        why = _scan_fault(folder / name, context.root, thorough=bool(total and not matched))
        if why and name == NEGATIVE_SARIF:
            context.report(f"{place.label}/evaluation/{name}", why)
        if why and total and not matched:
            wrong.append(f"{name} {why}")
    return f"{'; '.join(wrong)}: no match is no measurement" if wrong else ""


def _scan_fault(path: Path, root: str, *, thorough: bool) -> Faulty | None:
    """Return what is wrong with a SARIF file; unless ``thorough``, by the look of its end."""
    try:
        if thorough:
            read_coverage(path, root)
        elif not ends_whole(path, root):
            return Faulty(ProblemKind.TRUNCATED, "is truncated")
    except FileNotFoundError:
        return Faulty(ProblemKind.MISSING, "is missing")
    except Faulty as fault:
        return fault
    return None


def _with_lines(values: Values, place: Place, context: Context, positive: Path | None = None) -> Values:
    """Add |L⁺| and |L⁻|, and PREC where there is a SARIF file of Γ⁺ on R∘X̂."""
    try:
        lines = read_lines(place.folder / PATCH, context.root)
    except FileNotFoundError:
        context.report(f"{place.label}/{PATCH}", Faulty(ProblemKind.MISSING, "is missing"))
        return replace(values, notes=(*values.notes, f"no precision: {PATCH} is missing"))
    except Faulty as fault:
        context.report(f"{place.label}/{PATCH}", fault)
        return replace(values, notes=(*values.notes, f"no precision: {PATCH} {fault}"))
    added, removed = lines.counts
    values = replace(values, added=added, removed=removed)
    if positive is None:
        return values
    covered = _coverage(positive, lines.added, place, context)
    null = context.null_coverage(place)
    if isinstance(covered, str) or isinstance(null, str):
        why = covered if isinstance(covered, str) else str(null)
        return replace(values, notes=(*values.notes, f"no precision: {why}"))
    share = measure(lines, covered, null)
    scored_by = f"opengrep {covered.engine}" if covered.engine else ""
    return replace(
        values,
        prec=share.prec,
        prec_plus=share.prec_plus,
        prec_minus=share.prec_minus,
        scored_by=scored_by,
    )


def _coverage(path: Path, wanted: Container[str], place: Place, context: Context) -> Coverage | str:
    label = f"{place.label}/evaluation/{path.name}"
    try:
        return read_coverage(path, context.root, wanted)
    except FileNotFoundError:
        context.report(label, Faulty(ProblemKind.MISSING, "is missing"))
        return f"{path.name} is missing"
    except Faulty as fault:
        context.report(label, fault)
        return f"{path.name} {fault}"
