"""Shell commands and edits in model messages of any protocol and agent."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHELL_TOOLS = frozenset(
    {
        "bash",  # Claude Code, our own loop
        "shell",  # Codex, by release
        "shell_command",
        "local_shell",
        "container.exec",
        "exec_command",
        "run_shell_command",  # Qwen Code
        "command_execution",  # Codex, in its events
        "execute_bash",
        "run_terminal_cmd",
    }
)
_EDIT_TOOLS = frozenset(
    {
        "edit",  # Claude Code, Qwen Code, our own loop
        "multiedit",
        "write",
        "notebookedit",
        "apply_patch",  # Codex
        "file_change",  # Codex, in its events
        "write_file",  # Qwen Code
        "replace",
        "str_replace_editor",
        "str_replace_based_edit_tool",
    }
)
_NOT_EDITS = frozenset({"view", "undo_edit"})
"""Commands of edit tools that do not edit."""
_MAX_ARGUMENT_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class CountedToolCall:
    """One call of a shell tool, with its text, or of an edit tool, which may replace all occurrences."""

    shell_text: str | None = None
    replaces_all: bool = False


def tool_calls(message: Any) -> Iterator[CountedToolCall]:  # noqa: ANN401 - JSON
    """Yield the counted calls in one message or item of any protocol; anything else is skipped.

    Supported are messages of Anthropic's protocol, items of OpenAI's Responses, messages of Chat Completions,
    messages of our own transcripts, and items in the events of Codex.
    """
    if not isinstance(message, dict):
        return
    match message.get("type"):
        case "command_execution" | "file_change" as kind:
            yield from _call(kind, message)
        case "local_shell_call":
            yield from _call("local_shell", message.get("action"))
        case "function_call" | "custom_tool_call":
            yield from _call(message.get("name"), message.get("arguments", message.get("input")))
    if message.get("role") == "assistant":
        for block in _listed(message.get("content")):
            if block.get("type") in {"tool_use", "call"}:
                yield from _call(block.get("name"), block.get("input", block.get("arguments")))
        for call in _listed(message.get("tool_calls")):
            function = call.get("function")
            if isinstance(function, dict):
                yield from _call(function.get("name"), function.get("arguments"))


def _listed(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def shell_text(tool: object, raw: object) -> str | None:
    """Return the command of a call of a shell tool, "" if it is not understood; None for another tool.

    Args:
        tool: the name of the tool.
        raw: its arguments, as JSON text or parsed.
    """
    if _tool_name(tool) not in _SHELL_TOOLS:
        return None
    arguments = _arguments(raw)
    command = next((arguments[key] for key in ("command", "cmd", "script") if key in arguments), None)
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = shlex.join(command)
    return command if isinstance(command, str) else ""


def _call(tool: object, raw: object) -> Iterator[CountedToolCall]:
    command = shell_text(tool, raw)
    if command is not None:
        yield CountedToolCall(shell_text=command)
        return
    arguments = _arguments(raw)
    if _tool_name(tool) in _EDIT_TOOLS and arguments.get("command") not in _NOT_EDITS:
        edits = [arguments, *_listed(arguments.get("edits"))]
        yield CountedToolCall(replaces_all=any(edit.get("replace_all") is True for edit in edits))


def _tool_name(tool: object) -> str:
    return tool.lower() if isinstance(tool, str) else ""


def _arguments(raw: object) -> Mapping[str, Any]:
    if isinstance(raw, str) and len(raw) <= _MAX_ARGUMENT_CHARS:
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):  # the input of a tool without a schema
            raw = None
    return raw if isinstance(raw, dict) else {}
