"""Messages of Inspect made of the events of one agent in one conversation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codetaste.transcripts.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.transcripts.event import ReplyFacts, TranscriptEvent

_STOPS = {
    "end": "stop",
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "refusal": "content_filter",
}


def messages_of(events: Iterable[TranscriptEvent], prefix: str) -> list[dict[str, Any]]:
    """Return the messages; notes, errors and problems are none. ``prefix`` begins their ids."""
    messages: list[dict[str, Any]] = []
    tools: dict[str, str] = {}
    turn = 0
    for event in events:
        if event.kind.of_model:
            if not messages or messages[-1]["role"] != "assistant" or turn != event.turn:
                messages.append(assistant_message(prefix, event))
            turn = event.turn
            add_to_reply(messages[-1], event)
            if event.kind is EventKind.CALL:
                tools[event.call_id] = event.tool
        elif (message := other_message(prefix, event, tools)) is not None:
            messages.append(message)
    return messages


def assistant_message(prefix: str, event: TranscriptEvent) -> dict[str, Any]:
    """Return the empty message of the reply that begins with ``event``."""
    model = {"model": event.reply.model} if event.reply is not None and event.reply.model else {}
    return {
        "id": f"{prefix}-{event.number}",
        "role": "assistant",
        "source": "generate",
        "content": [],
        **model,
        **_metadata(event),
    }


def add_to_reply(message: dict[str, Any], event: TranscriptEvent) -> None:
    """Add a part of a reply to its message."""
    match event.kind:
        case EventKind.CALL:
            message.setdefault("tool_calls", []).append(tool_call(event))
        case EventKind.REASONING:
            message["content"].append({"type": "reasoning", "reasoning": event.text})
        case _:
            message["content"].append({"type": "text", "text": event.text})


def other_message(prefix: str, event: TranscriptEvent, tools: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the message of an event that is no part of a reply; None if it is no message."""
    made: dict[str, Any] = {"id": f"{prefix}-{event.number}", "content": event.text}
    match event.kind:
        case EventKind.SYSTEM:
            made["role"] = "system"
        case EventKind.USER:
            made["role"] = "user"
            made["source"] = "input"
        case EventKind.RESULT:
            made["role"] = "tool"
            made["tool_call_id"] = event.call_id
            made["function"] = tools.get(event.call_id, "")
            if event.is_error:
                made["error"] = {"type": "unknown", "message": event.text}
        case _:
            return None
    return {**made, **_metadata(event)}


def tool_call(event: TranscriptEvent) -> dict[str, Any]:
    """Return a tool call; arguments that are no object have a parse error, with their text."""
    arguments, problem = call_arguments(event.text)
    made = {"id": event.call_id, "function": event.tool, "arguments": arguments, "type": "function"}
    return {**made, "parse_error": problem} if problem else made


def call_arguments(text: str) -> tuple[dict[str, Any], str]:
    """Return the arguments of a call as an object, or a problem with their text."""
    try:
        value = json.loads(text or "{}", parse_constant=str)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value, ""
    return {"text": text}, "the arguments are no JSON object"


def model_output(message: dict[str, Any], facts: ReplyFacts | None) -> dict[str, Any]:
    """Return the output of a model call whose reply is ``message``."""
    stop = _STOPS.get(facts.stop, "unknown") if facts is not None else "unknown"
    made: dict[str, Any] = {
        "model": facts.model if facts is not None else "",
        "choices": [{"message": message, "stop_reason": stop}],
    }
    if facts is not None and (usage := usage_of(facts)) is not None:
        made["usage"] = usage
    if facts is not None and facts.duration_s is not None:
        made["time"] = facts.duration_s
    return made


def usage_of(facts: ReplyFacts) -> dict[str, Any] | None:
    """Return tokens and cost of a reply, None if the tokens are unknown: Inspect would take them for 0."""
    if not facts.usage:
        return None
    usage = facts.usage
    counts = {kind: usage.get(kind, 0) for kind in ("input", "output", "cache_read", "cache_write")}
    made: dict[str, Any] = {
        "input_tokens": counts["input"],
        "output_tokens": counts["output"],
        "total_tokens": sum(counts.values()),
        "input_tokens_cache_read": counts["cache_read"],
        "input_tokens_cache_write": counts["cache_write"],
        "reasoning_tokens": usage.get("reasoning", 0),
    }
    return made if facts.cost_usd is None else {**made, "total_cost": float(facts.cost_usd)}


def add_usage(totals: dict[str, dict[str, Any] | None], model: str, usage: Mapping[str, Any] | None) -> None:
    """Add tokens and cost to the sum of a model, which is None if those of one reply are unknown."""
    total = totals.get(model, {})
    if total is None or usage is None:
        totals[model] = None
    else:
        totals[model] = {name: total.get(name, 0) + value for name, value in usage.items()}


def _metadata(event: TranscriptEvent) -> dict[str, Any]:
    return {"metadata": {"event": event.number, "turn": event.turn}}
