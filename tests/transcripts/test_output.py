"""The output of command-line agents as events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from codetaste.transcripts.event import EventKind
from codetaste.transcripts.output import output_events


def read(folder: Path, *lines: Any) -> list[tuple[Any, ...]]:
    path = folder / "o.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return [
        (event.kind.value, event.turn, event.agent, event.tool, event.text) for event in output_events(path)
    ]


def test_events_of_claude_code_and_qwen_code_are_read(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"a": 1}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "found"}]}
    found = read(
        tmp_path,
        {"type": "system", "subtype": "init", "tools": []},
        {"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "I look"}]}},
        {"type": "assistant", "message": {"id": "m1", "content": [call]}},
        {"type": "assistant", "parent_tool_use_id": "t1", "message": {"id": "s1", "content": "sub"}},
        {"type": "user", "message": {"role": "user", "content": [answer]}},
        {"type": "assistant", "message": {"id": "m2", "content": [{"type": "thinking", "thinking": "hm"}]}},
        {"type": "result", "subtype": "success", "is_error": False, "result": "done"},
    )
    assert found == [
        ("text", 1, "", "", "I look"),
        ("call", 1, "", "Task", '{"a": 1}'),
        ("text", 2, "sub-agent 1", "", "sub"),
        ("result", 2, "", "", "found"),
        ("reasoning", 3, "", "", "hm"),
        ("note", 3, "", "", "result\nsuccess\ndone"),
    ]


def test_events_of_codex_are_read(tmp_path: Path) -> None:
    ran = {
        "id": "i1",
        "type": "command_execution",
        "command": "ls",
        "aggregated_output": "x\n",
        "exit_code": 1,
        "status": "failed",
    }
    found = read(
        tmp_path,
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"id": "i0", "type": "reasoning", "text": "hm"}},
        {"type": "item.started", "item": ran},
        {"type": "item.completed", "item": ran},
        {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "done"}},
        {"type": "turn.failed", "error": {"message": "too many requests"}},
    )
    assert found == [
        ("reasoning", 1, "", "", "hm"),
        ("call", 1, "", "command_execution", '{"command": "ls"}'),
        ("result", 1, "", "", "x\n"),
        ("text", 2, "", "", "done"),
        ("error", 2, "", "", 'turn.failed\n{"message": "too many requests"}'),
    ]


def test_text_of_codex_is_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "OpenAI Codex",
        "user",
        "do it",
        "thinking",
        "hm",
        "exec",
        "/bin/bash -lc 'cd x",
        "ls' in /testbed succeeded in 1.20s:",
        "a",
        "b",
        "codex",
        "done",
        '{"finish_reason": "success"}',
    )
    assert found == [
        ("note", 0, "", "", "OpenAI Codex"),
        ("user", 0, "", "", "do it"),
        ("reasoning", 0, "", "", "hm"),
        ("call", 1, "", "exec", "/bin/bash -lc 'cd x\nls' in /testbed succeeded in 1.20s:"),
        ("result", 1, "", "", "a\nb"),
        ("text", 2, "", "", 'done\n{"finish_reason": "success"}'),
    ]


def test_left_out_bytes_and_cut_lines_are_named(tmp_path: Path) -> None:
    found = read(tmp_path, {"type": "codetaste", "bytes_left_out": 5000}, '{"type": "assist')
    assert [text for *_, text in found] == [
        "5,000 bytes of the output were not recorded.",
        "line 2: this is no JSON; it may have been cut off",
    ]


def test_line_that_is_too_long_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("codetaste.transcripts.record_lines.MAX_LINE_BYTES", 100)
    found = read(tmp_path, "x" * 1000, "short")
    assert [text for *_, text in found] == ["line 1: 1,001 bytes are too long to be shown", "short"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "message", "item", "content", "role", "id", "text", "error", "subtype"]),
            inner,
        )
    ),
    max_leaves=8,
)
TYPES = st.sampled_from(["assistant", "user", "item.completed", "result", "turn.failed", "error", "x"])


@given(TYPES, VALUES, VALUES)
def test_no_event_breaks_the_reader(tmp_path_factory: Any, kind: str, message: Any, item: Any) -> None:
    after = {"type": "assistant", "message": {"content": [{"type": "text", "text": "after it"}]}}
    found = read(tmp_path_factory.getbasetemp(), {"type": kind, "message": message, "item": item}, after)
    assert (found[-1][0], found[-1][-1]) == ("text", "after it")


def test_markup_and_escapes_are_text(tmp_path: Path) -> None:
    text = "<script>alert(1)</script>\x1b[31m\x00"
    found = read(tmp_path, {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}})
    assert found == [("text", 1, "", "", text)]
    assert EventKind("text").of_model
