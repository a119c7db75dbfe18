"""The result of an evaluation, as it is journalled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.evaluation.evaluate import EvaluationStatus
from codetaste.orchestration.shortfall import Shortfall

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The scores of a prediction.

    Attributes:
        status: an ``EvaluationStatus``.
        summary: the scores in a few words.
        as_expected: whether a pseudo agent has the score that it must have; None for a trial.
        scores: all scores as JSON data.
        files: the SHA-256 of each written file, by its path in the prediction's folder.
        timestamp: when it was evaluated, ISO 8601.
    """

    status: str
    summary: str
    as_expected: bool | None
    scores: Mapping[str, Any]
    files: Mapping[str, str]
    timestamp: str

    @property
    def is_expected_score(self) -> bool:
        """Whether the prediction was scored and, for a pseudo agent, has the score that it must have."""
        return self.status == EvaluationStatus.SCORED and self.as_expected is not False

    @property
    def shortfall(self) -> Shortfall | None:
        """Why the evaluation gave no score, or not the one that a pseudo agent must have; None if it did.

        A pseudo agent needs no score where the instance has no rules.
        """
        if self.status == EvaluationStatus.NO_RULES and self.as_expected is not None:
            return None
        if self.status != EvaluationStatus.SCORED:
            return Shortfall(self.status, self.summary)
        return Shortfall("unexpected_score", self.summary) if self.as_expected is False else None
