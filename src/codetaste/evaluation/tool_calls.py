"""Tool calls in what a model said, whatever the protocol and the program: commands for a shell, and edits."""

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
_LOOKS = frozenset({"view", "undo_edit"})
"""What an edit tool may be told that is no edit."""
_MOST_ARGUMENT = 1_000_000


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool that is counted.

    Attributes:
        shell: the text for a shell; None for an edit.
        every: whether it is an edit that replaces every place.
    """

    shell: str | None = None
    every: bool = False


def tool_calls(said: Any) -> Iterator[ToolCall]:  # noqa: ANN401 - JSON
    """Yield the calls in one message or item of any protocol; what is of another shape is passed over.

    Understood are messages of Anthropic's protocol, items of OpenAI's Responses, messages of Chat
    Completions, messages of our own transcripts, and items in the events of Codex.
    """
    if not isinstance(said, dict):
        return
    match said.get("type"):
        case "command_execution" | "file_change" as kind:
            yield from _call(kind, said)
        case "local_shell_call":
            yield from _call("local_shell", said.get("action"))
        case "function_call" | "custom_tool_call":
            yield from _call(said.get("name"), said.get("arguments", said.get("input")))
    if said.get("role") == "assistant":
        yield from _in_message(said)


def _in_message(message: Mapping[str, Any]) -> Iterator[ToolCall]:
    for block in _listed(message.get("content")):
        if block.get("type") in {"tool_use", "call"}:
            yield from _call(block.get("name"), block.get("input", block.get("arguments")))
    for call in _listed(message.get("tool_calls")):
        function = call.get("function")
        if isinstance(function, dict):
            yield from _call(function.get("name"), function.get("arguments"))


def _listed(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _name(name: object) -> str:
    return name.lower() if isinstance(name, str) else ""


def _call(tool: object, given: object) -> Iterator[ToolCall]:
    name, arguments = _name(tool), _arguments(given)
    if name in _SHELL_TOOLS:
        command = next((arguments[key] for key in ("command", "cmd", "script") if key in arguments), None)
        yield ToolCall(shell=_shell(command))
    elif name in _EDIT_TOOLS and arguments.get("command") not in _LOOKS:
        edits = [arguments, *_listed(arguments.get("edits"))]
        yield ToolCall(every=any(edit.get("replace_all") is True for edit in edits))


def _arguments(given: object) -> Mapping[str, Any]:
    """Return a call's arguments; text that is no JSON object is the input of a tool without a schema."""
    if isinstance(given, str) and len(given) <= _MOST_ARGUMENT:
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, dict) else {}


def _shell(command: object) -> str:
    """Return the text of a command that is given as text, or as a list of words."""
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return shlex.join(command)
    return command if isinstance(command, str) else ""
