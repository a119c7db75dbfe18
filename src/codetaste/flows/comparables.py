"""The trials that a run's comparison is about, read back from its files: what is told is what lies there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.errors import ConfigError
from codetaste.evaluation.reading import read_outputs
from codetaste.evaluation.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.flows.scorings import Scoring

_SHOWN = 5


def comparables(out: Path, benchmark: Benchmark, scorings: Iterable[Scoring]) -> tuple[Records, list[str]]:
    """Read the records of ``scorings`` from the run in ``out``, and what people should know of them. Blocks.

    Trials that another config of the same run name has left are not among them.
    """
    try:
        found = read_outputs(out, benchmark)
    except ConfigError as error:
        return Records(), list(error.problems)
    wanted = {_place(scoring) for scoring in scorings}
    records = tuple(
        record
        for record in found.records
        if (record.agent, record.instance, record.track, record.mode, record.attempt) in wanted
        or (record.pseudo and (record.agent, record.instance, "", "direct", 1) in wanted)
    )
    notes = [str(problem) for problem in found.problems[:_SHOWN]]
    if len(found.problems) > _SHOWN:
        notes.append(f"… and {len(found.problems) - _SHOWN} more problems; codetaste report names them all")
    return Records(records, found.problems), notes


def _place(scoring: Scoring) -> tuple[str, str, str, str, int]:
    trial = scoring.trial
    if trial is None:
        return scoring.agent_id, scoring.instance.id, "", "direct", 1
    return (
        trial.agent.id,
        trial.instance.id,
        str(trial.track.track),
        trial.track.mode,
        trial.attempt,
    )
