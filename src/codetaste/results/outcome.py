"""``OutcomeFacet``: what became of a trial, in one word for both benchmarks, by which rows and pages filter.

A machine that failed, a model that refused, a limit that ended the work and an answer that is wrong are
different things. A trial has one facet: the verdict on its answer if that is a success or a part of one,
otherwise the first cause that explains why there is none.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from codetaste.agent.loop import LoopEnd
from codetaste.benchmark.layout import FinishReason
from codetaste.errors import Cause
from codetaste.evaluation.trials.records import TrialStatus
from codetaste.orchestration.journal.history import LIVE_STATES, JobState
from codetaste.swe_refactor.answers.problem import AnswerProblemKind
from codetaste.swe_refactor.report.outcome import NOT_COUNTED, NoScore
from codetaste.swe_refactor.score.check import CheckOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.evaluation.trials.records import TrialRecord, TrialScores
    from codetaste.swe_refactor.report.outcome import TrialOutcome


class OutcomeFacet(StrEnum):
    """What became of a trial, in the order in which pages list it."""

    SUCCESS = "success"
    """The tests pass, as far as they ran, and every rule is satisfied; in SWE-Refactor: it is verified."""
    PARTIAL_SUCCESS = "partial_success"
    """The tests pass, as far as they ran, and some rules are satisfied (CodeTaste only)."""
    FAILURE = "failure"
    """It was judged and has no success, or its agent made a mistake; no limit or machine was to blame."""
    TIMEOUT = "timeout"
    """A time limit ended its work, and what it left is no success."""
    BUDGET_EXCEEDED = "budget_exceeded"
    """A budget ended its work, and what it left is no success."""
    MAX_TURNS = "max_turns"
    """The maximum of turns ended its work, and what it left is no success."""
    REFUSED = "refused"
    """The model, or the policy of its provider, refused the task."""
    INFRASTRUCTURE_ERROR = "infrastructure_error"
    """A provider, a sandbox, a program or the machine failed: no fault of the agent."""
    NOT_SCORED = "not_scored"
    """It has a result, but no verdict: not evaluated, a partial scan, or no rules."""
    NOT_ENDED = "not_ended"
    """It waits, runs, or was stopped."""
    UNREADABLE = "unreadable"
    """Its files are damaged."""

    @property
    def label(self) -> str:
        """The facet for readers: "time-out"."""
        return _LABELS.get(self, self.value.replace("_", " "))


_LABELS: Final[Mapping[OutcomeFacet, str]] = {
    OutcomeFacet.TIMEOUT: "time-out",
    OutcomeFacet.BUDGET_EXCEEDED: "budget",
    OutcomeFacet.MAX_TURNS: "turn limit",
    OutcomeFacet.REFUSED: "refusal",
}
_NOT_ENDED: Final = frozenset({*LIVE_STATES, JobState.INTERRUPTED, JobState.CANCELLED, Cause.CANCELLED})
_OF_END: Final[Mapping[str, OutcomeFacet]] = {
    Cause.REFUSED: OutcomeFacet.REFUSED,
    Cause.BUDGET: OutcomeFacet.BUDGET_EXCEEDED,
    FinishReason.BUDGET_EXCEEDED: OutcomeFacet.BUDGET_EXCEEDED,
    Cause.DEADLINE: OutcomeFacet.TIMEOUT,
    FinishReason.TIMEOUT: OutcomeFacet.TIMEOUT,
    LoopEnd.MAX_TURNS: OutcomeFacet.MAX_TURNS,
    FinishReason.EXECUTION_ERROR: OutcomeFacet.FAILURE,
    FinishReason.ERROR: OutcomeFacet.INFRASTRUCTURE_ERROR,
    **{cause: OutcomeFacet.INFRASTRUCTURE_ERROR for cause in Cause if cause.is_infrastructure},
}
"""By the cause or the name of the ending of a job, or by a finish reason; any other is a failure."""
_OF_STATUS: Final = {
    TrialStatus.UNREADABLE: OutcomeFacet.UNREADABLE,
    TrialStatus.INFRASTRUCTURE: OutcomeFacet.INFRASTRUCTURE_ERROR,
}
_ENDS_OF_AGENTS: Final = frozenset({LoopEnd.MAX_TURNS, LoopEnd.REFUSED})
"""Endings that the outputs of a trial call the agent's own fault."""
_OF_ANSWER: Final[Mapping[TrialOutcome, OutcomeFacet]] = {
    CheckOutcome.VERIFIED: OutcomeFacet.SUCCESS,
    AnswerProblemKind.REFUSED: OutcomeFacet.REFUSED,
    NoScore.BUDGET: OutcomeFacet.BUDGET_EXCEEDED,
    NoScore.TIME_LIMIT: OutcomeFacet.TIMEOUT,
    NoScore.TURN_LIMIT: OutcomeFacet.MAX_TURNS,
    NoScore.NOT_SCORED: OutcomeFacet.NOT_SCORED,
    NoScore.NOT_RUN: OutcomeFacet.NOT_ENDED,
}


def facet_of_record(record: TrialRecord, end: str = "") -> OutcomeFacet:
    """Return what became of a trial of CodeTaste.

    Args:
        record: the trial.
        end: from the journal: the cause of the end of the step that ended it, or the name under which that
            ending is counted, or its state if it has not ended; "" if that is unknown.
    """
    scores = record.scores
    if scores.status in _OF_STATUS:
        return _OF_STATUS[scores.status]
    if scores.status in {TrialStatus.NOT_SCORED, TrialStatus.PARTIAL}:
        ended = not record.metadata.interruption and end not in _NOT_ENDED
        return OutcomeFacet.NOT_SCORED if ended else OutcomeFacet.NOT_ENDED
    verdict = _verdict(scores) if scores.status is TrialStatus.SCORED else OutcomeFacet.FAILURE
    if verdict is not OutcomeFacet.FAILURE:
        return verdict
    reason = record.metadata.finish_reason
    if reason == FinishReason.EXECUTION_ERROR and end not in _ENDS_OF_AGENTS:
        return OutcomeFacet.FAILURE
    found = _OF_END.get(end) or _OF_END.get(reason)
    if found is None and scores.status is TrialStatus.REFUSED:
        return OutcomeFacet.REFUSED
    return found or OutcomeFacet.FAILURE


def _verdict(scores: TrialScores) -> OutcomeFacet:
    """Return the verdict on a scored patch; tests that did not run fail nothing."""
    if scores.passed is False:
        return OutcomeFacet.FAILURE
    if scores.ifr is None:
        return OutcomeFacet.NOT_SCORED
    if scores.ifr == 1:
        return OutcomeFacet.SUCCESS
    return OutcomeFacet.PARTIAL_SUCCESS if scores.ifr > 0 else OutcomeFacet.FAILURE


def reason_of_record(record: TrialRecord) -> str:
    """Return why a trial of CodeTaste ended like that, or why a value is missing, in one line; "" if unknown.

    What a verdict is based on comes before what is missing: a patch without any satisfied rule is a failure
    whether or not its tests ran.
    """
    scores = record.scores
    causes = [
        "the tests do not pass" if scores.passed is False else "",
        "no rule is satisfied" if scores.ifr == 0 else "",
        scores.reason,
    ]
    return "; ".join(filter(None, causes))


def facet_of_answer(outcome: TrialOutcome) -> OutcomeFacet:
    """Return what became of a trial of SWE-Refactor."""
    if outcome in NOT_COUNTED and outcome not in _OF_ANSWER:
        return OutcomeFacet.INFRASTRUCTURE_ERROR
    return _OF_ANSWER.get(outcome, OutcomeFacet.FAILURE)
