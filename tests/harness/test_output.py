"""The result in an agent's output is parsed, with any content and in chunks of any size."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.harness.adapter import load_adapter
from codetaste.harness.manifest import AgentManifest
from codetaste.harness.output import MAX_LINE_BYTES, OutputParser, ReportedResult
from codetaste.harness.run import HeadTailFile
from codetaste.llm.messages import Usage

CLAUDE = load_adapter("claude-code", Path()).manifest
CODEX = load_adapter("codex", Path()).manifest
QWEN = load_adapter("qwen-code", Path()).manifest

TOOL_USE = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
CLAUDE_EVENTS: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "claude_code_version": "2.0.76"},
    {"type": "assistant", "message": {"id": "a", "content": [{"type": "text", "text": "I look."}]}},
    {"type": "assistant", "message": {"id": "a", "content": [TOOL_USE]}},
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1"}]}},
    {"type": "assistant", "message": {"id": "b", "content": [{"type": "text", "text": "Done."}]}},
]
CLAUDE_END_EVENT = {
    "duration_ms": 5,
    "subtype": "success",
    "is_error": False,
    "num_turns": 2,
    "result": "Done.",
    "total_cost_usd": 0.0125,
    "usage": {"input_tokens": 1},
    "modelUsage": {
        "main": {
            "inputTokens": 10,
            "outputTokens": 5,
            "cacheReadInputTokens": 3,
            "cacheCreationInputTokens": 2,
        },
        "side": {
            "inputTokens": 1,
            "outputTokens": 1,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
        },
    },
    "type": "result",
}


def parse(manifest: AgentManifest, *events: Any, chunk_bytes: int = 0) -> ReportedResult:
    stream = b"".join(
        each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in events
    )
    parser = OutputParser(manifest)
    step = chunk_bytes or len(stream) or 1
    for start in range(0, len(stream), step):
        parser.feed(stream[start : start + step])
    return parser.result()


def test_claude_code_result_has_usage_of_all_models() -> None:
    result = parse(CLAUDE, *CLAUDE_EVENTS, CLAUDE_END_EVENT)
    assert result == ReportedResult("success", "", "Done.", 2, 1, Usage(11, 3, 2, 6), Decimal("0.0125"))


def test_events_without_end_event_count_blocks_of_reply_as_one_turn() -> None:
    assert parse(CLAUDE, *CLAUDE_EVENTS) == ReportedResult("", "", "Done.", turns=2, tool_calls=1)


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        ({"is_error": True, "result": "API Error: 402 no"}, "error"),
        ({"subtype": "error_during_execution"}, "error"),
        ({"subtype": "error_max_budget_usd"}, "budget"),
        ({"subtype": "error_max_turns"}, "error"),
        ({"is_error": 0}, "error"),  # a successful run reports false
    ],
)
def test_other_end_events_are_no_success(event: dict[str, Any], outcome: str) -> None:
    assert parse(CLAUDE, CLAUDE_END_EVENT | event).outcome == outcome


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("[API Error: 402 no]", True),
        ("half of a reply\n" * 100 + "[API Error: cut]\n", True),
        ("[API Error: 1] is handled now.", True),
        ("The page shows [API Error: 1] now.", False),
    ],
)
def test_success_with_api_error_as_text_is_a_problem(text: str, failed: bool) -> None:
    end = {"type": "result", "subtype": "success", "is_error": False, "result": text, "usage": {}}
    result = parse(QWEN, end)
    assert result.outcome == "success"
    assert ("[API Error: " in result.problem) == failed


def test_success_without_text_is_a_problem_if_manifest_requires_text() -> None:
    end = {"type": "result", "subtype": "success", "is_error": False, "result": " "}
    assert parse(QWEN, end).problem
    assert not parse(CLAUDE, end).problem


def test_codex_message_and_usage_come_from_different_events() -> None:
    result = parse(
        CODEX,
        {"type": "thread.started"},
        {"type": "item.completed", "item": {"id": "1", "type": "command_execution", "exit_code": 0}},
        {"type": "item.completed", "item": {"id": "2", "type": "error", "message": "unknown model"}},
        {"type": "error", "message": "Reconnecting... 1/5"},
        {"type": "item.completed", "item": {"id": "3", "type": "file_change"}},
        {"type": "item.completed", "item": {"id": "4", "type": "agent_message", "text": "All done."}},
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 3},
        },
    )
    assert result == ReportedResult("success", "", "All done.", None, 2, Usage(6, 4, 0, 3))


def test_last_end_event_decides() -> None:
    failed = {"type": "turn.failed", "error": {"message": "no"}}
    assert parse(CODEX, {"type": "turn.completed"}, failed).outcome == "error"
    assert parse(CODEX, failed, {"type": "turn.completed"}).outcome == "success"


@pytest.mark.parametrize(
    "noise",
    [
        b"warning: something\n",
        b"{not json}\n",
        b'{"type": "result"\n',
        b"\n\r\n\0\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"\n",
        b'["type", "result"]\n',
        b'{"type": ["result"]}\n',
        b'{"type": "assistant", "message": "words"}\n',
        b'{"type": "assistant", "message": {"id": {}, "content": {"type": "text"}}}\n',
        b'{"x": "' + b"y" * (MAX_LINE_BYTES + 1) + b'"}\n',
    ],
    ids=range(11),
)
def test_invalid_lines_are_ignored(noise: bytes) -> None:
    result = parse(CLAUDE, noise, *CLAUDE_EVENTS, noise, CLAUDE_END_EVENT, noise)
    assert (result.outcome, result.message, result.tool_calls) == ("success", "Done.", 1)


@pytest.mark.parametrize(
    "numbers",
    [
        {"total_cost_usd": "much", "modelUsage": 3, "num_turns": -1},
        {"total_cost_usd": float("nan"), "modelUsage": {"m": {"inputTokens": -5, "outputTokens": True}}},
        {"total_cost_usd": -1, "modelUsage": {"m": {"inputTokens": 10**30, "outputTokens": 1.5}}},
        {"total_cost_usd": None, "modelUsage": None, "num_turns": None, "result": None},
    ],
)
def test_invalid_numbers_are_unknown(numbers: dict[str, Any]) -> None:
    result = parse(CLAUDE, CLAUDE_END_EVENT | numbers)
    assert (result.outcome, result.usage, result.cost_usd) == ("success", None, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "message", "content", "usage", "item", "id", "text"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(
    st.lists(JSON.map(lambda each: json.dumps(each).encode() + b"\n") | st.binary(max_size=50), max_size=8)
)
def test_any_stream_is_parsed(lines: list[bytes]) -> None:
    for manifest in (CLAUDE, CODEX, QWEN):
        result = parse(manifest, *lines)
        assert result.turns is None or result.turns >= 0


@given(st.integers(1, 200))
def test_result_does_not_depend_on_chunk_size(chunk_bytes: int) -> None:
    assert parse(CLAUDE, *CLAUDE_EVENTS, CLAUDE_END_EVENT, chunk_bytes=chunk_bytes) == parse(
        CLAUDE, *CLAUDE_EVENTS, CLAUDE_END_EVENT
    )


def test_last_line_without_newline_is_parsed() -> None:
    parser = OutputParser(CODEX)
    parser.feed(b'{"type": "turn.completed"}')
    assert parser.result().outcome == "success"


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_event_stream_is_stored_whole_or_head_and_tail(pieces: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        stream = HeadTailFile(Path(folder) / "events", head=100, tail=50)
        for piece in pieces:
            stream.write(piece)
        stream.close()
        whole, stored = b"".join(pieces), (Path(folder) / "events").read_bytes()
    assert stream.total == len(whole)
    if len(whole) <= 150:
        assert stored == whole
    else:
        assert stored.startswith(whole[:100])
        assert stored.endswith(whole[-50:])
        assert json.loads(stored[100:-50])["bytes_left_out"] == len(whole) - 150


def test_full_disk_is_a_fault_and_writes_continue() -> None:
    stream = HeadTailFile(Path("/dev/full"))
    stream.write(b"x")
    stream.write(b"y")
    stream.close()
    assert isinstance(stream.fault, OSError)
    assert stream.total == 2
