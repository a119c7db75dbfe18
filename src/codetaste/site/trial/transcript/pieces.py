"""Conversations in pieces that a page's script loads one by one; only one piece is in memory at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.site.html.compact_json import compact_json
from codetaste.site.html.site_file import SiteFile, data_script
from codetaste.site.trial.packed import gzip_bytes, packed_script
from codetaste.transcripts.event import EventKind
from codetaste.transcripts.read import read_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.site.trial.transcript.trial_jobs import TrialJobs
    from codetaste.transcripts.event import RecordedConversation, TranscriptEvent

PIECE_CHARS = 256 * 1024
MAX_EVENT_CHARS = 100_000
"""So much of an event's text is in the page; it says how long the text is."""
_MAX_EVENTS_OF_PIECE = 2_000


@dataclass(slots=True)
class _Contents:
    """What the page's script knows of a conversation before it loads any piece."""

    conversation: RecordedConversation
    pieces: list[list[int]] = field(default_factory=list)
    events: int = 0
    turns: int = 0
    chars: int = 0
    problems: int = 0

    def add(self, event: TranscriptEvent) -> None:
        self.events += 1
        self.turns = max(self.turns, event.turn)
        self.chars += len(event.text)
        self.problems += event.kind is EventKind.PROBLEM

    def to_json(self) -> dict[str, Any]:
        each = self.conversation
        return {
            "title": conversation_title(each),
            "key": conversation_key(each),
            "file": each.path.name,
            "source": each.source.value,
            "size": self.events,
            "turns": self.turns,
            "chars": self.chars,
            "problems": self.problems,
            "pieces": self.pieces,
        }


def conversation_title(conversation: RecordedConversation) -> str:
    """Return the title of a conversation: "execute, attempt 2"."""
    attempt = f"attempt {conversation.attempt}" if conversation.attempt > 1 else ""
    return ", ".join(filter(None, (conversation.step, conversation.part, attempt)))


def conversation_key(conversation: RecordedConversation) -> str:
    """Return the name of a conversation in addresses: ``execute``, ``plan.plan-attempt-1``."""
    attempt = f"attempt-{conversation.attempt}" if conversation.attempt > 1 else ""
    return ".".join(filter(None, (conversation.step, conversation.part, attempt)))


def transcript_files(folder: str, jobs: TrialJobs) -> Iterator[SiteFile]:
    """Yield the pieces of all conversations, then ``transcript.js`` with what is in which piece. Blocking.

    Args:
        folder: address of the page's folder.
        jobs: of the trial.
    """
    contents = []
    for number, conversation in enumerate(jobs.conversations):
        known = _Contents(conversation)
        for piece in _pieces(jobs, known):
            name = f"transcript-{number}-{len(known.pieces)}"
            known.pieces.append([piece[0]["n"], len(piece), piece[0]["t"]])
            yield _file(f"{folder}/{name}.js", packed_script(name, gzip_bytes(compact_json(piece))))
        contents.append(known.to_json())
    yield _file(f"{folder}/transcript.js", data_script("transcript", contents))


def _pieces(jobs: TrialJobs, known: _Contents) -> Iterator[list[dict[str, Any]]]:
    piece: list[dict[str, Any]] = []
    size = 0
    for event in read_events(known.conversation, jobs.journal):
        known.add(event)
        piece.append(_event_to_json(event))
        size += min(len(event.text), MAX_EVENT_CHARS)
        if size >= PIECE_CHARS or len(piece) >= _MAX_EVENTS_OF_PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _event_to_json(event: TranscriptEvent) -> dict[str, Any]:
    """Return an event for the script: what it does not have is left out."""
    reply = event.reply
    facts = reply and {
        "model": reply.model,
        "stop": reply.stop,
        "usd": None if reply.cost_usd is None else float(reply.cost_usd),
        "s": reply.duration_s,
        "tokens": dict(reply.usage) if reply.usage else None,
    }
    data: dict[str, Any] = {
        "n": event.number,
        "k": event.kind.value,
        "t": event.turn,
        "x": event.text[:MAX_EVENT_CHARS],
    }
    if len(event.text) > MAX_EVENT_CHARS:
        data["long"] = len(event.text)
    if event.tool:
        data["tool"] = event.tool
    if event.is_error:
        data["error"] = True
    if event.agent:
        data["agent"] = event.agent
    if event.at:
        data["at"] = event.at
    if facts and (known := {name: value for name, value in facts.items() if value}):
        data["reply"] = known
    return data


def _file(address: str, content: bytes) -> SiteFile:
    return SiteFile(address, lambda: content)
