"""``AnswerReview``: what the reviewer's model says of an answer and of what tools say of it (Appendix G)."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from codetaste.agent.facts import Facts
from codetaste.agent.loop import LoopEnd
from codetaste.agent.tool import ToolAnswer, tool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from codetaste.agent.loop import AgentState

_REVIEW = "review"
"""Kind of the fact that has the review."""
_MAX_COMMENTS, _MAX_CHARS = 20, 2000
_ACCEPTS = re.compile(r"\W*accept", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerReview:
    """The verdict, and what must be improved."""

    accepted: bool
    comments: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {**asdict(self), "comments": list(self.comments)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returned."""
        return cls(data["accepted"], tuple(data["comments"]))


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """What the tool works on."""

    facts: Facts = field(default_factory=Facts)


@tool
async def review(
    context: ReviewContext, verdict: Literal["accept", "improve"], comments: list[str] | None = None
) -> ToolAnswer:
    """Give your review; this ends your work.

    Args:
        context: What the tool works on.
        verdict: "accept" if the refactoring is right as it is, "improve" if it must be changed.
        comments: What must be changed and how, one point each; none for an accepted answer.
    """
    context.facts.add(_REVIEW, _make(verdict, comments or []).to_json())
    return ToolAnswer("The review is done.", finish=True)


REVIEWER_TOOLS = (review,)


def review_of(state: AgentState, context: ReviewContext) -> AnswerReview | None:
    """Return the review with which a loop ended; None if it ended without one."""
    if found := context.facts.of_kind(_REVIEW):
        return AnswerReview.from_json(found[-1])
    if state.end is LoopEnd.FINISHED:
        return read_review(state.messages[-1].text)
    return None


def read_review(text: str) -> AnswerReview:
    """Return the review in a plain reply: a JSON object with verdict and comments, or prose.

    Prose accepts only if it begins with "accept"; else all of it is one comment.
    """
    start, end = text.find("{"), text.rfind("}")
    try:
        data = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict) and isinstance(data.get("verdict"), str):
        comments = data.get("comments", [])
        return _make(data["verdict"], comments if isinstance(comments, list) else [comments])
    return AnswerReview(accepted=True) if _ACCEPTS.match(text) else _make("improve", [text])


def _make(verdict: str, comments: list[Any]) -> AnswerReview:
    texts = [str(each).strip()[:_MAX_CHARS] for each in comments[:_MAX_COMMENTS]]
    return AnswerReview(bool(_ACCEPTS.match(verdict)), tuple(filter(None, texts)))
