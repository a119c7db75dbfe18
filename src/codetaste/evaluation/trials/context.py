"""Shared state while reading the trials of one tree: benchmark, baselines, null agent's scan, problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.benchmark.benchmark import Benchmark
from codetaste.benchmark.instance import Instance
from codetaste.benchmark.layout import (
    BASELINES_FOLDER,
    EVALUATION_FOLDER,
    NEGATIVE_SARIF_FILE,
    NULL,
    PSEUDO_TRACK,
    pseudo_trial_folder,
)
from codetaste.core.text import printable
from codetaste.errors import ConfigError
from codetaste.evaluation.test_runs.recorded import RecordedBaseline, read_baseline
from codetaste.evaluation.trials.coverage import RuleCoverage, read_coverage
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem
from codetaste.evaluation.trials.untrusted_files import FileProblem, is_folder

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.trials.find import TrialFolder


@dataclass(slots=True)
class ReadContext:
    """Shared state of one reading. Trials are read in the order of their instances; only the last is cached.

    ``run_name`` is the name of the run or folder, ``root`` the real path of the folder that is read,
    ``outputs`` the folder with the tracks, if there is one, ``problems`` what was found so far, in order.
    """

    run_name: str
    root: str
    outputs: Path | None
    benchmark: Benchmark | None
    problems: list[ReadProblem] = field(default_factory=list)
    _instances: dict[str, Instance] = field(default_factory=dict)
    _baseline: tuple[str, RecordedBaseline] = ("", RecordedBaseline())
    _null: tuple[str, RuleCoverage | str] = ("", "")

    def __post_init__(self) -> None:
        """Index instances by path, not by id: two paths can have the same id."""
        if self.benchmark is not None:
            self._instances = {instance.path: instance for instance in self.benchmark.instances}

    def add_problem(self, label: str, kind: ProblemKind, text: str) -> None:
        """Add a problem with the file or folder ``label``."""
        self.problems.append(ReadProblem(kind, label, printable(text, 400)))

    def add_fault(self, label: str, fault: FileProblem) -> None:
        """Add what reading the file ``label`` raised."""
        self.add_problem(label, fault.kind, str(fault))

    def instance(self, trial: TrialFolder) -> Instance | None:
        """Return the benchmark's instance of ``trial``; None if it is unknown."""
        return self._instances.get(trial.instance_path)

    def baseline(self, trial: TrialFolder) -> RecordedBaseline:
        """Return the baseline of a trial's instance: the benchmark's, else the one beside the outputs."""
        if self._baseline[0] != trial.instance_path:
            self._baseline = (trial.instance_path, self._find_baseline(trial))
        return self._baseline[1]

    def null_coverage(self, trial: TrialFolder) -> RuleCoverage | str:
        """Return C_{Γ⁻}(R) from the null agent's evaluation, or the reason why it is unavailable."""
        if self._null[0] != trial.instance_path:
            self._null = (trial.instance_path, self._find_null(trial))
        return self._null[1]

    def _find_baseline(self, trial: TrialFolder) -> RecordedBaseline:
        instance = self.instance(trial) or Instance(trial.owner, trial.repo, trial.hash8, "")
        label = f"{BASELINES_FOLDER}/{trial.instance_path}"
        benchmarks = [] if self.benchmark is None else [self.benchmark]
        if self.outputs is not None and is_folder(self.outputs.parent / BASELINES_FOLDER):
            benchmarks.append(Benchmark(self.outputs.parent, ()))
        found = RecordedBaseline()
        for each in benchmarks:
            try:
                recorded = read_baseline(each, instance)
            except ConfigError as error:
                self.add_problem(label, ProblemKind.UNREADABLE, error.problems[0])
                continue
            for problem in recorded.faults:
                self.add_problem(label, ProblemKind.UNREADABLE, problem)
            if recorded.source == BASELINES_FOLDER:
                return recorded
            found = found if found.thresholds is not None else recorded
        return found

    def _find_null(self, trial: TrialFolder) -> RuleCoverage | str:
        if self.outputs is None:
            return "the pseudo agents' outputs are missing"
        folder = pseudo_trial_folder(self.outputs, trial.instance_path, NULL) / EVALUATION_FOLDER
        try:
            return read_coverage(folder / NEGATIVE_SARIF_FILE, self.root)
        except FileProblem as problem:
            if problem.kind is not ProblemKind.MISSING:
                parent = f"{PSEUDO_TRACK}/direct/{trial.instance_path}/{NULL}/{EVALUATION_FOLDER}"
                self.add_fault(f"{parent}/{NEGATIVE_SARIF_FILE}", problem)
            return f"the null agent's {NEGATIVE_SARIF_FILE} {problem}"
