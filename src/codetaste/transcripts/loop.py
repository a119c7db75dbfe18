"""Events of a transcript of codetaste's own loop: model and system prompt, then one message a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.llm.codec import value_from_json
from codetaste.transcripts.blocks import MessageBlock, message_blocks
from codetaste.transcripts.event import EventCounter, EventKind, ReplyFacts
from codetaste.transcripts.record_lines import parse_object, record_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.transcripts.event import TranscriptEvent


def loop_events(path: Path) -> Iterator[TranscriptEvent]:
    """Yield the events of the file. Blocking."""
    events = EventCounter()
    turn, model, last_role = 0, "", ""
    for line in record_lines(path):
        written, problem = parse_object(line)
        message = _restored(written) if b'"$"' in line.data else written  # few values are tagged
        if message is None:
            if written is not None or problem:
                problem = problem or "this is no message"
                yield events.make(EventKind.PROBLEM, turn, f"line {line.number}: {problem}")
            continue
        if "role" not in message:
            model = model or str(message.get("model", ""))
            if isinstance(system := message.get("system"), str) and system:
                yield events.make(EventKind.SYSTEM, turn, system)
            continue
        role = message["role"]
        if role == "assistant":
            turn += 1
            yield from reply_events(events, turn, [*message_blocks(message)], ReplyFacts(model=model))
        else:
            if role == last_role == "user" and _is_answer_to_nothing(message):
                turn += 1
                yield from reply_events(events, turn, [], ReplyFacts(model=model))
            for block in message_blocks(message):
                yield block_event(events, turn, block)
        last_role = role


def reply_events(
    events: EventCounter, turn: int, blocks: list[MessageBlock], facts: ReplyFacts
) -> Iterator[TranscriptEvent]:
    """Yield the events of a reply; the first has the facts, and an empty reply is a note."""
    if not blocks:
        yield events.make(EventKind.NOTE, turn, "The reply is empty.", reply=facts)
    for number, block in enumerate(blocks):
        yield block_event(events, turn, block, None if number else facts)


def block_event(
    events: EventCounter, turn: int, block: MessageBlock, facts: ReplyFacts | None = None
) -> TranscriptEvent:
    """Return the event of a block."""
    return events.make(
        block.kind,
        turn,
        block.text,
        tool=block.tool,
        call_id=block.call_id,
        is_error=block.is_error,
        reply=facts,
    )


def _restored(written: dict[str, Any] | None) -> dict[str, Any] | None:
    try:
        value = value_from_json(written)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_answer_to_nothing(message: dict[str, Any]) -> bool:
    """Whether a user message answers a reply that was empty, which the loop does not write."""
    content = message.get("content")
    return isinstance(content, list) and all(
        isinstance(block, dict) and block.get("type") == "text" for block in content
    )
