"""``load``: the results of runs as plain rows, for notebooks and scripts."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from codetaste.benchmark.config import BenchmarkConfig
from codetaste.errors import ConfigError
from codetaste.results.read import read_results, run_names
from codetaste.results.roots import run_folders
from codetaste.results.rows.answer_rows import answer_rows
from codetaste.results.rows.frames import to_pandas, to_polars
from codetaste.results.rows.job import JobResult
from codetaste.results.rows.record_rows import record_rows
from codetaste.results.rows.rule import RuleVerdict
from codetaste.results.rows.rule_rows import rule_rows
from codetaste.results.rows.trial import TrialResult
from codetaste.results.run_jobs import read_jobs
from codetaste.run.resolve import find_benchmark

if TYPE_CHECKING:
    from typing import Any

    from codetaste.evaluation.trials.records import ReadProblem
    from codetaste.results.read import RunResults
    from codetaste.results.run_jobs import RunJobs

RowTable = Literal["trials", "rules", "jobs"]
"""The names of the three kinds of rows."""
ROW_KINDS: dict[RowTable, type[TrialResult | RuleVerdict | JobResult]] = {
    "trials": TrialResult,
    "rules": RuleVerdict,
    "jobs": JobResult,
}


class Results:
    """The results of one or more runs as plain rows.

    Each list is read when it is used first. ``docs/rows.md`` describes the columns.
    """

    def __init__(self, results: RunResults) -> None:
        self._results = results

    @cached_property
    def trials(self) -> list[TrialResult]:
        """One row for each trial of both benchmarks: agents first, then the golden and the null agent."""
        jobs = self._jobs
        return [*record_rows(self._results, jobs), *answer_rows(self._results, jobs)]

    @cached_property
    def rules(self) -> list[RuleVerdict]:
        """One row for each rule of each scored trial."""
        return self._rules[0]

    @cached_property
    def jobs(self) -> list[JobResult]:
        """One row for each job, in the order of the journal of its run."""
        return [job for run in self._jobs for job in run.jobs.values()]

    @property
    def problems(self) -> list[ReadProblem]:
        """What could not be read, by file or folder; of jobs and rules once these are used."""
        found = list(self._results.problems)
        if "_jobs" in vars(self):
            found += [run.problem for run in self._jobs if run.problem]
        if "_rules" in vars(self):
            found += self._rules[1]
        return list(dict.fromkeys(found))

    def table(self, name: RowTable) -> list[Any]:
        """Return the rows of one kind by its name."""
        rows: list[Any] = getattr(self, name)
        return rows

    def to_pandas(self, table: RowTable = "trials") -> Any:  # noqa: ANN401 - pandas may be missing
        """Return the rows of one kind as a data frame of pandas, with types that know missing values.

        Raises:
            ToolMissing: pandas is not installed.
        """
        return to_pandas(ROW_KINDS[table], self.table(table))

    def to_polars(self, table: RowTable = "trials") -> Any:  # noqa: ANN401 - polars may be missing
        """Return the rows of one kind as a data frame of polars.

        Raises:
            ToolMissing: polars is not installed.
        """
        return to_polars(ROW_KINDS[table], self.table(table))

    @cached_property
    def _jobs(self) -> tuple[RunJobs, ...]:
        """The jobs of the runs, in the order of their folders."""
        names = run_names(self._results)
        return tuple(read_jobs(root, names[root]) for root in self._results.roots)

    @cached_property
    def _rules(self) -> tuple[list[RuleVerdict], list[ReadProblem]]:
        return rule_rows(self._results)

    def __repr__(self) -> str:
        """Name the folders."""
        return f"Results({', '.join(map(repr, map(str, self._results.roots)))})"


def load(*paths: str | os.PathLike[str], benchmark: str | os.PathLike[str] = "") -> Results:
    """Load the results of runs, also of runs that go on, were stopped, or are only partly there. Blocking.

    What cannot be read is in ``Results.problems``; the rest is in the rows.

    >>> results = load("runs/compare")
    >>> [trial for trial in results.trials if trial.outcome == "refused"]
    []
    >>> all(0 <= trial.ifr <= 1 for trial in results.trials if trial.ifr is not None)
    True

    Args:
        paths: folders of runs, or their names below ``runs/``, or folders of outputs in the published layout.
        benchmark: folder or name of the benchmark, for languages, categories and baselines; default those
            that the runs name.

    Raises:
        ConfigError: no folder is given, or one does not exist or has nothing that is a result.
    """
    if not paths:
        raise ConfigError("load: name at least one folder of a run")
    named = os.fspath(benchmark)
    opened = find_benchmark(BenchmarkConfig(path=named), Path()) if named else None
    return Results(read_results(run_folders([Path(path) for path in paths]), opened))
