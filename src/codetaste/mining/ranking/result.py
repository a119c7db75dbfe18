"""The result of stage 1: the commits in order, and what each of its filters removed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.mining.filter_result import FilterResult, Stage
from codetaste.mining.funnel import UNKNOWN, FunnelRow
from codetaste.mining.keywords.count import KeywordCounts
from codetaste.mining.keywords.sets import SET_NAMES
from codetaste.mining.ranking.record_file import record_from_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.ranking.config import RankingConfig


_REASONS = {
    "incomplete": "no hash of a merge commit is known",
    "date": "not late enough",
    "stars": "the repository has too few stars",
    "files": "too few files are changed",
    "strong_minus": "a keyword of K- strong in the message",
    "ratio": "too few keywords of K+ in the message",
    "duplicate": "the same commit is there already",
    "best": "others rank higher",
}
"""Why the filters of the query remove a commit."""


@dataclass(frozen=True, slots=True)
class RankedCommit:
    """A commit that passed stage 1, with its keyword counts; the table of stars replaces its own stars."""

    record: CommitRecord
    counts: KeywordCounts


@dataclass(frozen=True, slots=True)
class Ranking:
    """The result of stage 1: the commits, the best first, and a row of the funnel for each filter."""

    commits: tuple[RankedCommit, ...]
    rows: tuple[FunnelRow, ...]


def ranking_of(rows: Iterable[Mapping[str, Any]], cost_usd: Decimal = Decimal(0)) -> Ranking:
    """Return the ranking that the rows of the query give; there is always one row, with the totals.

    Args:
        rows: the answer of the query.
        cost_usd: what the query cost, US dollars.
    """
    found = list(rows)
    totals = {name: int(value or 0) for name, value in found[0].items() if name.startswith("total_")}
    commits = tuple(
        RankedCommit(record_from_row(row), KeywordCounts(*(row[name] for name in SET_NAMES)))
        for row in found
        if row["golden"] is not None
    )
    funnel = []
    left = totals["total_commits"]
    for name in ("incomplete", "stars", "files", "strong_minus", "ratio"):
        removed, unknown = totals[f"total_{name}"], totals.get(f"total_{name}_unknown", 0)
        reasons = ((_REASONS[name], removed),) if removed else ()
        funnel.append(FunnelRow(Stage.KEYWORDS, name, left, removed, unknown, reasons))
        left -= removed
    unique = totals["total_unique"]
    ends = (("duplicate", left, unique, Decimal(0)), ("best", unique, len(commits), cost_usd))
    for name, entered, passed, usd in ends:
        reasons = ((_REASONS[name], entered - passed),) if entered > passed else ()
        funnel.append(
            FunnelRow(Stage.KEYWORDS, name, entered, entered - passed, reasons=reasons, cost_usd=usd)
        )
    return Ranking(commits, tuple(funnel))


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
    shown = UNKNOWN if value is None else f"{value:,}"
    reason = "" if passed else f"{shown} {name}, fewer than {minimum:,}"
    return FilterResult(Stage.KEYWORDS, name, passed, shown, f"at least {minimum:,}", reason)
