"""The values of a trial from the files of the published harness, its known faults not repeated.

A SARIF file that is missing or cut off counts there as "no rule matches", which is IFR⁻ = 1: here such a scan
is partial. A trial without an evaluation vanishes there: here it is failed, not scored, or does not apply.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from codetaste.evaluation.baseline import RecordedBaseline, counts_of
from codetaste.evaluation.published_lines import Coverage, measure, read_coverage, read_lines
from codetaste.evaluation.records import ProblemKind, TrialStatus
from codetaste.evaluation.result_files import NEGATIVE_SARIF, POSITIVE_SARIF, RULE_OUTPUT, TEST_OUTPUT
from codetaste.evaluation.score import baseline_of, passes
from codetaste.evaluation.stray_files import Faulty, file_size, read_file
from codetaste.evaluation.trial_values import Result, Values, result_values

if TYPE_CHECKING:
    from collections.abc import Mapping
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
        return Values(TrialStatus.NOT_SCORED, f"it was interrupted: {story.interrupted}")
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
    values = result_values(result, tests_ran=(folder / TEST_OUTPUT).is_file())
    values = replace(values, **_pass(values, place, result, context))
    values = _with_lines(values, place, context, positive=folder / POSITIVE_SARIF)
    why = _partial(folder, result, context.root)
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


def _partial(folder: Path, result: Result, root: str) -> str:
    """Return why the counts cannot be believed, "" where they can.

    Where rules did match, their SARIF was whole when they were counted; where both files are gone and rules
    of either direction matched, somebody has cleared space.
    """
    counts = result.counts
    matched = {POSITIVE_SARIF: counts.positive_matched, NEGATIVE_SARIF: counts.negative_matched}
    total = {POSITIVE_SARIF: counts.positive_total, NEGATIVE_SARIF: counts.negative_total}
    if any(matched.values()) and all(file_size(folder / name) is None for name in matched):
        return ""
    wrong = []
    for name in (name for name in matched if total[name] and not matched[name]):
        try:
            read_coverage(folder / name, root)
        except FileNotFoundError:
            wrong.append(f"{name} is missing")
        except Faulty as fault:
            wrong.append(f"{name} {fault}")
    return f"{'; '.join(wrong)}: no match is no measurement" if wrong else ""


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
    covered = _coverage(positive, place, context)
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


def _coverage(path: Path, place: Place, context: Context) -> Coverage | str:
    label = f"{place.label}/evaluation/{path.name}"
    try:
        return read_coverage(path, context.root)
    except FileNotFoundError:
        context.report(label, Faulty(ProblemKind.MISSING, "is missing"))
        return f"{path.name} is missing"
    except Faulty as fault:
        context.report(label, fault)
        return f"{path.name} {fault}"
