"""The log line of each kind of event: names and numbers, never a prompt, a reply or a key."""

from __future__ import annotations

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
    WaitEnded,
    WaitStarted,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.orchestration.events import Event
    from codetaste.orchestration.wait import Wait

_MAX_TEXT = 1000


class LogLine(NamedTuple):
    """One line of a log: its level, the job ("" for none), the event's name, and its fields."""

    level: str
    key: str
    event: str
    fields: dict[str, Any]


def log_line(event: Event) -> LogLine | None:
    """Return the log line of ``event``; None where it has none."""
    make_line = _LINES.get(type(event))
    return None if make_line is None else make_line(event)


def _finished(event: JobFinished) -> LogLine | None:
    if event.resumed:
        return None  # it is in the log of the earlier session
    cost = event.cost
    fields = {
        "status": str(event.status),
        "cause": event.cause and event.cause.value,
        "error": event.error[:_MAX_TEXT] or None,
        "settled_usd": format(cost.settled.usd, "f"),
        "unknown_usd": format(cost.unknown.usd, "f"),
        "wall_s": round(cost.wall_s, 3),
        "waited_s": round(cost.waited_s, 3),
    }
    return LogLine("error" if event.status == "failed" else "info", event.key, "finished", fields)


def _retrying(event: JobRetrying) -> LogLine:
    fields = {
        "cause": event.cause.value,
        "error": event.error[:_MAX_TEXT],
        "delay_s": round(event.delay_s, 3),
    }
    return LogLine("warning", event.key, "retrying", fields)


def _answered(event: CallAnswered) -> LogLine:
    fields = {
        "model": event.model,
        "call": event.call,
        "duration_s": round(event.duration_s, 3),
        "usage": dict(event.usage),
        "usd": None if event.usd is None else format(event.usd, "f"),
        "request_id": event.request_id,
    }
    return LogLine("info", event.key, "call_answered", fields)


def _call_failed(event: CallFailed) -> LogLine:
    fields = {
        "model": event.model,
        "call": event.call,
        "duration_s": round(event.duration_s, 3),
        "cause": event.cause.value,
        "error": event.error[:_MAX_TEXT],
    }
    return LogLine("warning", event.key, "call_failed", fields)


def _call_retrying(event: CallRetrying) -> LogLine:
    fields = {"model": event.model, "cause": event.cause.value, "delay_s": round(event.delay_s, 3)}
    return LogLine("warning", event.key, "call_retrying", fields)


def _wait(wait: Wait) -> dict[str, Any]:
    return {"reason": wait.reason.value, "detail": wait.detail or None}


def _tool(event: ToolCalled) -> LogLine:
    fields = {"tool": event.tool[:_MAX_TEXT], "name": event.name, "duration_s": round(event.duration_s, 3)}
    return LogLine("info", event.key, "tool_called", {**fields, "failed": event.failed})


_LINES: dict[type, Callable[[Any], LogLine | None]] = {
    JobStarted: lambda event: LogLine("info", event.key, "started", {}),
    JobRetrying: _retrying,
    JobFinished: _finished,
    WaitStarted: lambda event: LogLine("info", event.key, "wait_started", _wait(event.wait)),
    WaitEnded: lambda event: LogLine(
        "info", event.key, "wait_ended", _wait(event.wait) | {"waited_s": event.waited_s}
    ),
    CallSent: lambda event: LogLine(
        "info", event.key, "call_sent", {"model": event.model, "call": event.call}
    ),
    CallAnswered: _answered,
    CallFailed: _call_failed,
    CallRetrying: _call_retrying,
    ToolCalled: _tool,
    Note: lambda event: LogLine("info", event.key, "note", {"text": event.text[:_MAX_TEXT]}),
    Draining: lambda event: LogLine("warning", "", "draining", {"why": event.why, "grace_s": event.grace_s}),
}
