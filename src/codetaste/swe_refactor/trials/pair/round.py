"""``PairRound``: one answer of the developer, what tools say of it, and its review."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codetaste.agent.loop import AgentState
    from codetaste.swe_refactor.trials.conversation import AppliedAnswer
    from codetaste.swe_refactor.trials.pair.evidence import Evidence
    from codetaste.swe_refactor.trials.pair.review import AnswerReview


@dataclass(slots=True)
class PairRound:
    """One round.

    Attributes:
        number: from 1.
        text: the answer as the developer wrote it.
        applied: the answer as files.
        evidence: what tools say of it; None in the last round, and where a limit came first.
        review: its review; None as for ``evidence``, and of a reviewer that gave none.
    """

    number: int
    text: str
    applied: AppliedAnswer
    evidence: Evidence | None = None
    review: AnswerReview | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what is on record: all but the answer itself."""
        return {
            "round": self.number,
            "problem": self.applied.problem.kind.value if self.applied.problem else None,
            "files": sorted(self.applied.files),
            "findings": self.evidence.to_json()["findings"] if self.evidence else None,
            "review": self.review.to_json() if self.review else None,
        }


def replies_of(state: AgentState) -> int:
    """Return how many replies of the model a conversation has."""
    return sum(message.role == "assistant" for message in state.messages)
