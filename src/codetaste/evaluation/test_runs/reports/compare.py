"""Compares a report of single tests with the counts that ``run_tests`` printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.evaluation.metrics import TestCounts
    from codetaste.evaluation.test_runs.cases import TestReport


def compare_with_counts(report: TestReport, counts: TestCounts) -> dict[str, str]:
    """Return the contradictions between a report and counts by key: passed, failed, skipped or total.

    Scripts count errors as failed tests or not at all, and leave skipped tests out of the total or not:
    neither is a contradiction. A script may also count something else than the report has (packages, or tests
    without their subtests): then the runs of the baseline contradict their reports too, in the same keys.
    """
    found = report.counts
    possible = {
        "passed": {found.passed},
        "failed": {found.failed, found.failed + found.errors},
        "skipped": {found.skipped},
        "total": {
            found.total - left_out
            for left_out in (0, found.skipped, found.errors, found.skipped + found.errors)
        },
    }
    return {
        key: f"run_tests printed {key} {getattr(counts, key):,}, the report has {_options(values)}"
        for key, values in possible.items()
        if getattr(counts, key) not in values
    }


def _options(values: set[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
