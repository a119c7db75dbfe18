"""Events of a job in the journal of a run: replies and tool results, without the prompts.

For conversations that have no transcript: of jobs that still run or were killed, and of single prompts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from codetaste.errors import JournalError
from codetaste.llm.codec import value_from_json
from codetaste.orchestration.journal.blobs import BLOBS_FOLDER, Blobs
from codetaste.transcripts.blocks import MessageBlock, message_blocks
from codetaste.transcripts.event import EventCounter, EventKind, ReplyFacts
from codetaste.transcripts.loop import block_event, reply_events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.transcripts.event import TranscriptEvent
    from codetaste.transcripts.timeline.job import TurnSpan
    from codetaste.transcripts.timeline.journal_reader import EffectPlace, JournalReader

_EFFECT = re.compile(r"(?:(.*)/)?(?:turn-\d+|[^/]*)/(?:reply|tool-(\d+)|shorten-\d+)|reply-\d+")
_REVIEW = re.compile(r"round-(\d+)/reviewer")


def effect_part(effect: str) -> str | None:
    """Return the part of a job's work that an effect is of, as in conversations; None if it is of none.

    The developer of a pair has one conversation in all rounds, its reviewer one in each. Calls through the
    gateway are of no part: the gateway writes their transcript.
    """
    found = _EFFECT.fullmatch(effect)
    if found is None or effect.startswith("gateway/"):
        return None
    prefix = found[1] or ""
    if review := _REVIEW.fullmatch(prefix):
        return f"review-{review[1]}"
    return "developer" if prefix.endswith("/developer") else prefix


def part_turns(turns: tuple[TurnSpan, ...], part: str) -> tuple[TurnSpan, ...]:
    """Return the turns of one part of a job's work, in order: the first is turn 1 of its conversation."""
    return tuple(turn for turn in turns if effect_part(turn.effect) == part)


def journal_events(reader: JournalReader, job: str, part: str, run: Path) -> Iterator[TranscriptEvent]:
    """Yield the events of one part of a job's work. Blocking."""
    timeline, blobs, events = reader.job(job), Blobs(run / BLOBS_FOLDER), EventCounter()
    if timeline is None:
        return
    turns = {turn.effect: turn for turn in timeline.turns}
    number, calls = 0, list[str]()
    for place in reader.effects(job):
        if effect_part(place.effect) != part:
            continue
        value, events.at = _value(reader, place, blobs), place.at
        if place.of_call:
            number += 1
            facts = _facts(place.effect, turns.get(place.effect), value)
            blocks = _reply_blocks(value)
            if blocks is None:
                problem = f"the reply {place.effect} is missing or damaged"
                yield events.make(EventKind.PROBLEM, number, problem, reply=facts)
                continue
            calls = [block.call_id for block in blocks if block.kind is EventKind.CALL]
            yield from reply_events(events, number, blocks, facts)
        elif "/shorten-" in f"/{place.effect}":
            text = "The conversation is too long for the model; from here on it is shortened."
            yield events.make(EventKind.NOTE, number, text)
        elif isinstance(value, dict) and isinstance(value.get("content"), str):
            yield block_event(events, number, _result(place.effect, value, calls))


def _value(reader: JournalReader, place: EffectPlace, blobs: Blobs) -> Any:  # noqa: ANN401 - JSON
    value = reader.value(place)
    try:
        if isinstance(value, dict) and "stored" in value:
            value = json.loads(blobs.read(str(value["stored"])))
        return value_from_json(value)
    except (JournalError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _reply_blocks(value: Any) -> list[MessageBlock] | None:  # noqa: ANN401 - JSON
    reply = value.get("reply") if isinstance(value, dict) else None
    message = reply.get("message") if isinstance(reply, dict) else None
    return [*message_blocks(message)] if isinstance(message, dict) else None


def _facts(effect: str, turn: TurnSpan | None, value: Any) -> ReplyFacts:  # noqa: ANN401 - JSON
    reply = value.get("reply") if isinstance(value, dict) else None
    known = reply if isinstance(reply, dict) else {}
    facts = ReplyFacts(effect, str(known.get("model", "")), str(known.get("stop", "")))
    return facts if turn is None else facts_of_turn(turn, facts)


def facts_of_turn(turn: TurnSpan, facts: ReplyFacts) -> ReplyFacts:
    """Return ``facts`` with what the timeline knows of the turn."""
    duration_s = None if turn.ended is None else turn.ended - turn.began
    return ReplyFacts(
        turn.effect,
        facts.model or turn.model,
        facts.stop,
        turn.tokens or facts.usage,
        turn.settled_usd,
        turn.began,
        duration_s,
    )


def _result(effect: str, value: dict[str, Any], calls: list[str]) -> MessageBlock:
    number = int(effect.rpartition("-")[2]) if effect[-1:].isdigit() else 0
    call_id = calls[number - 1] if 0 < number <= len(calls) else ""
    failed = value.get("is_error") is True
    return MessageBlock(EventKind.RESULT, value["content"], call_id=call_id, is_error=failed)
