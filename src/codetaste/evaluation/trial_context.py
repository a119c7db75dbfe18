"""What all trials of one reading share: benchmark, baselines, the null agent's scan, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.benchmark.catalog import Benchmark
from codetaste.benchmark.instance import Instance
from codetaste.errors import ConfigError
from codetaste.evaluation.baseline import RecordedBaseline, read_baseline
from codetaste.evaluation.published_lines import Coverage, read_coverage
from codetaste.evaluation.records import NULL, Problem, ProblemKind
from codetaste.evaluation.result_files import NEGATIVE_SARIF
from codetaste.evaluation.stray_files import Faulty, is_folder, printable
from codetaste.evaluation.trial_places import PSEUDO

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.trial_places import Place

RUNS = "baseline_results"


@dataclass(slots=True)
class Context:
    """One reading. Trials come in the order of their instances: what is kept is of the last one.

    Attributes:
        run: what the run is called.
        root: the real path of the folder that is read.
        outputs: the folder that has the tracks, where there is one.
        benchmark: whose trials these are, if anybody knows.
        problems: what is wrong, in the order it was found.
    """

    run: str
    root: str
    outputs: Path | None
    benchmark: Benchmark | None
    problems: list[Problem] = field(default_factory=list)
    _instances: dict[str, Instance] = field(default_factory=dict)
    _baseline: tuple[str, RecordedBaseline] = ("", RecordedBaseline())
    _null: tuple[str, Coverage | str] = ("", "")

    def __post_init__(self) -> None:
        """Look instances up by their path, not by their id: two paths may have one."""
        if self.benchmark is not None:
            self._instances = {instance.path: instance for instance in self.benchmark.instances}

    def report(self, label: str, fault: Faulty) -> None:
        """Name what is wrong with a file or folder."""
        self.problems.append(Problem(fault.kind, label, printable(str(fault), 400)))

    def instance(self, place: Place) -> Instance | None:
        """Return the row of the benchmark's table that ``place`` belongs to; None where nobody knows one."""
        return self._instances.get(place.path)

    def baseline(self, place: Place) -> RecordedBaseline:
        """Return the baseline of a trial's instance: the benchmark's, else what lies beside the outputs."""
        if self._baseline[0] != place.path:
            self._baseline = (place.path, self._find_baseline(place))
        return self._baseline[1]

    def null_coverage(self, place: Place) -> Coverage | str:
        """Return C_{Γ⁻}(R) from the null agent's evaluation, or why there is none."""
        if self._null[0] != place.path:
            self._null = (place.path, self._find_null(place))
        return self._null[1]

    def _find_baseline(self, place: Place) -> RecordedBaseline:
        instance = self.instance(place) or Instance(place.owner, place.repo, place.hash8, "")
        places = [] if self.benchmark is None else [self.benchmark]
        if self.outputs is not None and is_folder(self.outputs.parent / RUNS):
            places.append(Benchmark(self.outputs.parent, ()))
        found = RecordedBaseline()
        for each in places:
            try:
                recorded = read_baseline(each, instance)
            except ConfigError as error:
                self.report(f"{RUNS}/{place.path}", Faulty(ProblemKind.UNREADABLE, error.problems[0]))
                continue
            for fault in recorded.faults:
                self.report(f"{RUNS}/{place.path}", Faulty(ProblemKind.UNREADABLE, fault))
            if recorded.source == RUNS:
                return recorded
            found = found if found.bounds is not None else recorded
        return found

    def _find_null(self, place: Place) -> Coverage | str:
        if self.outputs is None:
            return "the pseudo agents' outputs are not here"
        folder = self.outputs / PSEUDO / "direct" / place.path / NULL / "evaluation"
        label = f"{PSEUDO}/direct/{place.path}/{NULL}/evaluation/{NEGATIVE_SARIF}"
        try:
            return read_coverage(folder / NEGATIVE_SARIF, self.root)
        except FileNotFoundError:
            return "the null agent's rules_negative.sarif is missing"
        except Faulty as fault:
            self.report(label, fault)
            return f"the null agent's rules_negative.sarif {fault}"
