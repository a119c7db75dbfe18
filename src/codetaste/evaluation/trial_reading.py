"""One trial's folder made a record, whoever wrote it; what is wrong is reported and costs no other value."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.catalog import Track
from codetaste.evaluation.activity import read_activity
from codetaste.evaluation.evaluate import Status
from codetaste.evaluation.published_trial import PATCH, evaluated, without_evaluation
from codetaste.evaluation.records import (
    GOLDEN,
    NULL,
    ProblemKind,
    PublishedValues,
    Source,
    TrialRecord,
    TrialStatus,
)
from codetaste.evaluation.result_files import RESULT, SCORES
from codetaste.evaluation.score import passes
from codetaste.evaluation.stray_files import Faulty, file_size, is_link, printable, read_file, read_object
from codetaste.evaluation.trial_context import RUNS
from codetaste.evaluation.trial_places import MODES
from codetaste.evaluation.trial_story import AGENT, METADATA, read_story
from codetaste.evaluation.trial_values import Values, own_values, read_result
from codetaste.source.patch import MAX_PATCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.evaluation.activity import Activity
    from codetaste.evaluation.trial_context import Context
    from codetaste.evaluation.trial_places import Place
    from codetaste.evaluation.trial_story import Story
    from codetaste.evaluation.trial_values import Result

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@-]{0,99}")
_SHOWN_NAME = 100


def read_trial(place: Place, context: Context) -> TrialRecord | None:
    """Return the record of the trial at ``place``; None where the benchmark has no such instance."""
    instance = context.instance(place)
    if context.benchmark is not None and instance is None:
        said = f"the benchmark has no instance {printable(place.path)}; it is left out"
        context.report(place.label, Faulty(ProblemKind.UNKNOWN_INSTANCE, said))
        return None
    pseudo = place.pseudo or place.agent in {GOLDEN, NULL}
    story = read_story(
        place.folder, context.root, place.mode, pseudo=pseudo, report=_reporter(context, place.label)
    )
    result, fault = _result(place, context)
    values, ours = _values(place, story, result, fault, context)
    track, mode = _track(place, story, context, pseudo=pseudo)
    return TrialRecord(
        run=context.run,
        source=Source.CODETASTE if ours and pseudo else story.source,
        agent=_agent(place, story, result, context),
        model=story.model,
        harness=story.harness,
        track=track,
        mode=mode,
        instance=place.instance,
        repository=f"{place.owner}/{place.repo}",
        language=instance.language if instance else "",
        category=printable(instance.category) if instance else "",
        attempt=place.attempt,
        finish_reason=story.finish_reason,
        status=values.status,
        why=values.why,
        folder=place.folder,
        tests=values.tests,
        passed=values.passed,
        ifr=values.ifr,
        ifr_plus=values.ifr_plus,
        ifr_minus=values.ifr_minus,
        prec=values.prec,
        prec_plus=values.prec_plus,
        prec_minus=values.prec_minus,
        added=values.added,
        removed=values.removed,
        cost_usd=story.cost_usd,
        time_s=story.time_s,
        turns=story.turns,
        tool_calls=story.tool_calls,
        activity=_activity(place, context),
        published=_published(place, story, result, values, context),
        scored_by=values.scored_by,
        rules_sha256=values.rules_sha256,
        notes=values.notes,
    )


def _reporter(context: Context, label: str) -> Any:  # noqa: ANN401 - a Report
    return lambda name, fault: context.report(f"{label}/{name}", fault)


def _agent(place: Place, story: Story, result: Result | None, context: Context) -> str:
    """Return the agent's id: its own, as the published harness groups by it, else its folder's name."""
    told = result.agent.get("id") if result is not None else ""
    name = story.agent or (told if isinstance(told, str) else "") or place.agent
    if name != place.agent and not {GOLDEN, NULL}.isdisjoint((name, place.agent)):
        # Else a trial of an agent would be a reference, and in no count, or a reference an agent.
        said = f"calls itself {printable(name)!r} in the folder of {printable(place.agent)}, which counts"
        context.report(f"{place.label}/{AGENT}", Faulty(ProblemKind.NAME, said))
        name = place.agent
    shown = printable(name, _SHOWN_NAME)
    if not _PLAIN_NAME.fullmatch(name):
        said = f"the agent's id {shown!r} is no plain name (letters, digits, '.', '_', '+', '@', '-')"
        context.report(f"{place.label}/{AGENT}", Faulty(ProblemKind.NAME, said))
    return shown


def _track(place: Place, story: Story, context: Context, *, pseudo: bool) -> tuple[str, str]:
    """Return track and mode: the folder's, else those of the metadata."""
    if pseudo:
        return "", "direct"
    told = (story.track, story.mode)
    known = story.track in set(Track) and story.mode in MODES
    if not place.track:
        if not known:
            said = "neither the folder nor the metadata say which track and mode it belongs to"
            context.report(place.label, Faulty(ProblemKind.LAYOUT, said))
        return told if known else ("", "")
    if any(told) and told != (place.track, place.mode):
        said = f"says {printable('/'.join(told))} in the folder of {place.track}/{place.mode}"
        context.report(f"{place.label}/{METADATA}", Faulty(ProblemKind.LAYOUT, said))
    return place.track, place.mode


def _result(place: Place, context: Context) -> tuple[Result | None, str]:
    """Return what ``evaluation_result.json`` says, and what is wrong with it."""
    folder = place.folder / "evaluation"
    try:
        _no_link(folder)
        result = read_result(read_object(folder / RESULT, context.root))
    except FileNotFoundError:
        return None, ""
    except Faulty as fault:
        context.report(f"{place.label}/evaluation/{RESULT}", fault)
        return None, f"{RESULT} {fault}"
    label = f"{place.label}/evaluation/{RESULT}"
    if result.odd_tests:
        said = "agent_test_metrics are no counts of tests: taken as not recorded"
        context.report(label, Faulty(ProblemKind.NUMBER, said))
    wrong = _other_commit(place, result, context)
    if wrong:
        context.report(label, Faulty(ProblemKind.OTHER_COMMIT, wrong))
    return result, wrong


def _other_commit(place: Place, result: Result, context: Context) -> str:
    """Return how the commits of an evaluation differ from the instance's, "" where they do not."""
    instance = context.instance(place)
    for key, name in (("base_hash", "commit_hash"), ("golden_hash", "golden_commit_hash")):
        told = result.instance.get(key)
        wanted = getattr(instance, name) if instance else (place.hash8 if key == "base_hash" else "")
        if isinstance(told, str) and not told.startswith(wanted):
            return f"its {key} is {printable(told[:12])}, the instance's is {wanted[:12]}"
    return ""


def _values(
    place: Place, story: Story, result: Result | None, fault: str, context: Context
) -> tuple[Values, bool]:
    """Return the trial's values, and whether they are from our own ``scores.json``."""
    own = _own(place, context)
    if own is not None and not (fault and result):
        return own, True
    if result is not None and not fault:
        return evaluated(place, result, context), False
    if fault:
        status = TrialStatus.UNREADABLE if result is None else TrialStatus.NOT_SCORED
        return Values(status, fault), False
    if file_size(place.folder / "evaluation" / SCORES) is not None:
        return Values(TrialStatus.NOT_SCORED, f"its {SCORES} cannot be used"), False
    return without_evaluation(place, story, context), False


def _own(place: Place, context: Context) -> Values | None:
    """Return what our ``scores.json`` says, if it is there and of this patch."""
    path = place.folder / "evaluation" / SCORES
    if is_link(path.parent):  # which has been reported
        return None
    label = f"{place.label}/evaluation/{SCORES}"
    try:
        scores = read_object(path, context.root)
    except FileNotFoundError:
        return None
    except Faulty as fault:
        context.report(label, fault)
        return None
    try:
        _check_patch(scores, place, context)
        return own_values(scores)
    except FileNotFoundError:
        context.report(f"{place.label}/{PATCH}", Faulty(ProblemKind.MISSING, "is missing"))
    except Faulty as fault:
        context.report(label, fault)
        if fault.kind is ProblemKind.STALE:  # and so is what was written with it
            return Values(TrialStatus.NOT_SCORED, f"its {SCORES} {fault}")
    return None


def _no_link(folder: Path) -> None:
    if is_link(folder):
        raise Faulty(ProblemKind.LINK, "its folder is a link, which is not followed")


def _check_patch(scores: Mapping[str, Any], place: Place, context: Context) -> None:
    """Check that the scores are of the patch beside them; one that was too large to be read has its size."""
    told = scores.get("patch_sha256")
    if scores.get("status") == Status.TOO_LARGE and not told:
        same = file_size(place.folder / PATCH) == scores.get("patch_bytes")
    else:
        patch = read_file(place.folder / PATCH, context.root, MAX_PATCH_BYTES)
        same = told == hashlib.sha256(patch).hexdigest()
    if not same:
        raise Faulty(ProblemKind.STALE, f"is of another {PATCH} than the one beside it")


def _activity(place: Place, context: Context) -> Activity | None:
    try:
        return read_activity(place.folder / "evaluation")
    except ValueError as error:
        said = f"cannot be read: {str(error).rpartition(': ')[2]}"
        context.report(f"{place.label}/evaluation/activity.json", Faulty(ProblemKind.UNREADABLE, said))
        return None


def _published(
    place: Place, story: Story, result: Result | None, values: Values, context: Context
) -> PublishedValues | None:
    """Return what the published harness takes of this trial into its means; None where it takes nothing.

    It loads ``evaluation_result.json`` alone, by models of its own, drops what has no track and mode, and
    knows no attempts but the first.
    """
    if result is None or not result.loads or place.attempt > 1:
        return None
    if place.agent in {GOLDEN, NULL}:
        if not place.pseudo:
            return None
    elif not (story.loads and story.track and story.mode):
        return None
    counts = result.counts
    total = counts.positive_total + counts.negative_total
    followed = counts.positive_matched + counts.negative_total - counts.negative_matched
    return PublishedValues(
        passed=_published_pass(place, result, context),
        ifr=followed / total if total else 1.0,
        ifr_plus=counts.positive_matched / counts.positive_total if counts.positive_total else 1.0,
        ifr_minus=1 - counts.negative_matched / counts.negative_total if counts.negative_total else 1.0,
        prec=values.prec,
        prec_plus=values.prec_plus,
        prec_minus=values.prec_minus,
        cost_usd=story.known_usd,
    )


def _published_pass(place: Place, result: Result, context: Context) -> float | None:
    """Its ``test_success``: nothing without environment or runs of a baseline, 0 without results."""
    told = result.instance.get("has_execution_environment")
    baseline = context.baseline(place)
    if not told or baseline.bounds is None or baseline.source != RUNS:
        return None
    return float(result.tests is not None and passes(result.tests, baseline.bounds))
