"""The scores of a message and of a diff, and the formulas that combine them (CodeTaste A.1)."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class MessageScores:
    """The scores of a commit message, each in [0, 1]; the names are those of Figure 9.

    Attributes:
        large_scale_refactor_score: S_large, a change across the whole project.
        true_refactor_score: S_refactor, behaviour is preserved.
        message_cohesion_score: S_cohesion, the message has one purpose.
        length_penalty: P_length, the message is a long list of topics.
        trivial_score: P_trivial, the edits are simple.
        uncertainty: P_unc.

    Raises:
        ValueError: a score is outside of [0, 1].
    """

    large_scale_refactor_score: float
    true_refactor_score: float
    message_cohesion_score: float
    length_penalty: float
    trivial_score: float
    uncertainty: float

    def __post_init__(self) -> None:
        _check_range(self)


@dataclass(frozen=True, slots=True)
class DiffScores:
    """The scores of a diff, each in [0, 1]; the names are those of Figure 10.

    Attributes:
        refactor_likelihood: S_refactor, behaviour is preserved.
        mixed_change_penalty: P_mixed, features or fixes are among the refactorings.
        risky_change_score: P_risky, edits alter behaviour.
        automated_pattern_score: P_auto, a tool may have made the change.
        uncertainty: P_unc.
        complexity: S_complexity, how hard the refactoring is.
        trivial_score: P_trivial, changes of white space, comments and the like.

    Raises:
        ValueError: a score is outside of [0, 1].
    """

    refactor_likelihood: float
    mixed_change_penalty: float
    risky_change_score: float
    automated_pattern_score: float
    uncertainty: float
    complexity: float
    trivial_score: float

    def __post_init__(self) -> None:
        _check_range(self)


def message_score(scores: MessageScores) -> float:
    """Return S_msg, -0.6 to 1 (CodeTaste A.1)."""
    rewards = (
        0.35 * scores.large_scale_refactor_score
        + 0.45 * scores.true_refactor_score
        + 0.2 * scores.message_cohesion_score
    )
    return rewards - (0.2 * scores.length_penalty + 0.2 * scores.trivial_score + 0.2 * scores.uncertainty)


def diff_score(scores: DiffScores) -> float:
    """Return S_diff, -1.5 to 1 (CodeTaste A.1)."""
    penalties = (
        0.4 * scores.mixed_change_penalty
        + 0.2 * scores.risky_change_score
        + 0.1 * scores.uncertainty
        + 0.15 * scores.trivial_score
        + 0.15 * scores.automated_pattern_score
    )
    return (0.8 * scores.refactor_likelihood + 0.2 * scores.complexity) - 1.5 * penalties


def total_score(message: float, diff: float) -> float:
    """Return S_total of S_msg and S_diff; the diff counts three times as much (CodeTaste A.1)."""
    return (message + 3 * diff) / 4


def _check_range(scores: MessageScores | DiffScores) -> None:
    for field in fields(scores):
        value = getattr(scores, field.name)
        if not 0 <= value <= 1:
            raise ValueError(f"{field.name}: {value} is outside of [0, 1]")
