"""Rankings of documents by scores, and their fusion by reciprocal ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def rank_by_score(scores: NDArray[Any]) -> list[int]:
    """Return the numbers of all documents, the best score first; equal scores in the documents' order."""
    return [int(number) for number in np.argsort(-scores, kind="stable")]


def fuse_rankings(rankings: Sequence[Sequence[int]], k: int) -> list[tuple[int, float]]:
    """Return all ranked documents with their fused scores, the best first; equal ones in their order.

    The score is the sum of 1 / (k + rank) over the rankings that have the document, with ranks from 1
    (Cormack et al., 2009; SWE-Refactor, Appendix F, step 4).
    """
    sums: dict[int, tuple[int, int]] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, 1):
            above, below = sums.get(number, (0, 1))
            sums[number] = above * (k + rank) + below, below * (k + rank)
    # Divided once, from whole numbers: equal sums are a tie, of whatever ranks they are.
    fused = [(number, above / below) for number, (above, below) in sums.items()]
    return sorted(fused, key=lambda entry: (-entry[1], entry[0]))
