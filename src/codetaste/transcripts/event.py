"""Events of a conversation, and the conversation that they belong to.

All texts are untrusted. They are valid Unicode, but have control characters and markup as they were recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal  # noqa: TC003 - of a dataclass that others may resolve
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.core.text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class EventKind(StrEnum):
    """What an event is."""

    SYSTEM = "system"
    """Instructions of the model."""
    USER = "user"
    """The task, or another message to the model that is no tool's result."""
    TEXT = "text"
    """Text of a reply."""
    REASONING = "reasoning"
    CALL = "call"
    """A tool call; the text is its arguments, JSON unless the model wrote something else."""
    RESULT = "result"
    NOTE = "note"
    """What the record says about the conversation, such as messages that were no longer sent."""
    ERROR = "error"
    """A reply that failed, or an error that the agent reports."""
    PROBLEM = "problem"
    """A part of the record that cannot be read."""

    @property
    def of_model(self) -> bool:
        """Whether it is part of a model's reply."""
        return self in {EventKind.TEXT, EventKind.REASONING, EventKind.CALL}


class SourceKind(StrEnum):
    """What recorded a conversation."""

    LOOP = "loop"
    """The transcript of codetaste's own loop, written when the loop ends."""
    GATEWAY = "gateway"
    """The gateway's transcript of a command-line agent, written as it works."""
    OUTPUT = "output"
    """The output of a command-line agent, or a log in the published layout."""
    ATIF = "atif"
    """A trajectory that another harness has written."""
    JOURNAL = "journal"
    """Replies and tool results in the journal of a run, without the prompts."""


@dataclass(frozen=True, slots=True)
class ReplyFacts:
    """What is recorded of a model's reply beside its content; None where it is unknown.

    Attributes:
        effect: name of the effect in the journal, "" if it is unknown.
        model: the model that answered.
        stop: why the reply ended.
        usage: tokens by kind.
        cost_usd: US dollars.
        sent_at: when the request was sent, in seconds of the epoch.
        duration_s: from the request to the end of the reply.
    """

    effect: str = ""
    model: str = ""
    stop: str = ""
    usage: Mapping[str, int] | None = None
    cost_usd: Decimal | None = None
    sent_at: float | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class TranscriptEvent:
    """One event.

    Attributes:
        number: its address in the conversation, from 1; it stays when the conversation goes on.
        kind: what it is.
        turn: number of the last reply that has begun before it or that it is part of; 0 before the first.
        text: the text, the arguments of a call, or the result of a tool.
        tool: name of the tool, of a call.
        call_id: id of the call, of a call and its result.
        is_error: whether the tool reports an error.
        agent: "" for the agent itself, or the name of a sub-agent or side call.
        at: when it was recorded, in seconds of the epoch.
        reply: facts about the reply, of the first event of each.
        from_client: whether it is part of a reply that is recorded nowhere: the agent's program has sent it.
    """

    number: int
    kind: EventKind
    turn: int
    text: str
    tool: str = ""
    call_id: str = ""
    is_error: bool = False
    agent: str = ""
    at: float | None = None
    reply: ReplyFacts | None = None
    from_client: bool = False


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """One conversation of a job.

    Attributes:
        name: its address in the run, stable: path of its file without ending, or the key of its job.
        source: what recorded it.
        job: key of the job, "" if it has none.
        step: the step of the trial ("plan", "judge", "execute"), direction of a pass, or kind of the job.
        part: which conversation of the step: "plan-attempt-2", "developer", "review-1"; "" for the only one.
        attempt: number of the attempt of a command-line agent, from 1; 0 where none is recorded.
        path: the file.
        run: the run's folder, which has the texts that are stored by their hash.
    """

    name: str
    source: SourceKind
    job: str
    step: str
    part: str
    attempt: int
    path: Path
    run: Path


@dataclass(slots=True)
class EventCounter:
    """Makes numbered events."""

    number: int = 0
    agent: str = field(default="")
    at: float | None = None

    def make(
        self,
        kind: EventKind,
        turn: int,
        text: str,
        *,
        tool: str = "",
        call_id: str = "",
        is_error: bool = False,
        reply: ReplyFacts | None = None,
    ) -> TranscriptEvent:
        """Return the next event."""
        self.number += 1
        if not (text.isascii() and tool.isascii() and call_id.isascii()):
            text, tool, call_id = map(replace_surrogates, (text, tool, call_id))
        return TranscriptEvent(
            self.number, kind, turn, text, tool, call_id, is_error, self.agent, self.at, reply
        )
