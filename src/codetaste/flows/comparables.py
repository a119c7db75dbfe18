"""The trials that a run's comparison is about, read back from its files: what is told is what lies there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.errors import ConfigError
from codetaste.evaluation.reading import read_outputs
from codetaste.evaluation.records import Records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.flows.scorings import Scoring
    from codetaste.flows.trials import Trial

_SHOWN = 5


def comparables(
    out: Path, benchmark: Benchmark, scorings: Sequence[Scoring], *, references: bool
) -> tuple[Records, list[str]]:
    """Read the records of ``scorings`` from the run in ``out``, and what people should know of them. Blocks.

    Trials that another config of the same run name has left are not among them. With ``references`` pseudo
    agents are, at all instances of the trials.
    """
    try:
        found = read_outputs(out, benchmark)
    except ConfigError as error:
        return Records(), list(error.problems)
    wanted = {_place(scoring.trial) for scoring in scorings if scoring.trial is not None}
    instances = {scoring.instance.id for scoring in scorings} if references else set()
    records = tuple(
        record
        for record in found.records
        if (record.agent, record.instance, record.track, record.mode, record.attempt) in wanted
        or (record.pseudo and record.instance in instances)
    )
    notes = [str(problem) for problem in found.problems[:_SHOWN]]
    if len(found.problems) > _SHOWN:
        notes.append(f"… and {len(found.problems) - _SHOWN} more problems; codetaste report names them all")
    return Records(records, found.problems), notes


def _place(trial: Trial) -> tuple[str, str, str, str, int]:
    track = trial.track
    return trial.agent.id, trial.instance.id, str(track.track), track.mode, trial.attempt
