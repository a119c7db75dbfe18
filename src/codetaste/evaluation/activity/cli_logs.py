"""Tool calls in the output of CLI agents: JSON events of Claude Code, Codex and Qwen Code, and Codex's text.

The published harness stores a container's output as ``inference.out``. Claude Code and Qwen Code print events
there, Codex human-readable text. Other lines are skipped.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

from codetaste.evaluation.activity.tool_calls import CountedToolCall, tool_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_EVENT_MARKS = (b'"tool_use"', b'"item.completed"')
"""Each relevant event contains one of these."""
_EXEC, _EDIT = b"exec", b"file update"
"""Lines that Codex prints before a command and before a patch."""
_IN_FOLDER = re.compile(r"(.*) in /[^\s']*(?: succeeded| exited|Cost|$)", re.DOTALL)
_MAX_COMMAND_LINES = 400
"""A longer command in Codex's text is dropped."""


def calls_in_output(lines: Iterable[bytes]) -> Iterator[CountedToolCall]:
    """Yield the tool calls in the output of a CLI agent."""
    pending: list[str] | None = None
    for raw in lines:
        line = raw.rstrip(b"\r\n")
        if line.startswith(b"{"):
            if any(mark in line for mark in _EVENT_MARKS):
                yield from _calls_in_event(line)
        elif line == _EXEC:
            pending = []
        elif line == _EDIT:
            yield CountedToolCall()
        elif pending is not None:
            pending.append(line.decode("utf-8", "replace"))
            command = _codex_command("\n".join(pending)) if b" in /" in line else None
            if command is not None:
                yield CountedToolCall(shell_text=command)
            if command is not None or len(pending) >= _MAX_COMMAND_LINES:
                pending = None


def _calls_in_event(line: bytes) -> Iterator[CountedToolCall]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return
    match event:
        case {"type": "assistant", "message": message}:
            yield from tool_calls(message)
        case {"type": "item.completed", "item": item}:
            yield from tool_calls(item)


def _codex_command(text: str) -> str | None:
    """Return the command in Codex's text, None while its quotes are still open."""
    found = _IN_FOLDER.match(text)
    if found is None:
        return None
    try:
        shlex.split(found[1])
    except ValueError:
        return None
    return found[1]
