"""All numbers of one commit in stages 1 and 2, without the other commits of the population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.mining.clones.diffs import find_diff
from codetaste.mining.prefilter.diff import CommitDiff
from codetaste.mining.prefilter.filters import check_code_edits, check_outliers, check_ratio, check_reachable
from codetaste.mining.prefilter.prefilter import PrefilterLimits
from codetaste.mining.prefilter.selection import check_later

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from codetaste.mining.clones.resolve import CommitPlaces
    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.filter_result import FilterResult
    from codetaste.mining.prefilter.outliers import OutlierBounds


@dataclass(frozen=True, slots=True)
class Population:
    """What the filters of stage 2 know of all commits of a run; None is not known.

    Attributes:
        bounds: of outliers.
        lowest_ratio: the lowest compression ratio that was taken.
    """

    bounds: OutlierBounds | None = None
    lowest_ratio: float | None = None


async def explain_commit(
    record: CommitRecord,
    places: CommitPlaces,
    stage_1: Callable[[CommitRecord], Sequence[FilterResult]],
    limits: PrefilterLimits | None = None,
    population: Population | None = None,
    later_than: datetime | None = None,
) -> list[FilterResult]:
    """Return the results of all filters of stages 1 and 2 for one commit, also behind one that drops it.

    Args:
        record: the commit; what it lacks is read from its repository.
        places: where it is looked for.
        stage_1: the filters of stage 1.
        limits: of stage 2.
        population: the other commits of a run; filters that need what is None there are left out.
        later_than: commits have to be later than this time; None leaves the filter out.

    Raises:
        ToolMissing: git is not installed.
        StorageFull: no space left in the cache.
    """
    limits, population = limits or PrefilterLimits(), population or Population()
    diff = await find_diff(record, places)
    results = [*stage_1(diff.record), check_reachable(diff)]
    if isinstance(diff, CommitDiff):
        if later_than is not None:
            results.append(check_later(diff.record, later_than))
        results.append(check_code_edits(diff, limits.code_edits))
        if population.bounds is not None:
            results += check_outliers(diff, population.bounds)
        if population.lowest_ratio is not None:
            results.append(check_ratio(diff, population.lowest_ratio, keep=limits.keep))
    return results
