"""Transcripts of codetaste's own loop as events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from codetaste.llm.codec import message_to_json
from codetaste.llm.messages import Message, ProviderBlocks, TextBlock, ToolCall, ToolResult
from codetaste.transcripts.event import EventKind
from codetaste.transcripts.loop import loop_events

K = EventKind


def written(folder: Path, *messages: Message, system: str = "be short") -> Path:
    path = folder / "t.jsonl"
    lines = [{"model": "m", "system": system, "tools": []}, *map(message_to_json, messages)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def user(*blocks: Any) -> Message:
    return Message("user", blocks)


def test_messages_are_events_with_turns(tmp_path: Path) -> None:
    raw = ProviderBlocks("anthropic", ({"type": "thinking", "thinking": "hm", "signature": "x"},))
    reply = Message("assistant", (TextBlock("I look"), ToolCall("1", "bash", {"command": "ls"})), raw)
    path = written(
        tmp_path,
        user(TextBlock("do it")),
        reply,
        user(ToolResult("1", "no", is_error=True)),
        Message("assistant", (TextBlock("done"),)),
    )
    events = [*loop_events(path)]
    assert [(event.number, event.kind, event.turn, event.text) for event in events] == [
        (1, K.SYSTEM, 0, "be short"),
        (2, K.USER, 0, "do it"),
        (3, K.REASONING, 1, "hm"),
        (4, K.TEXT, 1, "I look"),
        (5, K.CALL, 1, '{"command": "ls"}'),
        (6, K.RESULT, 1, "no"),
        (7, K.TEXT, 2, "done"),
    ]
    assert (events[4].tool, events[4].call_id, events[5].call_id, events[5].is_error) == (
        "bash",
        "1",
        "1",
        True,
    )
    assert [event.number for event in events if event.reply] == [3, 7]


def test_empty_reply_is_a_turn_with_a_note(tmp_path: Path) -> None:
    path = written(tmp_path, user(TextBlock("do it")), user(TextBlock("Your reply was empty.")), system="")
    events = [*loop_events(path)]
    assert [(event.kind, event.turn) for event in events] == [(K.USER, 0), (K.NOTE, 1), (K.USER, 1)]


def test_damaged_lines_are_named_and_the_rest_shown(tmp_path: Path) -> None:
    path = written(tmp_path, user(TextBlock("do it")))
    with path.open("ab") as file:
        file.write(b'{"$": "x"}\nnull\n\n{"role": "assistant", "content": [{"type": "te')
    events = [*loop_events(path)]
    assert [event.text for event in events[2:]] == [
        "line 3: this is no message",
        "line 4: this is no JSON object",
        "line 6: this is no JSON; it may have been cut off",
    ]
    (gone,) = loop_events(tmp_path / "none")
    assert (gone.kind, gone.text) == (K.PROBLEM, "line 1: the file cannot be read: No such file or directory")


@given(st.lists(st.binary(max_size=40) | st.just(b'{"role": "user", "content": [{"type": "text"}]}')))
def test_no_content_breaks_the_reader(tmp_path_factory: Any, lines: list[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "t.jsonl"
    path.write_bytes(b"\n".join([*lines, b'{"role": "user", "content": [{"type": "text", "text": "last"}]}']))
    events = [*loop_events(path)]
    assert "".join(event.text for event in events).encode().endswith(b"last")
    assert [event.number for event in events] == [*range(events[0].number, events[0].number + len(events))]


@given(st.text())
def test_texts_are_valid_unicode(tmp_path_factory: Any, text: str) -> None:
    path = written(tmp_path_factory.getbasetemp(), user(TextBlock(text + "\ud800")))
    shown = [*loop_events(path)][-1].text
    assert shown.encode().decode() == shown
    assert shown.endswith("�")
