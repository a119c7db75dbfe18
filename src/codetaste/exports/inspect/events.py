"""Events of an Inspect sample: a span for each conversation and sub-agent, model calls and tool calls in it.

The input of a model call is what was new since the call before it. Long texts are attachments of the sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.core.units import format_iso_time
from codetaste.exports.inspect.messages import (
    add_to_reply,
    assistant_message,
    call_arguments,
    model_output,
    other_message,
)
from codetaste.transcripts.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.transcripts.event import ReplyFacts, TranscriptEvent

_ATTACHED_CHARS = 100
"""A longer text is an attachment, as in Inspect's own logs."""


@dataclass
class EventRecord:
    """Fields of a sample, as ``vars`` returns them: its events, and long texts in them by their hash."""

    events: list[dict[str, Any]] = field(default_factory=list)
    attachments: dict[str, str] = field(default_factory=dict)


class SampleEvents:
    """Makes the events of one sample."""

    def __init__(self, began: float) -> None:
        self.record = EventRecord()
        self._began = self._at = began

    def add_conversation(self, name: str, prefix: str, events: Iterable[TranscriptEvent]) -> None:
        """Add the events of a conversation, each agent's in a span of its own.

        Args:
            name: title of its span.
            prefix: begins the ids of its messages.
            events: in order.
        """
        spans: dict[str, _AgentSpan] = {}
        for event in events:
            self._at = event.at or self._at
            agent = spans.get(event.agent)
            if agent is None:
                span = f"{prefix}#{event.agent}" if event.agent else prefix
                agent = _AgentSpan(self, span, prefix)
                above = {"parent_id": prefix} if event.agent and "" in spans else {}
                spans[event.agent] = agent
                self.add(span, "span_begin", id=span, type="agent", name=event.agent or name, **above)
            agent.add(event)
        for agent in reversed(spans.values()):
            agent.end_reply()
            self.add(agent.id, "span_end", id=agent.id)

    def add(self, span: str, kind: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Add an event."""
        number = len(self.record.events) + 1
        self.record.events.append(
            {
                "uuid": f"{span}-event-{number}",
                "span_id": span,
                "timestamp": format_iso_time(self._at),
                "working_start": max(0.0, self._at - self._began),
                "event": kind,
                **fields,
            }
        )

    def attached(self, text: str) -> str:
        """Return a text, or the name under which it is attached if it is long."""
        if len(text) <= _ATTACHED_CHARS:
            return text
        name = sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
        self.record.attachments[name] = text
        return f"attachment://{name}"

    def with_attachments(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return a message whose long texts are attached: only where Inspect looks for them."""
        content = message["content"]
        if isinstance(content, str):
            return {**message, "content": self.attached(content)}
        parts = [
            {name: value if name == "type" else self.attached(value) for name, value in part.items()}
            for part in content
        ]
        return {**message, "content": parts}


class _AgentSpan:
    """The events of one agent in one conversation."""

    def __init__(self, sample: SampleEvents, span: str, prefix: str) -> None:
        self.id, self._prefix = span, prefix
        self._sample = sample
        self._input: list[dict[str, Any]] = []
        self._reply: dict[str, Any] | None = None
        self._facts: ReplyFacts | None = None
        self._turn = 0
        self._calls: dict[str, TranscriptEvent] = {}

    def add(self, event: TranscriptEvent) -> None:
        if event.kind.of_model:
            if self._reply is None or self._turn != event.turn:
                self.end_reply()
                self._reply, self._turn = assistant_message(self._prefix, event), event.turn
                self._facts = event.reply
            add_to_reply(self._reply, event)
            if event.kind is EventKind.CALL:
                self._calls[event.call_id] = event
            return
        self.end_reply()
        tools = {call_id: call.tool for call_id, call in self._calls.items()}
        message = other_message(self._prefix, event, tools)
        if message is not None:
            self._input.append(self._sample.with_attachments(message))
        if event.kind is EventKind.RESULT:
            self._tool(event)
        elif message is None:
            self._sample.add(self.id, "info", source=event.kind.value, data=self._sample.attached(event.text))

    def end_reply(self) -> None:
        if self._reply is None:
            return
        facts = self._facts
        self._sample.add(
            self.id,
            "model",
            model=facts.model if facts is not None and facts.model else "unknown",
            input=self._input,
            tools=[],
            tool_choice="auto",
            config={},
            output=model_output(self._reply, facts),
        )
        self._input, self._reply = [], None

    def _tool(self, event: TranscriptEvent) -> None:
        call = self._calls.pop(event.call_id, None)
        failed = {"error": {"type": "unknown", "message": event.text}} if event.is_error else {}
        self._sample.add(
            self.id,
            "tool",
            id=event.call_id,
            function=call.tool if call else "",
            arguments=call_arguments(call.text)[0] if call else {},
            result=event.text,
            **failed,
        )
