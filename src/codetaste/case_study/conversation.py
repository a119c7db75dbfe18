"""A recorded conversation of any agent as a stream of texts, tool calls and their results, each once.

It reads the transcripts of the own loop and of the gateway, and the events that command-line agents print.
All of it is untrusted; what is not understood is left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.core.files import open_regular_file
from codetaste.core.text import replace_surrogates
from codetaste.errors import JournalError
from codetaste.evaluation.activity.tool_calls import shell_text
from codetaste.llm.codec import value_from_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.orchestration.journal.blobs import Blobs

_MAX_LINE_BYTES = 32 * 1024**2
"""A longer line is left out."""
_DIGEST_CHARS = 64


@dataclass(frozen=True, slots=True)
class Statement:
    """What the agent or its task says; ``by`` is the role in the protocol."""

    by: str
    text: str


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of a tool; ``command`` is the text of a shell command, None for other tools."""

    call: str
    tool: str
    arguments: str
    command: str | None


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """What a call returned."""

    call: str
    text: str


Event = Statement | RecordedCall | RecordedResult


@dataclass(frozen=True, slots=True)
class RecordedCommand:
    """A shell command that was run, and what it printed."""

    command: str
    output: str


def read_events(path: Path, blobs: Blobs) -> Iterator[Event]:
    """Yield the events of a conversation in their order; an unreadable file has none. Does blocking I/O.

    Args:
        path: a transcript, or the output of a command-line agent.
        blobs: the long texts of the run.
    """
    calls, results = set[str](), set[str]()
    for line in _json_lines(path):
        for event in _events_in_line(line, blobs):
            # A client may send a message again in another form: calls and results are known by their ids.
            match event:
                case RecordedCall():
                    if event.call and event.call in calls:
                        continue
                    calls.add(event.call)
                case RecordedResult():
                    if event.call and event.call in results:
                        continue
                    results.add(event.call)
            yield event


def read_commands(path: Path, blobs: Blobs) -> Iterator[RecordedCommand]:
    """Yield the shell commands of a conversation that have a result."""
    pending: dict[str, str] = {}
    for event in read_events(path, blobs):
        match event:
            case RecordedCall(call=call, command=str(command)):
                pending[call] = command
            case RecordedResult(call=call, text=text) if call in pending:
                yield RecordedCommand(pending.pop(call), text)


def _json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with open_regular_file(path) as file:
            whole = True
            while line := file.readline(_MAX_LINE_BYTES):
                ended = line.endswith(b"\n")
                if whole and line.startswith(b"{") and (ended or len(line) < _MAX_LINE_BYTES):
                    try:
                        data = json.loads(line)
                    except (ValueError, RecursionError):
                        data = None
                    if isinstance(data, dict):
                        yield data
                whole = ended
    except OSError:
        return


def _events_in_line(line: Mapping[str, Any], blobs: Blobs) -> Iterator[Event]:
    try:
        match line:
            case {"part": _, "kind": "message"}:
                yield from _message_events(_part_value(line, blobs))
            case {"part": _} | {"request": _} | {"reply": _} | {"transcript": _}:
                return
            case {"type": "assistant" | "user", "message": message}:  # Claude Code, Qwen Code
                yield from _message_events(message)
            case {"type": "item.completed", "item": item}:  # Codex
                yield from _codex_events(item)
            case {"role": _, "content": _}:  # the own loop
                yield from _message_events(value_from_json(line))
    except (JournalError, KeyError, TypeError, ValueError, RecursionError):
        return


def _part_value(line: Mapping[str, Any], blobs: Blobs) -> Any:  # noqa: ANN401 - JSON
    digest = line.get("stored")
    if digest is None:
        return value_from_json(line.get("value"))
    if not isinstance(digest, str) or len(digest) != _DIGEST_CHARS or not digest.isalnum():
        return None  # it becomes a path
    return value_from_json(json.loads(blobs.read(digest)))


def _message_events(message: Any) -> Iterator[Event]:  # noqa: ANN401 - JSON
    """Yield the events of one message of any protocol."""
    match message:
        case {"type": "function_call" | "custom_tool_call" | "local_shell_call" as kind}:
            raw = message.get("arguments", message.get("input", message.get("action")))
            name = "local_shell" if kind == "local_shell_call" else message.get("name")
            yield _call(message.get("call_id"), name, raw)
        case {"type": "function_call_output" | "custom_tool_call_output" | "local_shell_call_output"}:
            yield RecordedResult(_text(message.get("call_id")), _output_text(message.get("output")))
        case {"role": "tool", "tool_call_id": call}:
            yield RecordedResult(_text(call), _output_text(message.get("content")))
        case {"role": role}:
            yield from _content_events(_text(role), message.get("content"))
            for call in _listed(message.get("tool_calls")):
                function = call.get("function")
                if isinstance(function, dict):
                    yield _call(call.get("id"), function.get("name"), function.get("arguments"))


def _content_events(role: str, content: Any) -> Iterator[Event]:  # noqa: ANN401 - JSON
    if isinstance(content, str):
        yield Statement(role, _text(content))
        return
    for block in _listed(content):
        match block.get("type"):
            case "tool_use" | "call":
                raw = block.get("input", block.get("arguments"))
                yield _call(block.get("id"), block.get("name"), raw)
            case "tool_result" | "result":
                call = block.get("tool_use_id", block.get("call"))
                yield RecordedResult(_text(call), _output_text(block.get("content")))
            case _:
                text = block.get("text", block.get("thinking"))
                if isinstance(text, str) and text:
                    yield Statement(role, _text(text))


def _codex_events(item: Any) -> Iterator[Event]:  # noqa: ANN401 - JSON
    match item:
        case {"type": "command_execution", "command": str(command)}:
            call = _text(item.get("id"))
            yield RecordedCall(call, "command_execution", "", _text(command))
            yield RecordedResult(call, _output_text(item.get("aggregated_output")))
        case {"type": str(kind), "text": str(text)}:
            yield Statement("user" if kind == "user_message" else "assistant", _text(text))
        case {"type": "file_change"}:
            yield RecordedCall(_text(item.get("id")), "file_change", _json_text(item.get("changes")), None)


def _call(call: Any, tool: Any, raw: Any) -> RecordedCall:  # noqa: ANN401 - JSON
    command = shell_text(tool, raw)
    arguments = _text(raw) if isinstance(raw, str) else _json_text(raw)
    return RecordedCall(_text(call), _text(tool), arguments, None if command is None else _text(command))


def _output_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return the text of a result: a text, blocks with texts, or Codex's JSON with an output."""
    if isinstance(value, str):
        if value.startswith('{"output"'):
            try:
                inner = json.loads(value).get("output")
            except (ValueError, RecursionError, AttributeError):
                inner = None
            if isinstance(inner, str):
                return _text(inner)
        return _text(value)
    return "\n".join(_text(block.get("text")) for block in _listed(value) if block.get("text"))


def _listed(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _json_text(value: Any) -> str:  # noqa: ANN401 - JSON
    try:
        return _text(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return ""


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    return str(replace_surrogates(value)) if isinstance(value, str) else ""
