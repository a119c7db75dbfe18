"""``TestRun``: what one run of a test suite gave, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from codetaste.evaluation.metrics import CRASHED_RUN, TestCounts
from codetaste.evaluation.test_runs.cases import CaseStatus
from codetaste.evaluation.test_runs.problems import RunProblem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run of a test suite.

    Attributes:
        counts: what ``run_tests`` reported; None if it reported nothing that can be used.
        problem: why there are no counts, or why the run was not a regular one; None if it was.
        message: the problem in one line; "" without one.
        exit_code: of ``run_tests``; None if it did not end by itself.
        setup_s: seconds of the setup scripts.
        tests_s: seconds of ``run_tests``.
        log: end of what the scripts wrote, for people.
        cases: the tests of the reports that the run wrote, by name; empty where it wrote none.
        contradictions: what in the output does not agree with the counts.
        report_contradictions: what in the reports does not, by the name of the count. The script may count
            something else than the reports have: then all runs of a suite have the same names here.
        report_notes: what in a report contradicts itself or could not be read, one line each.
        left_processes: processes that the tests started and did not end.
        changed_files: versioned files that differ after the run, as ``git status`` names them.
        memory_bytes: memory at which the run was to be killed; 0 if it did not come to a sandbox.
        memory_reserved_bytes: memory that it was guaranteed.
    """

    __test__: ClassVar[bool] = False  # pytest must not collect it

    counts: TestCounts | None = None
    problem: RunProblem | None = None
    message: str = ""
    exit_code: int | None = None
    setup_s: float = 0.0
    tests_s: float = 0.0
    log: str = ""
    cases: Mapping[str, CaseStatus] = field(default_factory=dict)
    contradictions: tuple[str, ...] = ()
    report_contradictions: Mapping[str, str] = field(default_factory=dict)
    report_notes: tuple[str, ...] = ()
    left_processes: tuple[str, ...] = ()
    changed_files: tuple[str, ...] = ()
    memory_bytes: int = 0
    memory_reserved_bytes: int = 0

    @property
    def scored_counts(self) -> TestCounts | None:
        """The counts that PASS is computed from; None if the run says nothing about the code.

        A run that crashed counts as no test passed (CodeTaste §2.1). One that failed for want of
        infrastructure does not count at all.
        """
        if self.problem is not None and self.problem.infrastructure:
            return None
        return self.counts or replace(CRASHED_RUN, error=self.message or CRASHED_RUN.error)

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returned."""
        counts, problem = data["counts"], data["problem"]
        return cls(
            **{
                **data,
                "counts": None if counts is None else TestCounts(**counts),
                "problem": None if problem is None else RunProblem(problem),
                "cases": {name: CaseStatus(status) for name, status in data["cases"].items()},
                **{name: tuple(data[name]) for name in _TUPLES},
            }
        )


_TUPLES = ("contradictions", "report_notes", "left_processes", "changed_files")
