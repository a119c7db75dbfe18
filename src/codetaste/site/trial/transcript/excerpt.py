"""The beginnings of a trial's conversations, which its page has as HTML: readable without a script."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from codetaste.site.trial.transcript.pieces import conversation_key, conversation_title
from codetaste.site.trial.visible_text import visible_text
from codetaste.transcripts.read import read_events

if TYPE_CHECKING:
    from codetaste.site.trial.transcript.trial_jobs import TrialJobs
    from codetaste.transcripts.event import RecordedConversation

_MAX_CONVERSATIONS = 6
_EVENTS = 8
_MAX_CHARS = 400


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event as text: its number, its kind, its turn, the tool if it is a call, and its beginning."""

    number: int
    kind: str
    turn: int
    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class ConversationExcerpt:
    """The first events of a conversation."""

    key: str
    title: str
    events: tuple[ShownEvent, ...]
    more: bool


def excerpts(jobs: TrialJobs) -> tuple[ConversationExcerpt, ...]:
    """Return the first events of each conversation, at most six of them. Blocking."""
    return tuple(_excerpt(each, jobs) for each in jobs.conversations[:_MAX_CONVERSATIONS])


def _excerpt(conversation: RecordedConversation, jobs: TrialJobs) -> ConversationExcerpt:
    first = list(islice(read_events(conversation, jobs.journal), _EVENTS + 1))
    shown = tuple(
        ShownEvent(each.number, each.kind.value, each.turn, each.tool, visible_text(each.text, _MAX_CHARS))
        for each in first[:_EVENTS]
    )
    key, title = conversation_key(conversation), conversation_title(conversation)
    return ConversationExcerpt(key, title, shown, len(first) > _EVENTS)
