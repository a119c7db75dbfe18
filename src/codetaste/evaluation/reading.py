"""Output trees, ours and published ones, read into records; nothing bad in one folder loses another."""

from __future__ import annotations

import gc
import os
from collections import Counter
from typing import TYPE_CHECKING

from codetaste.evaluation.planned_trials import planned_trials
from codetaste.evaluation.records import Problem, ProblemKind, Records
from codetaste.evaluation.stray_files import Faulty, printable
from codetaste.evaluation.trial_context import Context
from codetaste.evaluation.trial_places import MODES, TRACKS, find_places
from codetaste.evaluation.trial_reading import read_trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.evaluation.records import TrialRecord
    from codetaste.evaluation.trial_places import Place

_LEVELS = frozenset({"outputs", *TRACKS, *MODES})
_SHOWN = 5


def read_outputs(root: Path, benchmark: Benchmark | None = None) -> Records:
    """Read the trials below ``root``: ``runs/<name>``, ``outputs`` or one ``<track>/<mode>`` of it.

    Blocks: call it in a thread.

    Args:
        root: a run of ours, or a folder in the published layout.
        benchmark: says language and category, which instances there are, and has their baselines.

    Raises:
        ConfigError: there is no such folder, or nothing in it has the published layout.
    """
    collects = gc.isenabled()
    gc.disable()  # what is read has no cycles, and looking for them takes a third of the time
    try:
        return _read(root, benchmark)
    finally:
        if collects:
            gc.enable()


def _read(root: Path, benchmark: Benchmark | None) -> Records:
    places, context = read_places(root, benchmark)
    told, absent = planned_trials(root, [record for _, record in places], context)
    known = [*told, *absent]
    known.sort(key=lambda each: (each.track, each.mode, each.agent, each.instance, each.attempt))
    _check(known, context)
    return Records(tuple(known), tuple(context.problems))


def read_places(
    root: Path, benchmark: Benchmark | None = None
) -> tuple[list[tuple[Place, TrialRecord]], Context]:
    """Read each trial that has a folder below ``root``, once, and what is wrong there. Blocks.

    Raises:
        ConfigError: as ``read_outputs``.
    """
    found = find_places(root)
    real = os.path.realpath(root)
    home = os.path.realpath(found.outputs) if found.outputs is not None else real
    context = Context(_run_name(root), os.path.commonpath((real, home)), found.outputs, benchmark)
    context.problems.extend(found.problems)
    trials: dict[tuple[object, ...], tuple[Place, TrialRecord]] = {}
    for place in found.places:
        record = read_trial(place, context)
        if record is None:
            continue
        identity = (record.agent, record.track, record.mode, record.instance, record.attempt)
        if identity in trials:
            said = f"is the same trial as {trials[identity][0].label}, which is taken"
            context.report(place.label, Faulty(ProblemKind.DUPLICATE, said))
            continue
        trials[identity] = (place, record)
    return list(trials.values()), context


def merged(readings: Iterable[Records]) -> Records:
    """Return several readings as one; evaluations of different programs or rules are named once, for all."""
    together = list(readings)
    records = tuple(record for each in together for record in each.records)
    kept = [p for each in together for p in each.problems if p.kind is not ProblemKind.VERSIONS]
    return Records(records, (*kept, *mixed_versions(records)))


def mixed_versions(records: Sequence[TrialRecord]) -> list[Problem]:
    """Say where records that are compared were not scored alike: by other programs, or with other rules."""
    problems = []
    programs = Counter(record.scored_by for record in records if record.scored_by)
    if len(programs) > 1:
        listed = "; ".join(f"{name} ({count})" for name, count in programs.most_common(_SHOWN))
        said = f"evaluations of {len(programs)} different versions are compared: {listed}"
        problems.append(Problem(ProblemKind.VERSIONS, ".", printable(said, 600)))
    digests: dict[str, set[str]] = {}
    for record in records:
        if record.rules_sha256:
            digests.setdefault(record.instance, set()).add(record.rules_sha256)
    mixed = sorted(instance for instance, found in digests.items() if len(found) > 1)
    if mixed:
        shown = ", ".join(mixed[:_SHOWN]) + (", …" if len(mixed) > _SHOWN else "")
        counted = "1 instance" if len(mixed) == 1 else f"{len(mixed)} instances"
        said = f"trials of {counted} were scored with different rules: {shown}"
        problems.append(Problem(ProblemKind.VERSIONS, ".", said))
    return problems


def _check(records: Sequence[TrialRecord], context: Context) -> None:
    """Name what concerns all records together."""
    context.problems.extend(mixed_versions(records))
    without = sorted({each.instance for each in records if each.why.startswith("no rules")})
    if without:
        shown = ", ".join(without[:_SHOWN])
        said = f"{len(without)} instances have no rules, so that their IFR is not defined: {shown}"
        context.report(".", Faulty(ProblemKind.RULES, said))


def _run_name(root: Path) -> str:
    """Return what people would call it: the folder's name, above those of the layout."""
    place = root.absolute()
    while place.name in _LEVELS and place.parent != place:
        place = place.parent
    return printable(place.name or str(root))
