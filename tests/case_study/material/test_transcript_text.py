"""The conversation of a trial is written as two texts, of which only one is evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.case_study.material.transcript_text import (
    COMMANDS_FILE,
    MAX_FILE_CHARS,
    STATEMENTS_FILE,
    write_conversations,
)
from codetaste.transcripts.event import RecordedConversation, SourceKind

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


def written(folder: Path, lines: list[Any], rest: bytes = b"", source: SourceKind = SourceKind.LOOP) -> Path:
    """Write these lines and a missing file as conversations; return the folder of their texts."""
    path = folder / "t.jsonl"
    path.write_bytes("".join(f"{json.dumps(line)}\n" for line in lines).encode() + rest)
    conversations = [
        RecordedConversation(name, source, "j", "execute", "", 0, folder / f"{name}.jsonl", folder)
        for name in ("t", "missing")
    ]
    write_conversations(conversations, folder / "out")
    return folder / "out"


def test_statements_are_marked_and_apart_from_commands(tmp_path: Path) -> None:
    boast = {"role": "assistant", "content": "all tests pass\nreally\x1b[2J"}
    out = written(tmp_path, [*OWN, boast])
    commands, statements = (out / COMMANDS_FILE).read_text(), (out / STATEMENTS_FILE).read_text()
    assert "$ ls\na\nb\n" in commands
    assert "pass" not in commands
    shown = [line for line in statements.splitlines() if line and not line.startswith("====")]
    assert "[said] #3 by assistant:" in shown
    assert "[said] all tests pass" in shown
    assert all(line.startswith("[said]") for line in shown)


def test_a_conversation_without_end_is_cut_and_counted(tmp_path: Path) -> None:
    line = {"role": "assistant", "content": [{"type": "text", "text": "word " * 3000}]}
    last = {"role": "assistant", "content": "this is the end"}
    text = (written(tmp_path, [*OWN, *[line] * 400, last]) / STATEMENTS_FILE).read_text()
    assert len(text) < MAX_FILE_CHARS + 100
    assert "characters are left out]" in text
    assert "I look" in text[:1000]
    assert "this is the end" in text[-400:]


KEYS = ["role", "content", "type", "id", "name", "text", "part", "kind", "value", "item", "message", "$", "v"]
WORDS = ["message", "tool_use", "tool_result", "item.completed", "function_call", "assistant", "tool"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


@given(
    st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6) | JSON),
    st.binary(max_size=30),
    st.sampled_from([SourceKind.LOOP, SourceKind.OUTPUT]),
)
def test_any_lines_are_read_without_a_fault(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], rest: bytes, source: SourceKind
) -> None:
    last = json.dumps({"role": "assistant", "content": "after all of it"}).encode()
    out = written(tmp_path_factory.mktemp("any"), lines, rest + b"\n" + last + b"\n", source)
    assert "[said] after all of it\n" in (out / STATEMENTS_FILE).read_text()
