"""The result of stage 1: the commits in order, and what each of its filters removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.mining.filter_result import FilterResult, Stage
from codetaste.mining.ranking.record_file import record_from_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.ranking.config import RankingConfig

_TOTAL = "total_"


@dataclass(frozen=True, slots=True)
class RankedCommit:
    """A commit that passed stage 1, with its keyword counts; the table of stars replaces its own stars."""

    record: CommitRecord
    strong_plus: int
    weak_plus: int
    strong_minus: int
    weak_minus: int


@dataclass(frozen=True, slots=True)
class FilterCount:
    """What one filter did: ``entered`` commits reached it, ``passed`` of them went on."""

    filter: str
    entered: int
    passed: int

    @property
    def removed(self) -> int:
        """How many it removed."""
        return self.entered - self.passed


@dataclass(frozen=True, slots=True)
class Ranking:
    """The result of stage 1.

    Attributes:
        commits: the best first.
        filters: in the order in which they are applied.
        stars_unknown: commits that passed the filter of stars as theirs are unknown.
        files_unknown: commits that passed the filter of files as theirs are unknown.
    """

    commits: tuple[RankedCommit, ...]
    filters: tuple[FilterCount, ...]
    stars_unknown: int
    files_unknown: int


def ranking_of(rows: Iterable[Mapping[str, Any]]) -> Ranking:
    """Return the ranking that the rows of the query give; there is always one row, with the totals."""
    found = list(rows)
    totals = {
        name.removeprefix(_TOTAL): int(value or 0) for name, value in found[0].items() if _TOTAL in name
    }
    commits = tuple(
        RankedCommit(
            record_from_row(row), row["strong_plus"], row["weak_plus"], row["strong_minus"], row["weak_minus"]
        )
        for row in found
        if row["golden"] is not None
    )
    filters = []
    left = totals["commits"]
    for name in ("incomplete", "stars", "files", "strong_minus", "ratio"):
        filters.append(FilterCount(name, left, left - totals[name]))
        left -= totals[name]
    filters.append(FilterCount("duplicate", left, totals["unique"]))
    filters.append(FilterCount("best", totals["unique"], len(commits)))
    return Ranking(commits, tuple(filters), totals["stars_unknown"], totals["files_unknown"])


def size_results(record: CommitRecord, config: RankingConfig) -> list[FilterResult]:
    """Return what the filters of stage 1 before its keywords say of a commit."""
    complete = bool(record.golden)
    return [
        FilterResult(
            Stage.KEYWORDS,
            "incomplete",
            complete,
            record.golden or "no hash",
            "hash of the commit",
            "" if complete else "the source does not tell the hash of the merge commit",
        ),
        _check_minimum("stars", record.stars, config.min_stars),
        _check_minimum("files", record.files, config.min_files),
    ]


def _check_minimum(name: str, value: int | None, minimum: int) -> FilterResult:
    passed = value is None or value >= minimum
    shown = "unknown" if value is None else f"{value:,}"
    reason = "" if passed else f"{shown} {name}, fewer than {minimum:,}"
    return FilterResult(Stage.KEYWORDS, name, passed, shown, f"at least {minimum:,}", reason)
