"""Rankings of documents by scores, and their fusion by reciprocal ranks."""

from __future__ import annotations

from collections import defaultdict
from math import fsum
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
    parts = defaultdict[int, list[float]](list)
    for ranking in rankings:
        for rank, number in enumerate(ranking, 1):
            parts[number].append(1 / (k + rank))
    # fsum: the same parts give the same sum in any order, so that equal ranks are a tie.
    fused = [(number, fsum(each)) for number, each in parts.items()]
    return sorted(fused, key=lambda entry: (-entry[1], entry[0]))
