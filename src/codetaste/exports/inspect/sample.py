"""A sample of an Inspect log: one trial, with the messages of the conversation that made its patch."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.core.units import format_iso_time
from codetaste.exports.inspect.events import SampleEvents
from codetaste.exports.inspect.messages import add_usage, messages_of, usage_of
from codetaste.exports.trial import safe_name
from codetaste.results.outcome import OutcomeFacet
from codetaste.transcripts.event import EventKind
from codetaste.transcripts.read import read_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codetaste.exports.trial import ExportedTrial
    from codetaste.transcripts.event import RecordedConversation, TranscriptEvent

_ERRORS = frozenset({OutcomeFacet.INFRASTRUCTURE_ERROR, OutcomeFacet.UNREADABLE})
_MAX_SUMMARY_CHARS = 1024


def make_sample(trial: ExportedTrial) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the sample of a trial and its summary, as JSON data. Blocking."""
    usage: dict[str, dict[str, Any] | None] = {}
    began, ended = _span(trial)
    events = SampleEvents(began)
    messages: list[dict[str, Any]] = []
    task, turns = "", 0
    for each in trial.conversations:
        found = [*_counted(read_events(each, trial.journal), usage)]
        prefix = sha256(each.name.encode("utf-8", "replace")).hexdigest()[:8]
        events.add_conversation(_title(each), prefix, found)
        if each is trial.main:
            own = [event for event in found if not event.agent]
            messages = messages_of(own, prefix)
            task = next((event.text for event in own if event.kind is EventKind.USER), "")
            turns = max((event.turn for event in own), default=0)
    unknown = [model for model, total in usage.items() if total is None or trial.has_unknown_calls]
    sample: dict[str, Any] = {
        "id": sample_id(trial),
        "epoch": trial.attempt,
        "input": task,
        "target": "",
        "messages": messages,
        "output": _output(trial, messages),
        "scores": _scores(trial),
        "metadata": {**_metadata(trial), "unknown_usage": unknown},
        **vars(events.record),
        "model_usage": {model: total for model, total in usage.items() if model not in unknown},
        "turn_count": turns,
        **_times(trial, began, ended),
        **_ending(trial, turns),
    }
    return sample, _summary(sample)


def sample_id(trial: ExportedTrial) -> str:
    """Return the id of the instance: part of the name of a file in the log, so without folders."""
    return safe_name(trial.instance) if "/" in trial.instance else trial.instance


def _scores(trial: ExportedTrial) -> dict[str, dict[str, Any]]:
    """Return the scores that were measured; of a trial that failed those are 0."""
    return {
        name: {"value": value, "explanation": trial.facet.label}
        for name, value in trial.scores.items()
        if value is not None
    }


def _metadata(trial: ExportedTrial) -> dict[str, Any]:
    """Return what Inspect has no field for."""
    return {
        "outcome": trial.facet.value,
        "message": trial.message,
        "run": trial.run,
        "agent": trial.agent,
        "setting": trial.setting,
        "harness": trial.harness,
        "cost_usd": trial.cost_usd,
        "not_measured": [name for name, value in trial.scores.items() if value is None],
        **trial.details,
    }


def _counted(
    events: Iterable[TranscriptEvent], usage: dict[str, dict[str, Any] | None]
) -> Iterator[TranscriptEvent]:
    """Yield the events, and add the tokens and costs of their replies to the sums by model."""
    for event in events:
        if event.reply is not None:
            add_usage(usage, event.reply.model or "unknown", usage_of(event.reply))
        yield event


def _title(conversation: RecordedConversation) -> str:
    again = f"attempt {conversation.attempt}" if conversation.attempt > 1 else ""
    return " ".join(filter(None, (conversation.step, conversation.part, again)))


def _span(trial: ExportedTrial) -> tuple[float, float | None]:
    """Return when the trial began and ended, in seconds of the epoch; 0 and None if that is unknown."""
    timelines = trial.timelines
    began = min((each.began for each in timelines if each.attempts), default=0.0)
    ends = [each.ended for each in timelines]
    known = [end for end in ends if end is not None]
    return began, max(known) if known and len(known) == len(ends) else None


def _times(trial: ExportedTrial, began: float, ended: float | None) -> dict[str, Any]:
    made: dict[str, Any] = {"started_at": format_iso_time(began)} if began else {}
    if ended is not None:
        made["completed_at"] = format_iso_time(ended)
    if trial.time_s is not None:
        made["total_time"] = trial.time_s
        waited_s = sum(each.waited_s(ended or began, since=each.began) for each in trial.timelines)
        made["working_time"] = max(0.0, trial.time_s - waited_s)
    return made


def _ending(trial: ExportedTrial, turns: int) -> dict[str, Any]:
    """Return the limit that ended a trial, or the error; a mistake of its agent is neither."""
    if trial.facet in _ERRORS:
        text = trial.message or trial.facet.label
        return {"error": {"message": text, "traceback": "", "traceback_ansi": ""}}
    limits = {
        OutcomeFacet.TIMEOUT: ("time", trial.time_s),
        OutcomeFacet.BUDGET_EXCEEDED: ("cost", trial.cost_usd),
        OutcomeFacet.MAX_TURNS: ("turn", float(turns)),
    }
    if trial.facet in limits:
        kind, reached = limits[trial.facet]
        return {"limit": {"type": kind, "limit": reached or 0.0, "reason": trial.message}}
    return {}


def _output(trial: ExportedTrial, messages: list[dict[str, Any]]) -> dict[str, Any]:
    last = next((each for each in reversed(messages) if each["role"] == "assistant"), None)
    if last is None:
        return {"model": trial.model, "choices": [], "completion": ""}
    stop = "content_filter" if trial.facet is OutcomeFacet.REFUSED else "stop"
    texts = [part["text"] for part in last["content"] if part["type"] == "text"]
    choice = {"message": last, "stop_reason": stop}
    return {"model": trial.model, "choices": [choice], "completion": "".join(texts)}


def _summary(sample: dict[str, Any]) -> dict[str, Any]:
    same = ("id", "epoch", "target", "scores", "metadata", "model_usage", "turn_count")
    times = ("started_at", "completed_at", "total_time", "working_time")
    error, limit = sample.get("error"), sample.get("limit")
    return {
        **{name: sample[name] for name in same},
        **{name: sample[name] for name in times if name in sample},
        "input": sample["input"][:_MAX_SUMMARY_CHARS],
        "error": error["message"] if error else None,
        "limit": limit["type"] if limit else None,
        "limit_reason": limit["reason"] if limit else None,
        "completed": sample["metadata"]["outcome"] != OutcomeFacet.NOT_ENDED.value,
        "message_count": len(sample["messages"]),
    }
