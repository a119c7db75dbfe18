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
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.evaluation.trials.records import TrialRecord, TrialScores
    from codetaste.results.outcome import OutcomeFacet
    from codetaste.results.read import RunResults
    from codetaste.results.rows.job import JobResult

_PATCHED = frozenset({TrialStatus.SCORED, TrialStatus.DOES_NOT_APPLY, TrialStatus.PARTIAL})


@dataclass(frozen=True, slots=True)
class TrialOutcomes:
    """The outcomes of trials, whose runs have these jobs, by folder."""

    jobs: Mapping[Path, RunJobs]

    def of(self, record: TrialRecord) -> OutcomeFacet:
        """Return what became of a trial."""
        run = self.jobs[root_of(record, self.jobs)]
        return facet_of_record(record, run.ends.get(ending_step(steps_of(record, run), record.scores), ""))


def read_outcomes(results: RunResults) -> TrialOutcomes:
    """Read the journals of the runs. Blocking."""
    names = run_names(results)
    return TrialOutcomes({root: read_jobs(root, names[root]) for root in results.roots})


def steps_of(record: TrialRecord, run: RunJobs) -> dict[str, JobResult]:
    """Return the jobs of a trial's steps by key."""
    keys = map(original_identity(record).step_key, StepKind)
    return {key: run.jobs[key] for key in keys if key in run.jobs}


def ending_step(steps: Mapping[str, JobResult], scores: TrialScores) -> str:
    """Return the key of the step that ended a trial: the last one, or the first without a result."""
    if not steps:
        return ""
    last = list(steps)[-1]
    without = (key for key, job in steps.items() if job.state != JobState.DONE)
    return last if scores.status in _PATCHED else next(without, last)
