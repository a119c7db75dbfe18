"""``TrialOutcome``: how a trial ended, in one name: the verdict on its answer, or why there is none."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from codetaste.errors import Cause
from codetaste.orchestration.job import Status
from codetaste.swe_refactor.answers.problem import AnswerProblemKind
from codetaste.swe_refactor.score.check import CheckOutcome
from codetaste.swe_refactor.score.tested_answer import TestOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.swe_refactor.score.answer_score import AnswerScore


class NoScore(StrEnum):
    """Why a trial has no score."""

    BUDGET = "budget_exceeded"
    TIME_LIMIT = "timeout"
    TURN_LIMIT = "max_turns"
    NOT_SCORED = "not_scored"
    """It has an answer, which was not judged."""
    PROVIDER = "provider_failure"
    """The provider gave no usable reply, however often it was asked."""
    INFRASTRUCTURE = "infrastructure_failure"
    """A sandbox, a program or the machine failed."""
    NOT_RUN = "not_run"
    """It did not run, or was stopped."""


TrialOutcome: TypeAlias = AnswerProblemKind | TestOutcome | CheckOutcome | NoScore
"""All values differ. A success is ``CheckOutcome.VERIFIED``."""

NO_ANSWER: Final[frozenset[TrialOutcome]] = frozenset(
    {NoScore.BUDGET, NoScore.TIME_LIMIT, NoScore.TURN_LIMIT, AnswerProblemKind.REFUSED}
)
"""A limit or the model itself left no answer: a failure of strategy and model."""
NOT_COUNTED: Final[frozenset[TrialOutcome]] = frozenset(
    {
        *(NoScore.NOT_SCORED, NoScore.PROVIDER, NoScore.INFRASTRUCTURE, NoScore.NOT_RUN),
        *(AnswerProblemKind.WRONG_TREE, TestOutcome.BASE_FAILS, CheckOutcome.TOOL_FAILED),
    }
)
"""No fault of strategy and model: such a trial is neither a success nor a failure."""

OUTCOMES: Final[Mapping[str, TrialOutcome]] = {
    each.value: each for kind in (AnswerProblemKind, TestOutcome, CheckOutcome, NoScore) for each in kind
}
"""All outcomes by their values."""


def outcome_of_score(score: AnswerScore) -> TrialOutcome:
    """Return the outcome of a trial whose answer has this score."""
    if score.problem is not None:
        return score.problem.kind
    if score.tests is not None and not score.tests.is_passed:
        return score.tests.outcome
    if score.tests is None or score.check is None:
        return NoScore.NOT_SCORED
    return score.check.outcome


def outcome_of_job(status: Status, cause: Cause | None = None) -> TrialOutcome:
    """Return the outcome of a trial whose job ended like this, without a score."""
    if status is Status.FAILED:
        return _OF_CAUSE.get(cause, NoScore.INFRASTRUCTURE)
    return _OF_STATUS[status]


_OF_STATUS: Final = {
    Status.DONE: NoScore.NOT_SCORED,
    Status.BUDGET_EXCEEDED: NoScore.BUDGET,
    Status.TIMEOUT: NoScore.TIME_LIMIT,
    Status.CANCELLED: NoScore.NOT_RUN,
    Status.SKIPPED: NoScore.NOT_RUN,
}
_OF_CAUSE: Final[Mapping[Cause | None, TrialOutcome]] = {
    Cause.BUDGET: NoScore.BUDGET,
    Cause.DEADLINE: NoScore.TIME_LIMIT,
    Cause.REFUSED: AnswerProblemKind.REFUSED,
    Cause.RATE_LIMIT: NoScore.PROVIDER,
    Cause.UNAVAILABLE: NoScore.PROVIDER,
    Cause.MALFORMED: NoScore.PROVIDER,
    Cause.CANCELLED: NoScore.NOT_RUN,
}
