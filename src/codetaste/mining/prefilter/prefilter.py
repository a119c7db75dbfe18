"""Stage 2: of the commits of stage 1 it takes those with the least repetitive diffs (CodeTaste A.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.mining.prefilter.diff import CommitDiff
from codetaste.mining.prefilter.filters import (
    KEEP,
    MIN_CODE_EDITS,
    check_code_edits,
    check_outliers,
    check_ratio,
    check_reachable,
)
from codetaste.mining.prefilter.outliers import OutlierBounds, outlier_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.filter_result import FilterResult
    from codetaste.mining.prefilter.unreachable import Unreachable


@dataclass(frozen=True, slots=True)
class PrefilterLimits:
    """What stage 2 requires.

    Attributes:
        code_edits: fewest edited lines in files of programming languages.
        keep: how many commits are taken at most.
    """

    code_edits: int = MIN_CODE_EDITS
    keep: int = KEEP


@dataclass(frozen=True, slots=True)
class CheckedCommit:
    """One commit with the results of the filters that it reached."""

    record: CommitRecord
    results: tuple[FilterResult, ...]

    @property
    def passed(self) -> bool:
        """True if no filter dropped it."""
        return all(result.passed for result in self.results)


@dataclass(frozen=True, slots=True)
class Prefiltered:
    """What stage 2 took, and why it dropped the others.

    Attributes:
        selected: by descending compression ratio.
        checked: all commits, in the order in which they came.
        bounds: of outliers; None if no commit reached that filter.
        lowest_ratio: of ``selected``; None if it is empty.
    """

    selected: tuple[CommitDiff, ...]
    checked: tuple[CheckedCommit, ...]
    bounds: OutlierBounds | None
    lowest_ratio: float | None


@dataclass(slots=True)
class _Candidate:
    diff: CommitDiff | Unreachable
    results: list[FilterResult] = field(default_factory=list)


def prefilter(
    diffs: Iterable[CommitDiff | Unreachable], limits: PrefilterLimits | None = None
) -> Prefiltered:
    """Apply the filters of stage 2 in their order: reachable, code, outliers, ratio. Blocking.

    The order of ``diffs`` has no influence. Equal ratios are ordered by repository, then by hash.
    """
    limits = limits or PrefilterLimits()
    candidates = [_Candidate(diff, [check_reachable(diff)]) for diff in diffs]
    code: list[tuple[CommitDiff, _Candidate]] = []
    for candidate in candidates:
        if isinstance(candidate.diff, CommitDiff):
            candidate.results.append(check_code_edits(candidate.diff, limits.code_edits))
            if candidate.results[-1].passed:
                code.append((candidate.diff, candidate))
    bounds = outlier_bounds(diff for diff, _ in code)
    usual: list[tuple[CommitDiff, _Candidate]] = []
    for diff, candidate in code:
        results = check_outliers(diff, bounds) if bounds else []
        candidate.results += results
        if all(result.passed for result in results):
            usual.append((diff, candidate))
    usual.sort(key=lambda item: _order(item[0]))
    selected = tuple(diff for diff, _ in usual[: limits.keep])
    lowest = selected[-1].compression_ratio if selected else None
    for rank, (diff, candidate) in enumerate(usual, 1):
        candidate.results.append(check_ratio(diff, lowest or 0.0, rank, limits.keep))
    checked = tuple(CheckedCommit(each.diff.record, tuple(each.results)) for each in candidates)
    return Prefiltered(selected, checked, bounds, lowest)


def _order(diff: CommitDiff) -> tuple[float, str, str]:
    return -diff.compression_ratio, diff.record.repository, diff.record.golden
