"""Read trajectories in ATIF of any writer as events; what is ours comes back as it was."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from codetaste.core.files import read_regular_file
from codetaste.core.text import printable, replace_surrogates
from codetaste.core.units import parse_iso_time
from codetaste.errors import ConfigError
from codetaste.transcripts.blocks import as_list, content_text, json_text
from codetaste.transcripts.event import EventKind, ReplyFacts, TranscriptEvent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MAX_FILE_BYTES = 512 * 1024**2
EXTRA = "codetaste"
"""The field of ``extra`` that has what ATIF has no field for."""
_PREFIX = "ATIF-"


@dataclass(frozen=True, slots=True)
class AtifTrajectory:
    """One trajectory: its id, its agent and model as they name themselves, and its events."""

    id: str
    agent: str
    version: str
    model: str
    events: tuple[TranscriptEvent, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)


def read_atif(path: Path) -> tuple[AtifTrajectory, ...]:
    """Return the trajectory of a file, and those that are embedded in it, after it. Blocking.

    Raises:
        ConfigError: the file cannot be read, or is no ATIF trajectory.
    """
    shown = printable(str(path))
    try:
        data = json.loads(read_regular_file(path, MAX_FILE_BYTES))
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise ConfigError(f"{shown}: is no JSON") from None
    if not isinstance(data, dict) or not str(data.get("schema_version", "")).startswith(_PREFIX):
        raise ConfigError(f'{shown}: is no ATIF trajectory: "schema_version" names none')
    found = _trajectories(data)
    if not found:
        raise ConfigError(f'{shown}: is no ATIF trajectory: "steps" is no list')
    return tuple(found)


def atif_events(path: Path) -> Iterator[TranscriptEvent]:
    """Yield the events of a file, then those of its embedded trajectories as of sub-agents. Blocking.

    A file that cannot be read is an event of the kind ``PROBLEM``.
    """
    try:
        main, *embedded = read_atif(path)
    except ConfigError as error:
        text = str(error).removeprefix(f"{printable(str(path.parent))}/")
        yield TranscriptEvent(1, EventKind.PROBLEM, 0, text)
        return
    yield from main.events
    number = max((event.number for event in main.events), default=0)
    turn = max((event.turn for event in main.events), default=0)
    for place, each in enumerate(embedded, 1):
        agent = each.id or each.agent or f"sub-agent {place}"
        for event in each.events:
            number += 1
            yield replace(event, number=number, turn=turn, agent=event.agent or agent)


def _trajectories(data: Mapping[str, Any]) -> list[AtifTrajectory]:
    pending, found = [data], list[AtifTrajectory]()
    while pending:
        each = pending.pop(0)
        if isinstance(each.get("steps"), list):
            found.append(_trajectory(each))
        pending += [sub for sub in as_list(each.get("subagent_trajectories")) if isinstance(sub, dict)]
    return found


def _trajectory(data: Mapping[str, Any]) -> AtifTrajectory:
    agent = _object(data.get("agent"))
    model = _text(agent.get("model_name"))
    reader = _Reader(model, _text(_own(data).get("agent")))
    events = [event for step in data["steps"] if isinstance(step, dict) for event in reader.events(step)]
    events.sort(key=lambda event: event.number)
    return AtifTrajectory(
        _text(data.get("trajectory_id")) or _text(data.get("session_id")),
        _text(agent.get("name")),
        _text(agent.get("version")),
        model,
        tuple(events),
        _object(data.get("extra")),
    )


class _Reader:
    def __init__(self, model: str, agent: str) -> None:
        self._model, self._agent = model, agent
        self._number = self._turn = 0

    def events(self, step: Mapping[str, Any]) -> Iterator[TranscriptEvent]:
        """Yield the events of a step in any order; their numbers say which comes first."""
        own, at = _own(step), parse_iso_time(step.get("timestamp"))
        if own.get("others") is True:
            return
        if step.get("source") == "agent":
            self._turn = _count(own.get("turn"), self._turn + 1)
            yield from self._reply(step, own, at)
        else:
            self._turn = _count(own.get("turn"), self._turn)
            text, results = step.get("message"), _results(step)
            default = EventKind.USER if step.get("source") == "user" else EventKind.SYSTEM
            if not (results and not text):
                kind = _kind(own.get("kind"), default)
                yield self._event(_numbers(own).get(kind, []), kind, content_text(text), at=at)
        yield from self._results(step, own)

    def _reply(
        self, step: Mapping[str, Any], own: Mapping[str, Any], at: float | None
    ) -> Iterator[TranscriptEvent]:
        numbers, facts = _numbers(own), self._facts(step)
        made: list[TranscriptEvent] = []
        if isinstance(reasoning := step.get("reasoning_content"), str):
            places = numbers.get(EventKind.REASONING, [])
            if reasoning or places:
                made.append(self._event(places, EventKind.REASONING, reasoning, at=at))
        kind = _kind(own.get("kind"), EventKind.TEXT)
        message = step.get("message")
        for part in message if isinstance(message, list) else [message]:
            text = content_text([part]) if isinstance(part, dict) else _text(part)
            if text or numbers.get(kind):
                made.append(self._event(numbers.get(kind, []), kind, text, at=at))
        places = numbers.get(EventKind.CALL, [])
        calls = (each for each in as_list(step.get("tool_calls")) if isinstance(each, dict))
        made += [self._call(places, call, at) for call in calls]
        if made:
            first = min(range(len(made)), key=lambda place: made[place].number)
            made[first] = replace(made[first], reply=facts)
        yield from made

    def _call(self, numbers: list[int], call: Mapping[str, Any], at: float | None) -> TranscriptEvent:
        own = _own(call)
        text = own.get("arguments")
        arguments = text if isinstance(text, str) else json_text(call.get("arguments"))
        call_id = "" if own.get("no_id") is True else _text(call.get("tool_call_id"))
        name = _text(call.get("function_name"))
        return self._event(numbers, EventKind.CALL, arguments, at=at, tool=name, call_id=call_id)

    def _results(self, step: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[TranscriptEvent]:
        for result in _results(step):
            extra = _own(result)
            turn, self._turn = self._turn, _count(extra.get("turn"), self._turn)
            number = extra.get("event")
            yield self._event(
                [number] if type(number) is int else [],
                EventKind.RESULT,
                content_text(result["content"]) if result.get("content") is not None else "",
                at=parse_iso_time(extra.get("at")),
                call_id=_text(result.get("source_call_id")) or _text(own.get("call_id")),
                is_error=extra.get("is_error") is True,
            )
            self._turn = turn

    def _event(
        self,
        numbers: list[int],
        kind: EventKind,
        text: str,
        *,
        at: float | None,
        tool: str = "",
        call_id: str = "",
        is_error: bool = False,
    ) -> TranscriptEvent:
        self._number = numbers.pop(0) if numbers else self._number + 1
        text = str(replace_surrogates(text))
        return TranscriptEvent(self._number, kind, self._turn, text, tool, call_id, is_error, self._agent, at)

    def _facts(self, step: Mapping[str, Any]) -> ReplyFacts | None:
        metrics = step.get("metrics")
        if not isinstance(metrics, dict):
            return None
        own = _own(metrics)
        cost = own.get("cost_usd", metrics.get("cost_usd"))
        duration_s = own.get("duration_s")
        return ReplyFacts(
            _text(own.get("effect")),
            _text(own.get("model")) or _text(step.get("model_name")) or ("" if own else self._model),
            _text(own.get("stop")),
            _usage(own.get("usage"), metrics),
            _dollars(cost),
            parse_iso_time(own.get("sent_at")),
            float(duration_s) if isinstance(duration_s, int | float) else None,
        )


def _usage(own: object, metrics: Mapping[str, Any]) -> dict[str, int] | None:
    if isinstance(own, dict):
        return {str(kind): count for kind, count in own.items() if type(count) is int}
    prompt, output = (_count(metrics.get(name), -1) for name in ("prompt_tokens", "completion_tokens"))
    if prompt < 0 and output < 0:
        return None
    cached = min(_count(metrics.get("cached_tokens"), 0), max(prompt, 0))
    return {"input": max(prompt, 0) - cached, "cache_read": cached, "output": max(output, 0)}


def _dollars(value: object) -> Decimal | None:
    try:
        usd = Decimal(str(value)) if isinstance(value, str | int | float) else None
    except InvalidOperation:
        return None
    return usd if usd is not None and usd.is_finite() and usd >= 0 else None


def _results(step: Mapping[str, Any]) -> list[dict[str, Any]]:
    results = as_list(_object(step.get("observation")).get("results"))
    return [result for result in results if isinstance(result, dict)]


def _numbers(own: Mapping[str, Any]) -> dict[EventKind, list[int]]:
    """Return the numbers of the events of a step by kind."""
    found: dict[EventKind, list[int]] = {}
    for place in as_list(own.get("places")):
        match place:
            case [int(number), str(kind)] if kind in set(EventKind):
                found.setdefault(EventKind(kind), []).append(number)
    return found


def _kind(value: object, default: EventKind) -> EventKind:
    return EventKind(value) if isinstance(value, str) and value in set(EventKind) else default


def _own(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object(_object(data.get("extra")).get(EXTRA))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return str(replace_surrogates(value)) if isinstance(value, str) else ""


def _count(value: object, default: int) -> int:
    return value if type(value) is int and value >= 0 else default
