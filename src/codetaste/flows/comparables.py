"""Read the trial records for a run's comparison back from its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.errors import ConfigError
from codetaste.evaluation.reading import read_outputs
from codetaste.evaluation.records import TrialRecords

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.flows.scorings import EvaluationTask
    from codetaste.flows.trials import Trial

_MAX_NOTES = 5


def read_comparison_records(
    out: Path, benchmark: Benchmark, tasks: Sequence[EvaluationTask], *, references: bool
) -> tuple[TrialRecords, list[str]]:
    """Return the records of ``tasks`` in the run folder ``out``, and notes on problems in them.

    Trials left by another config with the same run name are excluded. With ``references``, the pseudo agents
    at all instances of the trials are included.
    """
    try:
        outputs = read_outputs(out, benchmark)
    except ConfigError as error:
        return TrialRecords(), list(error.problems)
    wanted = {_trial_key(task.trial) for task in tasks if task.trial is not None}
    instances = {task.instance.id for task in tasks} if references else set()
    records = tuple(
        record
        for record in outputs.records
        if (record.agent, record.instance, record.track, record.mode, record.attempt) in wanted
        or (record.pseudo and record.instance in instances)
    )
    notes = [str(problem) for problem in outputs.problems[:_MAX_NOTES]]
    if len(outputs.problems) > _MAX_NOTES:
        more = len(outputs.problems) - _MAX_NOTES
        notes.append(f"… and {more} more problems; `codetaste report` lists all of them")
    return TrialRecords(records, outputs.problems), notes


def _trial_key(trial: Trial) -> tuple[str, str, str, str, int]:
    track = trial.track
    return trial.agent.id, trial.instance.id, str(track.track), track.mode, trial.attempt
