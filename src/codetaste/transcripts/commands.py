"""Shell commands that an agent ran, with what they printed, as its conversation was recorded.

Calls are those of recorded replies. Results are as reliable as what reports them: those of codetaste's own
loop come from the sandbox; a command-line agent's program sends its own, and may send two for one call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.evaluation.activity.tool_calls import shell_text
from codetaste.transcripts.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.transcripts.event import TranscriptEvent


@dataclass(frozen=True, slots=True)
class RecordedCommand:
    """A command and what it printed; ``ambiguous`` if the agent's program has sent two results of it."""

    command: str
    output: str
    ambiguous: bool = False


def recorded_commands(events: Iterable[TranscriptEvent], max_chars: int) -> Sequence[RecordedCommand]:
    """Return the commands of a conversation that have a result, up to ``max_chars`` characters."""
    pending: dict[tuple[str, str], str] = {}
    found: list[tuple[tuple[str, str], str, str]] = []
    ambiguous = set[tuple[str, str]]()
    for event in events:
        key = event.agent, event.call_id
        if event.kind is EventKind.CALL and not event.from_client:
            if command := shell_command(event):
                pending[key] = command
        elif event.kind is EventKind.RESULT and key in pending and max_chars > 0:
            found.append((key, pending.pop(key), printed_text(event.text)))
            max_chars -= len(found[-1][1]) + len(found[-1][2])
        elif event.kind is EventKind.NOTE and event.call_id:
            ambiguous.add(key)
    return [RecordedCommand(command, output, key in ambiguous) for key, command, output in found]


def shell_command(event: TranscriptEvent) -> str:
    """Return the shell command of a call, "" if it is of another tool."""
    return shell_text(event.tool, event.text) or ""


def printed_text(result: str) -> str:
    """Return what a command printed: Codex sends it as JSON with an output."""
    if result.startswith('{"output"'):
        try:
            inner = json.loads(result).get("output")
        except (ValueError, RecursionError, AttributeError):
            inner = None
        if isinstance(inner, str):
            return inner
    return result
