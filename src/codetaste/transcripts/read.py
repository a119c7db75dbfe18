"""Read a conversation, whatever has recorded it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codetaste.transcripts.atif import atif_events
from codetaste.transcripts.event import SourceKind
from codetaste.transcripts.gateway import gateway_events
from codetaste.transcripts.journal import facts_of_turn, journal_events, part_turns
from codetaste.transcripts.loop import loop_events
from codetaste.transcripts.output import output_events
from codetaste.transcripts.timeline.journal_reader import JournalReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.transcripts.event import RecordedConversation, TranscriptEvent


def read_events(
    conversation: RecordedConversation, journal: JournalReader | None = None
) -> Iterator[TranscriptEvent]:
    """Yield the events of a conversation, one at a time. Blocking.

    A part that cannot be read becomes an event of the kind ``PROBLEM``.

    Args:
        conversation: from ``conversations_of`` or ``conversations_of_logs``.
        journal: the run's journal, polled; with it replies of the own loop have their times and costs.
    """
    match conversation.source:
        case SourceKind.GATEWAY:
            yield from gateway_events(conversation.path, conversation.run)
        case SourceKind.OUTPUT:
            yield from output_events(conversation.path)
        case SourceKind.ATIF:
            yield from atif_events(conversation.path)
        case SourceKind.LOOP:
            yield from _with_facts(conversation, journal)
        case SourceKind.JOURNAL:
            if journal is None:
                journal = JournalReader(conversation.run)
                journal.poll()
            yield from journal_events(journal, conversation.job, conversation.part, conversation.run)


def _with_facts(
    conversation: RecordedConversation, journal: JournalReader | None
) -> Iterator[TranscriptEvent]:
    timeline = journal.job(conversation.job) if journal and conversation.job else None
    turns = part_turns(timeline.turns, conversation.part) if timeline else ()
    for event in loop_events(conversation.path):
        if not (0 < event.turn <= len(turns)) or not (event.reply is not None or event.kind.of_model):
            yield event
            continue
        turn = turns[event.turn - 1]
        facts = None if event.reply is None else facts_of_turn(turn, event.reply)
        yield replace(event, reply=facts, at=turn.ended)
