"""Import published outputs as a run: copy the files of the layout, so that a report reads them as its own.

Files outside the layout are not copied, and none of more than a GiB; the activity counts are computed from
the agent's log once, during the import.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING

from codetaste import __version__
from codetaste.benchmark.layout import (
    ACTIVITY_FILE,
    BASELINES_FOLDER,
    EVALUATION_FILES,
    EVALUATION_FOLDER,
    OUTPUTS_FOLDER,
    PLAN_FILES,
    PSEUDO_TRACK,
    TRIAL_FILES,
    TRIAL_LOG_FILES,
    trial_folder,
)
from codetaste.core.files import storage_error, write_atomically
from codetaste.core.text import printable
from codetaste.errors import ConfigError, SourceError
from codetaste.evaluation.activity.counts import write_activity
from codetaste.evaluation.activity.transcripts import activity_of_log
from codetaste.evaluation.trials.read import read_trials
from codetaste.evaluation.trials.records import ProblemKind, TrialRecords
from codetaste.evaluation.trials.untrusted_files import FileProblem, copy_file, is_link
from codetaste.orchestration.journal.journal import JOURNAL_FILE, check_format

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.evaluation.trials.context import ReadContext
    from codetaste.evaluation.trials.find import TrialFolder

MANIFEST_FILE = "import.json"
_BASELINE_FILES = ("golden_agent.jsonl", "null_agent.jsonl")
_MAX_FILE_BYTES = 1024**3
_UNSAFE_CHAR = re.compile(r"[^A-Za-z0-9._+@-]")


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The imported trials as read from the source, and how many bytes were copied."""

    records: TrialRecords
    copied_bytes: int


def check_source(source: Path) -> None:
    """Check that ``source`` is not a codetaste run, which needs no import.

    Raises:
        ConfigError: it is a codetaste run.
        JournalError: it is a codetaste run whose journal has another format.
    """
    if (source / JOURNAL_FILE).is_file():
        check_format(source / JOURNAL_FILE)
        raise ConfigError(
            f"{source} is already a codetaste run: report it directly, or import its outputs/ folder"
        )


def import_outputs(source: Path, to: Path, benchmark: Benchmark | None, *, source_name: str) -> ImportResult:
    """Copy the trials below ``source`` to ``to``, the new folder of a run.

    Args:
        source: published outputs, as ``read_outputs`` reads them.
        to: the run's folder, which must not exist.
        benchmark: trials of instances that are not in it are left out.
        source_name: name of the source for the manifest.

    Raises:
        ConfigError: the source does not exist, or nothing in it has the published layout.
        StorageFull: no space left; SourceError: a file cannot be written.
    """
    check_source(source)
    trials, context = read_trials(source, benchmark)
    copied, imported = 0, []
    names: dict[tuple[str, ...], dict[str, str]] = {}
    try:
        for trial, record in trials:
            track = PSEUDO_TRACK if trial.pseudo or not record.track else record.track
            if track == PSEUDO_TRACK and not record.pseudo:
                continue  # its track is unknown, which ``read_trial`` has reported
            parent = (track, record.mode, trial.instance_path)
            name = _folder_name(trial.agent, names.setdefault(parent, {}))
            folder = trial_folder(to / OUTPUTS_FOLDER, *parent, name, trial.attempt)
            copied += sum(_copy_trial(trial, folder, context))
            _write_activity(trial, folder, context)
            imported.append(record)
        copied += _copy_baselines(context, {trial.instance_path for trial, _ in trials}, to)
    except OSError as error:
        raise storage_error(error, str(to), SourceError) from error
    records = TrialRecords(tuple(imported), tuple(context.problems))
    manifest = {
        "source": printable(source_name, 1000),
        "imported": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "codetaste_version": __version__,
        "trials": len(imported),
        "problems": [asdict(problem) for problem in context.problems],
    }
    write_atomically(to / MANIFEST_FILE, json.dumps(manifest, indent=2) + "\n")
    return ImportResult(records, copied)


def _folder_name(agent: str, names: dict[str, str]) -> str:
    """Return a safe and unique folder name for ``agent``; ``names`` maps agents to the names used so far."""
    if agent not in names:
        plain = _UNSAFE_CHAR.sub("_", agent)[:100].lstrip(".-") or "agent"
        name, number = plain, 1
        while name in names.values():
            number += 1
            name = f"{plain}-{number}"
        names[agent] = name
    return names[agent]


def _copy_trial(trial: TrialFolder, folder: Path, context: ReadContext) -> Iterator[int]:
    """Copy the files of one trial and yield the size of each; the folder is created in any case."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [
        *TRIAL_FILES,
        *TRIAL_LOG_FILES,
        *PLAN_FILES,
        *(f"{EVALUATION_FOLDER}/{name}" for name in EVALUATION_FILES),
    ]
    for name in names:
        source = trial.folder / name
        if is_link(source.parent):
            continue
        try:
            yield copy_file(source, folder / name, context.root, _MAX_FILE_BYTES)
        except FileProblem as problem:
            if problem.kind is not ProblemKind.MISSING:
                context.add_problem(f"{trial.label}/{name}", problem.kind, f"{problem}; not copied")


def _write_activity(trial: TrialFolder, folder: Path, context: ReadContext) -> None:
    """Count what the agent did from its log, unless the source has the counts."""
    if (folder / EVALUATION_FOLDER / ACTIVITY_FILE).exists():
        return
    try:
        activity = activity_of_log(trial.folder)
    except (OSError, ValueError) as error:
        text = f"its log cannot be read: {printable(str(error))}"
        context.add_problem(trial.label, ProblemKind.UNREADABLE, text)
        return
    write_activity(folder / EVALUATION_FOLDER, activity)


def _copy_baselines(context: ReadContext, paths: set[str], to: Path) -> int:
    """Copy the baselines beside the outputs to where a report looks for them."""
    if context.outputs is None:
        return 0
    copied, source = 0, context.outputs.parent / BASELINES_FOLDER
    for path, name in product(sorted(paths), _BASELINE_FILES):
        target = to / BASELINES_FOLDER / path / name
        try:
            copied += copy_file(source / path / name, target, str(source.resolve()), _MAX_FILE_BYTES)
        except FileProblem as problem:
            if problem.kind is not ProblemKind.MISSING:
                context.add_fault(f"{BASELINES_FOLDER}/{path}/{name}", problem)
    return copied
