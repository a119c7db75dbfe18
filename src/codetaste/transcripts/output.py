"""Events of the output of a command-line agent: JSON lines of Claude Code, Qwen Code and Codex, or text.

The published harness stores a container's output as ``inference.out``, where releases of Codex print text:
its sections begin with lines such as ``exec`` and ``thinking``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from codetaste.core.text import shorten
from codetaste.transcripts.blocks import MessageBlock, content_text, message_blocks
from codetaste.transcripts.event import EventCounter, EventKind, ReplyFacts
from codetaste.transcripts.loop import block_event
from codetaste.transcripts.record_lines import parse_object, record_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.transcripts.event import TranscriptEvent

_MAX_TEXT_LINES = 500
"""Lines of text in one event."""
_SECTIONS = {
    "user": EventKind.USER,
    "codex": EventKind.TEXT,
    "thinking": EventKind.REASONING,
    "exec": EventKind.CALL,
    "file update": EventKind.CALL,
    "apply_patch": EventKind.CALL,
    "tokens used": EventKind.NOTE,
}
"""Lines before a section of Codex's text, and what the section is."""
_RAN = re.compile(r" in /[^\s']*(?: (?:succeeded|exited)|Cost|$)")
"""The end of a command in Codex's text; the output follows."""


def output_events(path: Path) -> Iterator[TranscriptEvent]:
    """Yield the events of the file. Blocking."""
    reader = _Reader()
    for line in record_lines(path):
        if line.data.startswith(b"{"):
            event, problem = parse_object(line)
            if event is not None and isinstance(event.get("type", event.get("role")), str):
                yield from reader.end_text()
                yield from reader.event(event)
                continue
            if event is None and problem:
                yield from reader.end_text()
                yield reader.events.make(EventKind.PROBLEM, reader.turn, f"line {line.number}: {problem}")
                continue
        if line.problem:
            yield reader.events.make(EventKind.PROBLEM, reader.turn, f"line {line.number}: {line.problem}")
        else:
            yield from reader.text(line.data.decode("utf-8", "replace"))
    yield from reader.end_text()


class _Reader:
    def __init__(self) -> None:
        self.events = EventCounter()
        self.turn = 0
        self._reply = ""
        self._agents: dict[str, str] = {}
        self._lines: list[str] = []
        self._section = EventKind.NOTE
        self._tool = ""

    def event(self, event: Mapping[str, Any]) -> Iterator[TranscriptEvent]:
        """Yield the events of a JSON line."""
        self.events.agent = self._agent(event.get("parent_tool_use_id"))
        match event:
            case {"type": "assistant" | "user" as role, "message": dict(message)}:
                yield from self._message({"role": role, **message})
            case {"type": "item.completed", "item": dict(item)}:
                yield from self._item(item)
            case {"type": "result" | "turn.completed" | "turn.failed" | "error" as kind}:
                yield from self._end(kind, event)
            case {"type": "codetaste", "bytes_left_out": int(count)}:
                text = f"{count:,} bytes of the output were not recorded."
                yield self.events.make(EventKind.PROBLEM, self.turn, text)
            case {"type": "system", "subtype": "compact_boundary"}:
                yield self.events.make(EventKind.NOTE, self.turn, "The agent has compacted its conversation.")
            case {"role": str()}:
                yield from self._message(event)

    def text(self, line: str) -> Iterator[TranscriptEvent]:
        """Take a line of text; yield the events that it ends."""
        if line in _SECTIONS:
            yield from self.end_text()
            self._section, self._tool = _SECTIONS[line], line
            return
        self._lines.append(line)
        if self._section is EventKind.CALL and self._tool == "exec" and _RAN.search(line):
            yield from self.end_text()
            self._section = EventKind.RESULT
        elif len(self._lines) >= _MAX_TEXT_LINES:
            section, tool = self._section, self._tool
            yield from self.end_text()
            self._section, self._tool = section, tool

    def end_text(self) -> Iterator[TranscriptEvent]:
        """Yield the event of the lines of text so far."""
        text, kind, tool = "\n".join(self._lines).strip("\n"), self._section, self._tool
        self._lines, self._section, self._tool = [], EventKind.NOTE, ""
        if text.strip():
            self.events.agent = ""
            self.turn += kind is EventKind.CALL or kind is EventKind.TEXT
            yield self.events.make(kind, self.turn, text, tool=tool if kind is EventKind.CALL else "")

    def _message(self, message: Mapping[str, Any]) -> Iterator[TranscriptEvent]:
        facts = None
        if message.get("role") == "assistant":
            reply = message.get("id")
            if not isinstance(reply, str) or reply != self._reply:  # an event has one block of a reply
                self.turn += 1
                facts = ReplyFacts(model=_text(message.get("model")), stop=_text(message.get("stop_reason")))
            self._reply = reply if isinstance(reply, str) else ""
        yield from self._blocks([*message_blocks(message)], facts)

    def _item(self, item: Mapping[str, Any]) -> Iterator[TranscriptEvent]:
        """Yield an item of Codex; its events do not say which reply they are of, so each is a turn."""
        blocks = [*message_blocks(item)]
        if item.get("type") != "reasoning" and any(block.kind.of_model for block in blocks):
            self.turn += self._reply != "reasoning"
        elif item.get("type") == "reasoning":
            self.turn += 1
        self._reply = "reasoning" if item.get("type") == "reasoning" else ""
        yield from self._blocks(blocks, None)

    def _blocks(self, blocks: list[MessageBlock], facts: ReplyFacts | None) -> Iterator[TranscriptEvent]:
        for block in blocks:
            yield block_event(self.events, self.turn, block, facts)
            facts = None

    def _end(self, kind: str, event: Mapping[str, Any]) -> Iterator[TranscriptEvent]:
        failed = kind in {"turn.failed", "error"} or event.get("is_error") is True
        details = (event.get("subtype"), event.get("message"), event.get("error"), event.get("result"))
        texts = [content_text(each) for each in details if each]
        text = shorten("\n".join([kind, *texts]), 20_000)
        yield self.events.make(EventKind.ERROR if failed else EventKind.NOTE, self.turn, text)

    def _agent(self, parent: object) -> str:
        if not isinstance(parent, str) or not parent:
            return ""
        return self._agents.setdefault(parent, f"sub-agent {len(self._agents) + 1}")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
