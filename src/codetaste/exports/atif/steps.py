"""Steps of ATIF made of the events of one agent in one conversation.

What the format cannot hold: several blocks of reasoning in one reply become one, and arguments of a call have
their value but not their spacing.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.core.units import format_iso_time
from codetaste.transcripts.atif import EXTRA
from codetaste.transcripts.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codetaste.transcripts.event import ReplyFacts, TranscriptEvent

_SOURCES = {EventKind.USER: "user"}
_MAX_EXACT = 2**53


@dataclass(slots=True)
class _Reply:
    """The step of a reply, while its events and the results of its calls come."""

    turn: int
    texts: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    places: list[list[Any]] = field(default_factory=list)
    facts: ReplyFacts | None = None
    at: float | None = None
    kind: str = ""

    def add(self, event: TranscriptEvent) -> None:
        """Add a part of the reply."""
        self.at = event.at if self.at is None else self.at
        self.facts = self.facts or event.reply
        self.places.append([event.number, event.kind.value])
        if event.kind is EventKind.CALL:
            self.calls.append(_call(event))
        elif event.kind is EventKind.REASONING:
            self.reasoning.append(event.text)
        else:
            self.texts.append(event.text)

    def takes_result(self, call_id: str) -> bool:
        """Whether a result is of a call of this reply."""
        return bool(call_id) and any(call["tool_call_id"] == call_id for call in self.calls)

    def step(self) -> dict[str, Any]:
        """Return the step, without its number."""
        made: dict[str, Any] = {"source": "agent", **_timestamp(self.at)}
        if self.facts is not None and self.facts.model:
            made["model_name"] = self.facts.model
        parts = [{"type": "text", "text": text} for text in self.texts]
        made["message"] = parts if len(parts) > 1 else "".join(self.texts)
        if self.reasoning:
            made["reasoning_content"] = "\n\n".join(self.reasoning)
        if self.calls:
            made["tool_calls"] = self.calls
        if self.results:
            made["observation"] = {"results": self.results}
        extra: dict[str, Any] = {"turn": self.turn, "places": self.places}
        if self.kind:
            extra["kind"] = self.kind
        if self.facts is not None:
            made["metrics"] = _metrics(self.facts)
            made["llm_call_count"] = 1
        return {**made, "extra": {EXTRA: extra}}


def steps_of(events: Iterable[TranscriptEvent]) -> Iterator[dict[str, Any]]:
    """Yield the steps of the events of one agent, numbered from 1, as JSON data.

    A result belongs to the step of its call if that is the step before it; otherwise it has its own step.
    """
    for number, step in enumerate(_unnumbered(events), 1):
        yield {"step_id": number, **step}


def _unnumbered(events: Iterable[TranscriptEvent]) -> Iterator[dict[str, Any]]:
    reply: _Reply | None = None
    for event in events:
        if event.kind.of_model and reply is not None and reply.turn == event.turn and not reply.kind:
            reply.add(event)
            continue
        if event.kind is EventKind.RESULT and reply is not None and reply.takes_result(event.call_id):
            reply.results.append({"source_call_id": event.call_id, **_result(event)})
            continue
        if reply is not None:
            yield reply.step()
            reply = None
        if event.kind.of_model or event.reply is not None:
            reply = _Reply(event.turn, kind="" if event.kind.of_model else event.kind.value)
            reply.add(event)
        else:
            yield _message(event)
    if reply is not None:
        yield reply.step()


def _message(event: TranscriptEvent) -> dict[str, Any]:
    """Return the step of an event that is no part of a reply."""
    extra: dict[str, Any] = {"turn": event.turn, "places": [[event.number, event.kind.value]]}
    made: dict[str, Any] = {"source": _SOURCES.get(event.kind, "system"), **_timestamp(event.at)}
    if event.kind is EventKind.RESULT:
        made |= {"message": "", "observation": {"results": [_result(event)]}}
        extra["call_id"] = event.call_id
    else:
        made["message"] = event.text
    if event.kind not in {EventKind.USER, EventKind.SYSTEM}:
        extra["kind"] = event.kind.value
    return {**made, "extra": {EXTRA: extra}}


def _call(event: TranscriptEvent) -> dict[str, Any]:
    arguments, exact = _arguments(event.text)
    made: dict[str, Any] = {
        "tool_call_id": event.call_id or f"call-{event.number}",
        "function_name": event.tool,
        "arguments": arguments,
    }
    extra: dict[str, Any] = {} if exact else {"arguments": event.text}
    if not event.call_id:
        extra["no_id"] = True
    return {**made, "extra": {EXTRA: extra}} if extra else made


def _arguments(text: str) -> tuple[dict[str, Any], bool]:
    """Return the arguments of a call as an object, and whether that is all that the text says."""
    try:
        value = json.loads(text)
        if isinstance(value, dict) and _is_plain(value):
            return value, True
    except (ValueError, RecursionError):
        pass
    return {}, False


def _is_plain(value: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether any JSON reader gets the same value."""
    match value:
        case float():
            return math.isfinite(value)
        case bool() | None | str():
            return True
        case int():
            return -_MAX_EXACT < value < _MAX_EXACT
        case list():
            return all(map(_is_plain, value))
        case _:
            return all(map(_is_plain, value.values()))


def _result(event: TranscriptEvent) -> dict[str, Any]:
    extra: dict[str, Any] = {"event": event.number, "turn": event.turn}
    if event.is_error:
        extra["is_error"] = True
    if event.at is not None:
        extra["at"] = format_iso_time(event.at)
    return {"content": event.text, "extra": {EXTRA: extra}}


def _metrics(facts: ReplyFacts) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    made: dict[str, Any] = {}
    if (usage := facts.usage) is not None:
        prompt = sum(usage.get(kind, 0) for kind in ("input", "cache_read", "cache_write"))
        made |= {"prompt_tokens": prompt, "completion_tokens": usage.get("output", 0)}
        made["cached_tokens"] = usage.get("cache_read", 0)
        extra["usage"] = dict(usage)
    if facts.cost_usd is not None:
        made["cost_usd"] = float(facts.cost_usd)
        extra["cost_usd"] = str(facts.cost_usd)
    for name in ("effect", "model", "stop"):
        if value := getattr(facts, name):
            extra[name] = value
    if facts.sent_at is not None:
        extra["sent_at"] = format_iso_time(facts.sent_at)
    if facts.duration_s is not None:
        extra["duration_s"] = facts.duration_s
    return {**made, "extra": {EXTRA: extra}}


def _timestamp(at: float | None) -> dict[str, str]:
    return {} if at is None else {"timestamp": format_iso_time(at)}
