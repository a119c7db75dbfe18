"""Events of a run for its page: the journal's lines that a person follows, each as one line of text."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, NamedTuple

from codetaste.core.text import printable
from codetaste.core.units import format_usd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.orchestration.journal.history import History

_MAX_TEXT = 300


class RunEvent(NamedTuple):
    """One event.

    Attributes:
        at: when it was written, in seconds of the epoch.
        kind: what happened, such as "started".
        job: the key of its job; "" if it concerns the run.
        text: what else is known, without control characters.
    """

    at: float
    kind: str
    job: str
    text: str


def event_of_line(line: Mapping[str, Any], history: History) -> RunEvent | None:
    """Return the event of a journal's line, which is part of ``history``; None if it has none."""
    text_of = _TEXTS.get(line["event"])
    if text_of is None:
        return None
    call = history.calls.get(line["call"]) if "call" in line else None
    job = line.get("key") or (call.key if call is not None else "")
    at = line.get("t")
    text = printable(text_of(line), _MAX_TEXT)
    kind = str(line["event"]).replace("_", " ")
    return RunEvent(float(at) if isinstance(at, int | float) else 0.0, kind, str(job), text)


def _dollars(text: str) -> str:
    try:
        return format_usd(Decimal(text))
    except InvalidOperation:
        return ""


def _ended(line: Mapping[str, Any]) -> str:
    parts = [str(line["status"]).replace("_", " "), line.get("cause"), line.get("error")]
    if shortfall := line.get("shortfall"):
        parts += [shortfall["name"].replace("_", " "), shortfall["text"]]
    return ": ".join(str(part) for part in parts if part)


_TEXTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "session": lambda line: f"process {line['pid']} on {line['host']}",
    "session_failed": lambda line: str(line["error"]),
    "drain": lambda line: str(line["reason"]),
    "note": lambda line: str(line["text"]),
    "limits": lambda _: "of the run changed",
    "capacity": lambda line: f"{line['resource']}: {line['capacity']:g}",
    "price": lambda line: f"{line['model']}: from {line['source']}",
    "started": lambda line: f"attempt {line['attempt']}",
    "retry": lambda line: f"attempt {line['attempt']}: {line['cause']}: {line['error']}",
    "call_retry": lambda line: f"{line['model']}: {line['cause']}: {line['error']}",
    "wait_started": lambda line: " ".join(filter(None, [str(line["reason"]), str(line["detail"])])),
    "resumed": lambda line: str(line["status"]),
    "rerun": lambda _: "",
    "ended": _ended,
    "settled": lambda line: f"{_dollars(line['usd'])}, {line['tokens']:,} tokens",
    "released": lambda _: "a call was not billed",
    "unknown": lambda _: "the cost of a call is unknown",
    "disputed": lambda line: f"{line['name']}: a call exceeded its reservation",
}
"""The text of an event, by the kind of line."""
