"""The two averages of CodeBLEU over the answers of a model (SWE-Refactor §4.1, Table 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class CodeBleuAverages:
    """Means of the scores, 0 to 1; None without any.

    Attributes:
        of_all: over all answers; one without a score, such as an answer without code, counts as 0.
        of_successes: over successful refactorings only. The records published with SWE-Refactor have a score
            for these alone, so this is the average of its Table 2.
        answers: how many answers there are.
        successes: how many are successful.
    """

    of_all: float | None
    of_successes: float | None
    answers: int
    successes: int


def average_codebleu(answers: Iterable[tuple[float | None, bool]]) -> CodeBleuAverages:
    """Return both averages of (score, None without one; whether the refactoring is successful)."""
    pairs = [(score or 0.0, is_success) for score, is_success in answers]
    every = [score for score, _ in pairs]
    successful = [score for score, is_success in pairs if is_success]
    return CodeBleuAverages(_mean(every), _mean(successful), len(every), len(successful))


def _mean(scores: list[float]) -> float | None:
    return math.fsum(scores) / len(scores) if scores else None
