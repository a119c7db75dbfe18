"""What became of each trial, from its files and from the journal of its run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.benchmark.trial_identity import StepKind
from codetaste.evaluation.trials.records import TrialStatus
from codetaste.orchestration.journal.history import JobState
from codetaste.report.statistics.merge import original_identity
from codetaste.results.outcome import facet_of_record
from codetaste.results.read import run_names
from codetaste.results.roots import root_of
from codetaste.results.run_jobs import RunJobs, read_jobs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.results.outcome import OutcomeFacet
    from codetaste.results.read import RunResults
    from codetaste.results.rows.job import JobResult

_PATCHED = frozenset({TrialStatus.SCORED, TrialStatus.DOES_NOT_APPLY, TrialStatus.PARTIAL})


@dataclass(frozen=True, slots=True)
class TrialSteps:
    """The jobs of a trial's steps, in their order, the one that ended it, and what became of it."""

    jobs: tuple[JobResult, ...]
    last: JobResult | None
    outcome: OutcomeFacet


@dataclass(frozen=True, slots=True)
class TrialOutcomes:
    """The outcomes of trials, whose runs have these jobs, by folder."""

    jobs: Mapping[Path, RunJobs]

    def of(self, record: TrialRecord) -> OutcomeFacet:
        """Return what became of a trial."""
        return steps_of(record, self.jobs[root_of(record, self.jobs)]).outcome


def read_outcomes(results: RunResults) -> TrialOutcomes:
    """Read the journals of the runs. Blocking."""
    names = run_names(results)
    return TrialOutcomes({root: read_jobs(root, names[root]) for root in results.roots})


def steps_of(record: TrialRecord, run: RunJobs) -> TrialSteps:
    """Return the steps of a trial that the journal of its run has."""
    keys = [key for key in map(original_identity(record).step_key, StepKind) if key in run.jobs]
    last = _ending_step(keys, run, record.scores.status)
    outcome = facet_of_record(record, run.ends.get(last, ""))
    return TrialSteps(tuple(run.jobs[key] for key in keys), run.jobs.get(last), outcome)


def _ending_step(keys: Sequence[str], run: RunJobs, status: TrialStatus) -> str:
    """Return the key of the step that ended a trial: the last one, or the first without a result."""
    if not keys:
        return ""
    without = (key for key in keys if run.jobs[key].state != JobState.DONE)
    return keys[-1] if status in _PATCHED else next(without, keys[-1])
