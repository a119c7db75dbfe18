"""Commands that an agent ran, with what they printed, as its conversation was recorded.

Calls are those of recorded replies. Results are as reliable as what reports them: those of codetaste's own
loop come from the sandbox; a command-line agent's program sends its own, and may send two for one call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.evaluation.activity.tool_calls import shell_text
from codetaste.transcripts.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.transcripts.event import TranscriptEvent


@dataclass(frozen=True, slots=True)
class RecordedCommand:
    """A command and what it printed.

    Attributes:
        command: the text of a shell command, or the texts that another tool was given.
        output: what was printed.
        ambiguous: whether the agent's program has sent two results of it.
        of_shell: whether it was given to a shell.
    """

    command: str
    output: str
    ambiguous: bool = False
    of_shell: bool = True


def recorded_commands(events: Iterable[TranscriptEvent], max_chars: int) -> Sequence[RecordedCommand]:
    """Return the tool calls of a conversation that have a result, up to ``max_chars`` characters."""
    pending: dict[tuple[str, str], RecordedCommand] = {}
    found: list[tuple[tuple[str, str], RecordedCommand]] = []
    ambiguous = set[tuple[str, str]]()
    for event in events:
        key = event.agent, event.call_id
        if event.kind is EventKind.CALL and not event.from_client:
            command = shell_command(event)
            pending[key] = RecordedCommand(command or _given_text(event.text), "", of_shell=bool(command))
        elif event.kind is EventKind.RESULT and key in pending and max_chars > 0:
            done = replace(pending.pop(key), output=printed_text(event.text))
            found.append((key, done))
            max_chars -= len(done.command) + len(done.output)
        elif event.kind is EventKind.NOTE and event.call_id:
            ambiguous.add(key)
    return [replace(each, ambiguous=key in ambiguous) for key, each in found]


def shell_command(event: TranscriptEvent) -> str:
    """Return the shell command of a call, "" if it is of another tool."""
    return shell_text(event.tool, event.text) or ""


def _given_text(arguments: str) -> str:
    """Return the texts in the arguments of a call, a line each."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    items = values.values() if isinstance(values, dict) else [values]
    return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in items)


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
