"""Conversations of every agent are read as the same events, and nothing in a file breaks the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.case_study.conversation import (
    RecordedCall,
    RecordedCommand,
    RecordedResult,
    Statement,
    read_commands,
    read_events,
)
from codetaste.case_study.material.transcript_text import (
    COMMANDS_FILE,
    MAX_FILE_CHARS,
    STATEMENTS_FILE,
    write_conversation,
)
from codetaste.orchestration.journal.blobs import Blobs

OWN = [
    {"model": "m", "system": "s", "tools": []},
    {"role": "user", "content": [{"type": "text", "text": "task"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look"},
            {"type": "call", "id": "1", "name": "bash", "arguments": {"command": "ls"}},
        ],
    },
    {"role": "user", "content": [{"type": "result", "call": "1", "content": "a\nb"}]},
]


def part(value: Any) -> dict[str, Any]:
    return {"part": str(hash(str(value))), "kind": "message", "value": value}


ANTHROPIC = [
    {"transcript": 2, "job": "j"},
    part({"role": "user", "content": "task"}),
    part(
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}},
            ],
        }
    ),
    {"request": 2, "added": []},
    part(
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "a\nb"}]}
            ],
        }
    ),
    part(
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}, "x": 1}],
        }
    ),
]
CHAT = [
    part({"role": "user", "content": "task"}),
    part(
        {
            "role": "assistant",
            "content": "I look",
            "tool_calls": [
                {"id": "1", "function": {"name": "run_shell_command", "arguments": '{"command": "ls"}'}}
            ],
        }
    ),
    part({"role": "tool", "tool_call_id": "1", "content": "a\nb"}),
]
RESPONSES = [
    part({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "task"}]}),
    part({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]}),
    part({"type": "function_call", "call_id": "1", "name": "exec_command", "arguments": '{"cmd": "ls"}'}),
    part({"type": "function_call_output", "call_id": "1", "output": '{"output": "a\\nb", "metadata": {}}'}),
]
CLAUDE = [
    {"type": "user", "message": {"role": "user", "content": "task"}},
    {"type": "assistant", "message": ANTHROPIC[2]["value"]},
    {"type": "user", "message": ANTHROPIC[4]["value"]},
]
CODEX = [
    {"type": "item.completed", "item": {"type": "user_message", "text": "task"}},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "I look"}},
    {
        "type": "item.completed",
        "item": {"id": "1", "type": "command_execution", "command": "ls", "aggregated_output": "a\nb"},
    },
]


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize("lines", [OWN, ANTHROPIC, CHAT, RESPONSES, CLAUDE, CODEX])
def test_the_same_conversation_in_every_form(tmp_path: Path, lines: list[Any]) -> None:
    path, blobs = write(tmp_path / "t.jsonl", lines), Blobs(tmp_path)
    events = list(read_events(path, blobs))
    assert [each.text for each in events if isinstance(each, Statement)] == ["task", "I look"]
    assert [each.call for each in events if isinstance(each, RecordedCall)] == ["1"]
    assert [each.call for each in events if isinstance(each, RecordedResult)] == ["1"]
    assert list(read_commands(path, blobs)) == [RecordedCommand("ls", "a\nb")]


def test_long_parts_come_from_their_files_and_from_nowhere_else(tmp_path: Path) -> None:
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    lines = [
        {"part": "a", "kind": "message", "stored": digest},
        {"part": "b", "kind": "message", "stored": "../" * 21 + "x"},
        *CHAT,
    ]
    assert len(list(read_events(write(tmp_path / "t.jsonl", lines), Blobs(tmp_path)))) == 4


KEYS = ["role", "content", "type", "id", "name", "text", "part", "kind", "value", "item", "message", "$", "v"]
WORDS = ["message", "tool_use", "tool_result", "item.completed", "function_call", "assistant", "tool"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6) | JSON), st.binary(max_size=30))
def test_any_lines_are_read_without_a_fault(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], rest: bytes
) -> None:
    last = Statement("assistant", "after all of it")
    path = write(tmp_path_factory.mktemp("any") / "t.jsonl", lines)
    with path.open("ab") as file:
        file.write(rest + b"\n" + json.dumps({"role": "assistant", "content": last.text}).encode() + b"\n")
    assert [*read_events(path, Blobs(path.parent))][-1] == last


def test_statements_are_marked_and_apart_from_commands(tmp_path: Path) -> None:
    boast = {"role": "assistant", "content": "all tests pass\nreally\x1b[2J"}
    path = write(tmp_path / "t.jsonl", [*OWN, boast])
    write_conversation([path, tmp_path / "missing.jsonl"], Blobs(tmp_path), tmp_path / "out")
    commands = (tmp_path / "out" / COMMANDS_FILE).read_text()
    statements = (tmp_path / "out" / STATEMENTS_FILE).read_text()
    assert "$ ls\na\nb\n" in commands
    assert "pass" not in commands
    shown = [line for line in statements.splitlines() if line and not line.startswith("====")]
    assert len(shown) >= 5
    assert all(line.startswith("[said]") for line in shown)


def test_a_conversation_without_end_is_cut_and_counted(tmp_path: Path) -> None:
    line = {"role": "assistant", "content": [{"type": "text", "text": "word " * 3000}]}
    last = {"role": "assistant", "content": "this is the end"}
    path = write(tmp_path / "t.jsonl", [*OWN, *[line] * 400, last])
    write_conversation([path], Blobs(tmp_path), tmp_path / "out")
    text = (tmp_path / "out" / STATEMENTS_FILE).read_text()
    assert len(text) < MAX_FILE_CHARS + 100
    assert "characters are left out]" in text
    assert "I look" in text[:1000]
    assert text.rstrip().endswith("this is the end")
