"""The log line of each kind of event: names and numbers, never a prompt, a reply or a key."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from codetaste.orchestration.events import (
    CallAnswered,
    CallFailed,
    CallRetrying,
    CallSent,
    Draining,
    JobFinished,
    JobRetrying,
    JobStarted,
    Note,
    ToolCalled,
    ToolRaised,
    WaitEnded,
    WaitStarted,
)
from codetaste.orchestration.job import Status
from codetaste.report.ending import ending_of

if TYPE_CHECKING:
    from codetaste.orchestration.events import Event

_MAX_TEXT = 1000
_MAX_TRACEBACK = 20_000


class LogLine(NamedTuple):
    """One line of a log: its level, the job ("" for none), the event's name, and its fields."""

    level: str
    key: str
    event: str
    fields: dict[str, Any]


def log_line(event: Event) -> LogLine | None:
    """Return the log line of ``event``; None where it has none."""
    match event:
        case JobFinished():
            return None if event.resumed else _finished(event)  # it is in the log of the earlier session
        case ToolRaised():
            trace = event.traceback[-_MAX_TRACEBACK:]
            raised = {"tool": event.tool, "name": event.name, "traceback": trace}
            return LogLine("error", event.key, "tool_raised", raised)
        case WaitStarted() | WaitEnded():
            wait = {"reason": event.wait.reason.value, "detail": event.wait.detail or None}
            if isinstance(event, WaitStarted):
                return LogLine("info", event.key, "wait_started", wait)
            return LogLine("info", event.key, "wait_ended", {**wait, "waited_s": event.waited_s})
    kind = _KINDS.get(type(event))
    if kind is None:
        return None
    level, name, fields = kind
    values = {field: _value(getattr(event, field)) for field in fields}
    return LogLine(level, getattr(event, "key", ""), name, values)


def _finished(event: JobFinished) -> LogLine:
    cost, ending = event.cost, ending_of(Status(event.status), event.shortfall, event.error)
    fields = {
        "status": str(event.status),
        "ending": ending.name,
        "reason": ending.reason[:_MAX_TEXT] or None,
        "cause": event.cause and event.cause.value,
        "error": event.error[:_MAX_TEXT] or None,
        "settled_usd": format(cost.settled.usd, "f"),
        "unknown_usd": format(cost.unknown.usd, "f"),
        "wall_s": round(cost.wall_s, 3),
        "waited_s": round(cost.waited_s, 3),
    }
    level = "error" if event.status == Status.FAILED else "info" if ending.well else "warning"
    return LogLine(level, event.key, "finished", fields)


def _value(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a field of an event as JSON: exact dollars, milliseconds, and texts of limited length."""
    match value:
        case Decimal():
            return format(value, "f")
        case float():
            return round(value, 3)
        case str():
            return str(value)[:_MAX_TEXT]
        case Mapping():
            return dict(value)
        case _:
            return value


_KINDS: dict[type, tuple[str, str, tuple[str, ...]]] = {
    JobStarted: ("info", "started", ()),
    JobRetrying: ("warning", "retrying", ("cause", "error", "delay_s")),
    CallSent: ("info", "call_sent", ("model", "call")),
    CallAnswered: ("info", "call_answered", ("model", "call", "duration_s", "usage", "usd", "request_id")),
    CallFailed: ("warning", "call_failed", ("model", "call", "duration_s", "cause", "error")),
    CallRetrying: ("warning", "call_retrying", ("model", "cause", "delay_s")),
    ToolCalled: ("info", "tool_called", ("tool", "name", "duration_s", "failed")),
    Note: ("info", "note", ("text",)),
    Draining: ("warning", "draining", ("reason", "grace_s")),
}
"""Level, name and fields of the line of an event."""
