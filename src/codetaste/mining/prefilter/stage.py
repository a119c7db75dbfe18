"""Stage 2 as a whole: unreachable commits, duplicates, early ones, then the filters of diffs, all counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from codetaste.mining.duplicates import find_duplicates
from codetaste.mining.filter_result import FilterResult, Stage
from codetaste.mining.funnel import Funnel
from codetaste.mining.prefilter.diff import CommitDiff
from codetaste.mining.prefilter.filters import check_reachable
from codetaste.mining.prefilter.prefilter import prefilter
from codetaste.mining.prefilter.selection import check_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from codetaste.mining.funnel import FunnelRow
    from codetaste.mining.prefilter.prefilter import Prefiltered, PrefilterLimits
    from codetaste.mining.prefilter.unreachable import Unreachable

_REACHED = FilterResult(Stage.PREFILTER, "reachable", passed=True, value="yes", bound="yes")
_UNIQUE = FilterResult(Stage.PREFILTER, "duplicate", passed=True, value="none", bound="no earlier commit")


class Stage2(NamedTuple):
    """What the filters of diffs took, and a row of the funnel for each filter of the stage."""

    prefiltered: Prefiltered
    rows: tuple[FunnelRow, ...]


def run_stage_2(
    diffs: Iterable[CommitDiff | Unreachable],
    limits: PrefilterLimits | None = None,
    later_than: datetime | None = None,
) -> Stage2:
    """Apply stage 2 (CodeTaste A.1) to the commits of stage 1, and count at each filter. Blocking.

    Duplicates are left out before the date is looked at: the earliest commit of a group stays, so that an old
    change which is made again does not pass as a later one.
    """
    funnel, reached = Funnel(), list[CommitDiff]()
    for each in diffs:
        if isinstance(each, CommitDiff):
            reached.append(each)
        else:
            funnel.add(each.record.name, [check_reachable(each)])
    unique = find_duplicates(reached)
    for duplicate in unique.duplicates:
        funnel.add(duplicate.record.name, [_REACHED, duplicate.result])
    later: list[CommitDiff] = []
    for diff in unique.unique:
        checks = _checks_before(diff, later_than)
        if checks[-1].passed:
            later.append(diff)
        else:
            funnel.add(diff.record.name, checks)
    found = prefilter(later, limits)
    for checked, diff in zip(found.checked, later, strict=True):
        funnel.add(checked.record.name, [*_checks_before(diff, later_than), *checked.results[1:]])
    return Stage2(found, funnel.rows)


def _checks_before(diff: CommitDiff, later_than: datetime | None) -> Sequence[FilterResult]:
    checks = [_REACHED, _UNIQUE]
    return checks if later_than is None else [*checks, check_later(diff.record, later_than)]
