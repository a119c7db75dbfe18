"""Count the keywords of a message, and check the conditions of stage 1 on the counts (CodeTaste A.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.mining.filter_result import FilterResult, Stage

if TYPE_CHECKING:
    from codetaste.mining.keywords.sets import KeywordSets

MIN_RATIO = 2
"""Count(M, K+) is at least so many times Count(M, K- weak)."""


@dataclass(frozen=True, slots=True)
class KeywordCounts:
    """How many keywords of each set a message has."""

    strong_plus: int
    weak_plus: int
    strong_minus: int
    weak_minus: int

    @property
    def plus(self) -> int:
        """Count(M, K+): the sum over the strong and the weak set, each counted for itself."""
        return self.strong_plus + self.weak_plus


@dataclass(frozen=True, slots=True)
class KeywordMatches:
    """The matched words of a message by set, folded, in the order of the message."""

    strong_plus: tuple[str, ...]
    weak_plus: tuple[str, ...]
    strong_minus: tuple[str, ...]
    weak_minus: tuple[str, ...]

    @property
    def counts(self) -> KeywordCounts:
        """Their numbers."""
        return KeywordCounts(
            len(self.strong_plus), len(self.weak_plus), len(self.strong_minus), len(self.weak_minus)
        )


def fold_case(text: str) -> str:
    """Return ``text`` in small letters as ``lower`` of DuckDB does, which maps each character to one."""
    return text.replace("İ", "i").lower()  # Python alone makes two characters of a dotted capital I


def find_keywords(text: str, sets: KeywordSets) -> KeywordMatches:
    """Return every keyword in ``text``, the message M of a commit (``CommitRecord.text``)."""
    folded = fold_case(text)
    return KeywordMatches(
        sets.strong_plus.find(folded),
        sets.weak_plus.find(folded),
        sets.strong_minus.find(folded),
        sets.weak_minus.find(folded),
    )


def count_keywords(text: str, sets: KeywordSets) -> KeywordCounts:
    """Return how many keywords of each set ``text`` has, the message M of a commit."""
    return find_keywords(text, sets).counts


def keyword_results(counts: KeywordCounts) -> list[FilterResult]:
    """Return the two conditions of CodeTaste A.1 on the counts of one message.

    ``strong_minus`` requires Count(M, K- strong) = 0, ``ratio`` Count(M, K+) / Count(M, K- weak) >= 2. Where
    Count(M, K- weak) is 0, the ratio passes if Count(M, K+) >= 1. In SQL the second condition is
    ``plus >= 1 AND plus >= 2 * weak_minus``.
    """
    return [_check_strong_minus(counts.strong_minus), _check_ratio(counts.plus, counts.weak_minus)]


def _check_strong_minus(count: int) -> FilterResult:
    reason = "" if count == 0 else f"{count} of K- strong in the message"
    return FilterResult(Stage.KEYWORDS, "strong_minus", not reason, str(count), "0", reason)


def _check_ratio(plus: int, weak_minus: int) -> FilterResult:
    if plus == 0:
        reason = "no keyword of K+ in the message"
    elif plus < MIN_RATIO * weak_minus:
        reason = f"{plus} of K+ in the message are less than {MIN_RATIO} times the {weak_minus} of K- weak"
    else:
        reason = ""
    bound = f"at least {MIN_RATIO}; at least 1 of K+"
    return FilterResult(Stage.KEYWORDS, "ratio", not reason, f"{plus} / {weak_minus}", bound, reason)
