"""Read output trees, our own and published ones, into records; a damaged folder does not affect others."""

from __future__ import annotations

import gc
import os
from collections import Counter
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import MODES, OUTPUTS_FOLDER, TRACKS
from codetaste.core.text import plural, printable
from codetaste.evaluation.trials.context import ReadContext
from codetaste.evaluation.trials.find import find_trials
from codetaste.evaluation.trials.missing import reconcile_with_journal
from codetaste.evaluation.trials.read_trial import read_trial
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem, TrialRecords, TrialStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.trial_identity import TrialIdentity
    from codetaste.evaluation.trials.find import TrialFolder
    from codetaste.evaluation.trials.records import TrialRecord

_LAYOUT_FOLDERS = frozenset({OUTPUTS_FOLDER, *TRACKS, *MODES})
_MAX_LISTED = 5


def read_outputs(root: Path, benchmark: Benchmark | None = None) -> TrialRecords:
    """Read the trials below ``root``: ``runs/<name>``, ``outputs`` or one ``<track>/<mode>`` of it.

    Blocking: call it in a thread.

    Args:
        root: a run's folder, or a folder in the published layout.
        benchmark: the instances with their language, category and baselines.

    Raises:
        ConfigError: the folder does not exist, or nothing in it has the published layout.
    """
    gc_was_enabled = gc.isenabled()
    gc.disable()  # the records have no cycles, and looking for cycles takes a third of the time
    try:
        trials, context = read_trials(root, benchmark)
        corrected, missing = reconcile_with_journal(root, [record for _, record in trials], context)
        records = [*corrected, *missing]
        records.sort(key=lambda each: (each.track, each.mode, each.agent, each.instance, each.attempt))
        context.problems.extend(version_mismatches(records))
        without_rules = sorted(
            {
                each.instance
                for each in records
                if each.scores.status is TrialStatus.SCORED and each.scores.ifr is None
            }
        )
        if without_rules:
            shown = ", ".join(without_rules[:_MAX_LISTED])
            text = f"{len(without_rules)} instances have no rules, so that their IFR is not defined: {shown}"
            context.add_problem(".", ProblemKind.RULES, text)
        return TrialRecords(tuple(records), tuple(context.problems))
    finally:
        if gc_was_enabled:
            gc.enable()


def read_trials(
    root: Path, benchmark: Benchmark | None = None
) -> tuple[list[tuple[TrialFolder, TrialRecord]], ReadContext]:
    """Read each trial with a folder below ``root`` once, and collect the problems found.

    Raises:
        ConfigError: as ``read_outputs``.
    """
    found = find_trials(root)
    real = os.path.realpath(root)
    outputs = os.path.realpath(found.outputs) if found.outputs is not None else real
    context = ReadContext(_run_name(root), os.path.commonpath((real, outputs)), found.outputs, benchmark)
    context.problems.extend(found.problems)
    trials: dict[TrialIdentity, tuple[TrialFolder, TrialRecord]] = {}
    for trial in found.trials:
        record = read_trial(trial, context)
        if record is None:
            continue
        first, _ = trials.setdefault(record.identity, (trial, record))
        if first is not trial:
            text = f"is the same trial as {first.label}, which is used"
            context.add_problem(trial.label, ProblemKind.DUPLICATE, text)
    return list(trials.values()), context


def merge_records(readings: Iterable[TrialRecords]) -> TrialRecords:
    """Merge the records of several output trees; version mismatches are determined again over all of them."""
    parts = list(readings)
    records = tuple(record for part in parts for record in part.records)
    problems = [p for part in parts for p in part.problems if p.kind is not ProblemKind.VERSIONS]
    return TrialRecords(records, (*problems, *version_mismatches(records)))


def version_mismatches(records: Sequence[TrialRecord]) -> list[ReadProblem]:
    """Return a problem where compared records were scored by different programs or with different rules."""
    problems = []
    programs = Counter(record.scores.scored_by for record in records if record.scores.scored_by)
    if len(programs) > 1:
        listed = "; ".join(f"{name} ({count})" for name, count in programs.most_common(_MAX_LISTED))
        text = f"evaluations of {len(programs)} different versions are compared: {listed}"
        problems.append(ReadProblem(ProblemKind.VERSIONS, ".", printable(text, 600)))
    digests: dict[str, set[str]] = {}
    for record in records:
        if record.scores.rules_sha256:
            digests.setdefault(record.instance, set()).add(record.scores.rules_sha256)
    mixed = sorted(instance for instance, found in digests.items() if len(found) > 1)
    if mixed:
        shown = ", ".join(mixed[:_MAX_LISTED]) + (", …" if len(mixed) > _MAX_LISTED else "")
        instances = plural(len(mixed), "instance")
        text = f"trials of {instances} were scored with different rules: {shown}"
        problems.append(ReadProblem(ProblemKind.VERSIONS, ".", text))
    return problems


def _run_name(root: Path) -> str:
    """Return the name of the nearest folder that is not a level of the layout."""
    folder = root.absolute()
    while folder.name in _LAYOUT_FOLDERS and folder.parent != folder:
        folder = folder.parent
    return printable(folder.name or str(root))
