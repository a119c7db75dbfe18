"""Limits of a test report, and the error of a report that breaks one or cannot be read."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.errors import Cause, CodetasteError

if TYPE_CHECKING:
    from codetaste.evaluation.test_runs.cases import CaseStatus

MAX_REPORT_BYTES = 64 * 1024**2
MAX_CASES = 200_000
MAX_DEPTH = 100
"""Limit of the nesting of elements, suites and subtests."""
MAX_NOTES = 20

CaseList = list[tuple[str, "CaseStatus"]]
"""Names and statuses of tests, as a reader finds them."""


class ReportProblem(StrEnum):
    """Why a report is not read."""

    TOO_LARGE = "too_large"
    TOO_MANY_CASES = "too_many_cases"
    TOO_DEEP = "too_deep"
    HAS_DTD = "has_dtd"
    """It has a document type: entities could expand without limit, or name files."""
    NOT_PARSABLE = "not_parsable"
    UNKNOWN_FORMAT = "unknown_format"


class InvalidReport(CodetasteError):
    """A test report cannot be read; the message is one printable line."""

    cause = Cause.MALFORMED

    def __init__(self, problem: ReportProblem, message: str) -> None:
        super().__init__(printable(message))
        self.problem = problem


def check_size(content: bytes) -> None:
    """Raise InvalidReport if ``content`` is larger than a report may be."""
    if len(content) > MAX_REPORT_BYTES:
        raise InvalidReport(
            ReportProblem.TOO_LARGE, f"{len(content):,} bytes; no more than {MAX_REPORT_BYTES:,} are read"
        )


def check_count(cases: CaseList) -> None:
    """Raise InvalidReport if there are more tests than a report may have."""
    if len(cases) > MAX_CASES:
        raise InvalidReport(ReportProblem.TOO_MANY_CASES, f"more than {MAX_CASES:,} tests")


def check_depth(depth: int) -> None:
    """Raise InvalidReport if suites or elements are nested deeper than in any report."""
    if depth > MAX_DEPTH:
        raise InvalidReport(ReportProblem.TOO_DEEP, f"nested deeper than {MAX_DEPTH}")
