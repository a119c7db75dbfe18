"""The filters of stage 2, each as a result with its number and its bound (CodeTaste A.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.mining.filter_result import FilterResult, Stage
from codetaste.mining.prefilter.code_files import count_code_edits
from codetaste.mining.prefilter.unreachable import Unreachable

if TYPE_CHECKING:
    from codetaste.mining.prefilter.diff import CommitDiff
    from codetaste.mining.prefilter.outliers import OutlierBounds, Range

MIN_CODE_EDITS = 25
KEEP = 1000


def check_reachable(diff: CommitDiff | Unreachable) -> FilterResult:
    """The commit and its parent can be read."""
    if isinstance(diff, Unreachable):
        return _result("reachable", str(diff.reason), "yes", diff.detail, passed=False)
    return _result("reachable", "yes", "yes", passed=True)


def check_code_edits(diff: CommitDiff, minimum: int = MIN_CODE_EDITS) -> FilterResult:
    """At least ``minimum`` lines are added or removed in files of programming languages."""
    edits = sum(map(count_code_edits, diff.files))
    reason = f"{edits:,} edited lines of code, fewer than {minimum:,}"
    return _result("code_edits", f"{edits:,}", f"at least {minimum:,}", reason, passed=edits >= minimum)


def check_outliers(diff: CommitDiff, bounds: OutlierBounds) -> list[FilterResult]:
    """Changed lines, and changed files, are within the bounds of the population."""
    return [
        _within("changed_lines", diff.changed_lines, bounds.lines),
        _within("changed_files", diff.changed_files, bounds.files),
    ]


def check_ratio(diff: CommitDiff, lowest: float, rank: int | None = None, keep: int = KEEP) -> FilterResult:
    """The compression ratio is among the ``keep`` highest.

    Args:
        diff: the commit.
        lowest: the lowest ratio among those that are taken.
        rank: place of the commit, from 1; None decides by ``lowest``.
        keep: how many are taken.
    """
    ratio = diff.compression_ratio
    passed = ratio >= lowest if rank is None else rank <= keep
    shown = f"{ratio:.4f}" if rank is None else f"{ratio:.4f} (rank {rank:,})"
    reason = "its diff is repetitive: others compress less"
    return _result("gzip_ratio", shown, f"the highest {keep:,}, from {lowest:.4f}", reason, passed=passed)


def _within(name: str, value: int, bound: Range) -> FilterResult:
    size = "larger" if value > bound.high else "smaller"
    return _result(name, f"{value:,}", str(bound), f"{size} than nearly all others", passed=value in bound)


def _result(name: str, value: str, bound: str, reason: str = "", *, passed: bool) -> FilterResult:
    return FilterResult(Stage.PREFILTER, name, passed, value, bound, "" if passed else reason)
