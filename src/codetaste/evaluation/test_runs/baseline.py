"""The baseline of an instance: k test runs on R and k on R∘X*, and what they say (CodeTaste §4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.core.text import plural
from codetaste.evaluation.metrics import MIN_PASS_RATE, MIN_TESTS, PassThresholds, pass_thresholds
from codetaste.evaluation.test_runs.gates import Side
from codetaste.evaluation.test_runs.recorded import RecordedBaseline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.evaluation.metrics import TestCounts
    from codetaste.evaluation.test_runs.cases import CaseStatus
    from codetaste.evaluation.test_runs.test_run import TestRun

MEASURED = "measured in this run"
"""The source of a baseline that was measured and not recorded before."""
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Baseline:
    """The runs on each side, those that failed for want of infrastructure left out.

    Attributes:
        runs: the runs by side.
        lacking: number of runs by side that gave nothing, as the infrastructure failed.
    """

    runs: Mapping[Side, tuple[TestRun, ...]]
    lacking: Mapping[Side, int]

    @property
    def counts(self) -> tuple[TestCounts, ...]:
        """The counts of all runs that have some."""
        return tuple(run.counts for runs in self.runs.values() for run in runs if run.counts is not None)

    @property
    def crashed(self) -> tuple[TestRun, ...]:
        """The runs without counts: with one of them the environment is not sound."""
        return tuple(run for runs in self.runs.values() for run in runs if run.counts is None)

    @property
    def problem(self) -> str:
        """Why there are no thresholds; "" if there are.

        A crashed run counts as no test passed, so p_R would be 0, and every patch would pass; a run with too
        few tests, or of which most fail (CodeTaste §3.3), says as little.
        """
        for side, runs in self.runs.items():
            where = "R∘X*" if side is Side.GOLDEN else "R"
            crashed = [run for run in runs if run.counts is None]
            if crashed:
                return f"{len(crashed)} of {len(runs)} baseline runs on {where} crashed: {crashed[0].message}"
            invalid = [run.counts for run in runs if run.counts is not None and not run.counts.is_valid]
            if invalid:
                return (
                    f"{len(invalid)} of {len(runs)} baseline runs on {where} are not valid: "
                    f"{invalid[0].passed} of {invalid[0].total} tests passed, "
                    f"and at least {MIN_TESTS} tests and a share of {MIN_PASS_RATE:g} are needed"
                )
            if not runs:
                return f"no baseline run on {where} could be made"
        return ""

    @property
    def thresholds(self) -> PassThresholds | None:
        """p_R and f_R over all runs on both sides; None with a ``problem``."""
        return None if self.problem else pass_thresholds(self.counts)

    @property
    def flaky(self) -> tuple[str, ...]:
        """The tests whose result is not the same in all runs on one side, by name."""
        found: set[str] = set()
        for runs in self.runs.values():
            found |= _varying([run.cases for run in runs if run.cases])
        return tuple(sorted(found))

    def cases(self, side: Side) -> Mapping[str, CaseStatus]:
        """Return the tests that the first run on ``side`` with a report had."""
        return next((run.cases for run in self.runs[side] if run.cases), {})

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the reader."""
        notes = []
        flaky = self.flaky
        if flaky:
            named = ", ".join(flaky[:_MAX_NAMED])
            more = f", … and {len(flaky) - _MAX_NAMED} more" if len(flaky) > _MAX_NAMED else ""
            are = "is" if len(flaky) == 1 else "are"
            notes.append(f"{plural(len(flaky), 'test')} {are} flaky: {named}{more}")
        elif any(len({run.counts for run in runs}) > 1 for runs in self.runs.values()):
            notes.append("the counts of the baseline vary, so that some tests are flaky")
        lacking = sum(self.lacking.values())
        if lacking:
            notes.append(f"{plural(lacking, 'baseline run')} could not be made")
        return tuple(notes)

    def as_recorded(self) -> RecordedBaseline:
        """Return the baseline in the form that scores are computed from."""
        notes = (*filter(None, [self.problem]), *self.notes)
        return RecordedBaseline(self.thresholds, len(self.counts), MEASURED, notes)


def make_baseline(runs: Mapping[Side, Iterable[TestRun]]) -> Baseline:
    """Return the baseline of these runs; those that failed for want of infrastructure do not count."""
    all_runs = {side: tuple(each) for side, each in runs.items()}
    useful = {side: tuple(run for run in each if _counts(run)) for side, each in all_runs.items()}
    return Baseline(useful, {side: len(all_runs[side]) - len(useful[side]) for side in all_runs})


def _counts(run: TestRun) -> bool:
    return run.problem is None or not run.problem.infrastructure


def _varying(runs: Sequence[Mapping[str, CaseStatus]]) -> set[str]:
    names = {name for cases in runs for name in cases}
    return {name for name in names if len({cases.get(name) for cases in runs}) > 1}
