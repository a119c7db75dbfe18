"""Commands and their outputs are found in conversations of every agent, and only those that were recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.transcripts.commands import RecordedCommand, recorded_commands
from codetaste.transcripts.event import RecordedConversation, SourceKind
from codetaste.transcripts.read import read_events
from support.transcripts.gateway_lines import GatewayLines

TASK = {"role": "user", "content": "task"}
LS = RecordedCommand("ls", "a\nb")


def bash(call: str = "1", command: str = "ls") -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}],
    }


def printed(text: str = "a\nb", call: str = "1") -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": content}]}


def commands_in(path: Path, source: SourceKind, max_chars: int = 1000) -> list[RecordedCommand]:
    conversation = RecordedConversation("c", source, "j", "execute", "", 1, path, path.parent)
    return [*recorded_commands(read_events(conversation), max_chars)]


CHAT = (
    {
        "role": "assistant",
        "tool_calls": [
            {"id": "1", "function": {"name": "run_shell_command", "arguments": '{"command": "ls"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "a\nb"},
)
RESPONSES = (
    {"type": "function_call", "call_id": "1", "name": "exec_command", "arguments": '{"cmd": "ls"}'},
    {"type": "function_call_output", "call_id": "1", "output": '{"output": "a\\nb", "metadata": {}}'},
)


@pytest.mark.parametrize(("call", "result"), [(bash(), printed()), CHAT, RESPONSES])
def test_commands_of_every_protocol(tmp_path: Path, call: dict[str, Any], result: dict[str, Any]) -> None:
    lines = GatewayLines(tmp_path)
    lines.exchange([TASK], call)
    lines.exchange([TASK, call, result], {"role": "assistant", "content": "done"})
    assert commands_in(lines.path, SourceKind.GATEWAY) == [LS]


OWN = [
    {"model": "m", "system": "s", "tools": []},
    {
        "role": "assistant",
        "content": [{"type": "call", "id": "1", "name": "bash", "arguments": {"command": "ls"}}],
    },
    {"role": "user", "content": [{"type": "result", "call": "1", "content": "a\nb"}]},
]
CLAUDE = [{"type": "assistant", "message": bash()}, {"type": "user", "message": printed()}]
CODEX = [
    {
        "type": "item.completed",
        "item": {"id": "1", "type": "command_execution", "command": "ls", "aggregated_output": "a\nb"},
    }
]


@pytest.mark.parametrize(
    ("source", "lines"),
    [(SourceKind.LOOP, OWN), (SourceKind.OUTPUT, CLAUDE), (SourceKind.OUTPUT, CODEX)],
)
def test_commands_of_every_record(tmp_path: Path, source: SourceKind, lines: list[Any]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert commands_in(path, source) == [LS]
    assert commands_in(path, source, max_chars=0) == []


def test_a_call_that_no_reply_has_is_no_command(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path)
    lines.exchange([TASK, bash(command="make test"), printed("all pass")], bash("2"))
    assert commands_in(lines.path, SourceKind.GATEWAY) == []


def test_a_second_result_of_a_call_makes_it_ambiguous(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path)
    lines.exchange([TASK], bash())
    lines.exchange([TASK, bash(), printed("all pass")], {"role": "assistant", "content": "thanks"})
    lines.exchange([TASK, bash(), printed("3 failed")], bash("2"))
    (command,) = commands_in(lines.path, SourceKind.GATEWAY)
    assert command.ambiguous


def test_a_result_in_another_conversation_is_not_that_of_the_call(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path)
    lines.exchange([TASK], bash())
    forged = [{"role": "user", "content": "other"}, bash(), printed("all pass")]
    lines.exchange(forged, {"role": "assistant", "content": "thanks"}, tools=["other"])
    lines.exchange([TASK, bash(), printed("3 failed")], bash("2"))
    assert commands_in(lines.path, SourceKind.GATEWAY) == [RecordedCommand("ls", "3 failed")]


def test_a_result_that_was_cleared_stays_what_it_was(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path)
    lines.exchange([TASK], bash())
    lines.exchange([TASK, bash(), printed()], bash("2"))
    cleared = printed("[Old tool result content cleared]")
    lines.exchange([TASK, bash(), cleared, bash("2"), printed("c", "2")], bash("3"))
    assert commands_in(lines.path, SourceKind.GATEWAY) == [LS, RecordedCommand("ls", "c")]
