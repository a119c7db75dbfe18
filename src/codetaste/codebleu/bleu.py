"""BLEU of words, and its weighted variant in which keywords count five times as much (CodeBLEU §3.1).

Both are the geometric mean of the matches of n-grams, n = 1 to 4. BLEU counts the share of the candidate's
n-grams (precision), the weighted variant the share of the references' (recall), as published. Where no n-gram
of a length matches, 0.1 matches are counted (smoothing method 1 of Chen and Cherry 2014).
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Words = Sequence[str]

_LONGEST = 4
_SMOOTHED = 0.1
_KEYWORD, _OTHER = 1.0, 0.2
"""Weights of a single word in the weighted variant."""
_PUBLISHED_LENGTH = 2
"""The length of every reference in the published brevity penalty of the weighted variant, a fault that is
kept: as a recall the variant needs no penalty, and from two words on this one is 1."""


def bleu(candidate: Words, references: Sequence[Words]) -> float:
    """Return BLEU-4 of a candidate beside its references, 0 to 1."""
    shares = []
    for n in range(1, _LONGEST + 1):
        of_candidate = _ngrams(candidate, n)
        most: Counter[Words] = Counter()
        for reference in references:
            most |= _ngrams(reference, n)
        shares.append((float((of_candidate & most).total()), float(max(1, of_candidate.total()))))
    nearest = min((abs(len(each) - len(candidate)), len(each)) for each in references)[1]
    return _geometric_mean(shares) * _brevity_penalty(nearest, len(candidate))


def weighted_bleu(candidate: Words, references: Sequence[Words], keywords: frozenset[str]) -> float:
    """Return the weighted variant of BLEU-4, 0 to 1. The counts of several references are added up."""
    shares = []
    for n in range(1, _LONGEST + 1):
        of_candidate, matched, total = _ngrams(candidate, n), 0.0, 0.0
        for reference in references:
            of_reference = _ngrams(reference, n)
            matched += _weight(of_reference & of_candidate, keywords)
            total += max(1.0, _weight(of_reference, keywords))
        shares.append((matched, total))
    return _geometric_mean(shares) * _brevity_penalty(_PUBLISHED_LENGTH, len(candidate))


def _ngrams(words: Words, n: int) -> Counter[Words]:
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def _weight(ngrams: Counter[Words], keywords: frozenset[str]) -> float:
    """Return the number of n-grams; single words count by their weight."""
    return math.fsum(
        count * (1.0 if len(ngram) > 1 else _KEYWORD if ngram[0] in keywords else _OTHER)
        for ngram, count in ngrams.items()
    )


def _geometric_mean(shares: Iterable[tuple[float, float]]) -> float:
    """Return the geometric mean of matched/total, smoothed; 0 if no single word matches."""
    shares = list(shares)
    if not shares[0][0]:
        return 0.0
    return math.exp(
        math.fsum(math.log((matched or _SMOOTHED) / total) for matched, total in shares) / len(shares)
    )


def _brevity_penalty(reference: int, candidate: int) -> float:
    """Return the factor for a candidate that is shorter than the reference; lengths in words."""
    if not candidate:
        return 0.0
    return min(1.0, math.exp(1 - reference / candidate))
