"""Results of single tests, as a report gives them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from codetaste.core.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_NAME_CHARS = 1000
SEPARATOR = "::"
"""Between the parts of a name: file, suites, class, test."""


class CaseStatus(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """It did not run, or was expected to fail."""
    ERROR = "error"
    """What is around the test failed, or the test began and has no end."""


_ORDER = {status: at for at, status in enumerate(CaseStatus)}


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One test of a report; ``name`` is unique in the report and printable, at most 1,000 characters."""

    name: str
    status: CaseStatus


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """How many tests of a report ended how."""

    passed: int
    failed: int
    skipped: int
    errors: int

    @property
    def total(self) -> int:
        """Number of all tests of the report."""
        return self.passed + self.failed + self.skipped + self.errors


@dataclass(frozen=True, slots=True)
class TestReport:
    """The tests of one or several reports; ``notes`` are contradictions inside them, one line each."""

    __test__: ClassVar[bool] = False  # pytest must not collect it

    cases: tuple[CaseResult, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def statuses(self) -> dict[str, CaseStatus]:
        """Status by name."""
        return {case.name: case.status for case in self.cases}

    @property
    def counts(self) -> CaseCounts:
        """How many tests ended how."""
        found = Counter(case.status for case in self.cases)
        return CaseCounts(*(found[status] for status in (_PASSED, _FAILED, _SKIPPED, _ERROR)))


_PASSED, _FAILED, _SKIPPED, _ERROR = CaseStatus


def name_of(*parts: str) -> str:
    """Join the parts of a test's name; blank parts are left out, and those that repeat the one before."""
    found: list[str] = []
    for part in map(str.strip, parts):
        if part and part not in found[-1:]:
            found.append(part)
    name = SEPARATOR.join(found)
    return name if len(name) <= MAX_NAME_CHARS and name.isprintable() else printable(name, MAX_NAME_CHARS)


def make_report(results: Iterable[tuple[str, CaseStatus]], notes: Iterable[str] = ()) -> TestReport:
    """Make a report whose names are unique: the second test of a name gets the suffix ``#2``.

    Which of the tests with one name gets which number depends on their statuses alone: parallel runs report
    them in any order.
    """
    by_name: defaultdict[str, list[CaseStatus]] = defaultdict(list)
    for name, status in results:
        by_name[name].append(status)
    cases: dict[str, CaseStatus] = {
        name: min(found, key=_ORDER.__getitem__) for name, found in by_name.items()
    }
    for name, found in by_name.items():
        for number, status in enumerate(sorted(found, key=_ORDER.__getitem__)[1:], 2):
            cases[_free(f"{name}#{number}", cases)] = status
    return TestReport(tuple(CaseResult(name, status) for name, status in cases.items()), tuple(notes))


def merge_reports(reports: Iterable[TestReport]) -> TestReport:
    """Return all tests of ``reports`` as one report; tests of several files with one name stay several."""
    reports = list(reports)
    return make_report(
        ((case.name, case.status) for report in reports for case in report.cases),
        (note for report in reports for note in report.notes),
    )


def _free(name: str, taken: dict[str, CaseStatus]) -> str:
    """Return ``name``, with further marks if a test has that very name."""
    while name in taken:
        name += "'"
    return name
