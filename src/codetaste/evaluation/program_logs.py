"""Tool calls in what a program printed: the events of Claude Code, Codex and Qwen Code, and Codex's words.

The published harness keeps what a container printed as ``inference.out``. Claude Code and Qwen Code print
events there, Codex what it shows to people. Lines of another shape are passed over.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

from codetaste.evaluation.tool_calls import ToolCall, tool_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MARKS = (b'"tool_use"', b'"item.completed"')
"""Words of which one stands in every event that matters."""
_EXEC, _EDIT = b"exec", b"file update"
"""What Codex says on a line of its own before a command, and before a patch."""
_IN_FOLDER = re.compile(r"(.*) in /[^\s']*(?: succeeded| exited|Cost|$)", re.DOTALL)
_LONGEST = 400
"""Lines that a command is followed over."""


def calls_in_output(lines: Iterable[bytes]) -> Iterator[ToolCall]:
    """Yield the calls that a program's output tells of."""
    pending: list[str] | None = None
    for raw in lines:
        line = raw.rstrip(b"\r\n")
        if line.startswith(b"{"):
            if any(mark in line for mark in _MARKS):
                yield from _in_event(line)
        elif line == _EXEC:
            pending = []
        elif line == _EDIT:
            yield ToolCall()
        elif pending is not None:
            pending.append(line.decode("utf-8", "replace"))
            command = _command("\n".join(pending)) if b" in /" in line else None
            if command is not None:
                yield ToolCall(shell=command)
            if command is not None or len(pending) >= _LONGEST:
                pending = None


def _in_event(line: bytes) -> Iterator[ToolCall]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(event, dict):
        kind = event.get("type")
        if kind == "assistant":
            yield from tool_calls(event.get("message"))
        elif kind == "item.completed":
            yield from tool_calls(event.get("item"))


def _command(text: str) -> str | None:
    """Return the command of what Codex says of it, None where its quotes are still open."""
    found = _IN_FOLDER.match(text)
    if found is None:
        return None
    try:
        shlex.split(found[1])
    except ValueError:
        return None
    return found[1]
