"""Trajectories in ATIF: what is written comes back, foreign files are read, bad ones have one clear error."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.exports.atif.steps import steps_of
from codetaste.exports.atif.write import ATIF_VERSION, _Totals, write_trial
from codetaste.exports.trial import ExportedTrial, safe_name
from codetaste.results.outcome import OutcomeFacet
from codetaste.transcripts.atif import read_atif
from codetaste.transcripts.event import (
    EventKind,
    RecordedConversation,
    ReplyFacts,
    SourceKind,
    TranscriptEvent,
)

K = EventKind
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TIMES = st.none() | st.integers(0, 2_000_000_000_000).map(lambda ms: ms / 1000)
FACTS = st.builds(
    ReplyFacts,
    effect=TEXTS,
    model=TEXTS,
    stop=TEXTS,
    usage=st.none()
    | st.fixed_dictionaries(
        {
            kind: st.integers(0, 10**6)
            for kind in ("input", "cache_read", "cache_write", "output", "reasoning")
        }
    ),
    cost_usd=st.none() | st.decimals(0, 1000, places=7).map(Decimal),
    sent_at=TIMES,
    duration_s=st.none() | st.floats(0, 1e6),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXTS, JSON, max_size=3).map(lambda value: json.dumps(value, ensure_ascii=False))


@st.composite
def conversations(draw: st.DrawFn) -> list[TranscriptEvent]:
    """Events of one agent: replies with one block of reasoning at most, results, messages and notes."""
    events: list[TranscriptEvent] = []
    calls: list[str] = []

    def add(kind: EventKind, turn: int, text: str, at: float | None, **more: Any) -> None:
        events.append(TranscriptEvent(len(events) + 1, kind, turn, text, at=at, **more))

    for turn in range(1, draw(st.integers(0, 5)) + 1):
        before = draw(st.lists(st.sampled_from([K.SYSTEM, K.USER, K.NOTE, K.PROBLEM]), max_size=2))
        for kind in before:
            add(kind, turn - 1, draw(TEXTS), draw(TIMES))
        at, facts = draw(TIMES), draw(st.none() | FACTS)
        parts = draw(st.lists(st.sampled_from([K.TEXT, K.CALL, K.REASONING]), min_size=1, max_size=4))
        for place, kind in enumerate(parts):
            reply = facts if place == 0 else None
            if kind is K.REASONING and K.REASONING in parts[:place]:
                continue
            if kind is K.CALL:
                call_id = draw(st.sampled_from(["", "a", "b", f"c{turn}-{place}"]))
                calls.append(call_id)
                text = draw(ARGUMENTS | TEXTS)
                add(kind, turn, text, at, tool=draw(TEXTS), call_id=call_id, reply=reply)
            else:
                add(kind, turn, draw(TEXTS), at, reply=reply)
        for _ in range(draw(st.integers(0, 2))):
            call_id = draw(st.sampled_from([*calls, "", "unknown"]))
            add(K.RESULT, turn, draw(TEXTS), draw(TIMES), call_id=call_id, is_error=draw(st.booleans()))
        if draw(st.booleans()):
            add(K.ERROR, turn, draw(TEXTS), draw(TIMES), reply=draw(st.none() | FACTS))
    return events


def document(steps: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    agent = {"name": "a", "version": "1"}
    return {"schema_version": ATIF_VERSION, "agent": agent, "steps": steps, **more}


def read(folder: Path, data: Any) -> tuple[TranscriptEvent, ...]:
    path = folder / "t.json"
    path.write_text(json.dumps(data))
    return read_atif(path)[0].events


def normal(event: TranscriptEvent) -> TranscriptEvent:
    """Arguments keep their value, not the way it was written."""
    if event.kind is not K.CALL:
        return event
    try:
        return replace(event, text=json.dumps(json.loads(event.text)))
    except ValueError:
        return event


@given(conversations())
def test_events_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, events: list[Any]) -> None:
    steps = [*steps_of(events)]
    assert [step["step_id"] for step in steps] == [*range(1, len(steps) + 1)]
    found = read(tmp_path_factory.getbasetemp(), document(steps))
    assert [normal(event) for event in found] == [normal(event) for event in events]


def test_standard_fields_have_what_they_are_for() -> None:
    facts = ReplyFacts(
        "e", "m", "end", {"input": 5, "cache_read": 3, "cache_write": 2, "output": 7}, Decimal("0.1")
    )
    events = [
        TranscriptEvent(1, K.SYSTEM, 0, "be short"),
        TranscriptEvent(2, K.USER, 0, "do it"),
        TranscriptEvent(3, K.REASONING, 1, "hm", at=0.0, reply=facts),
        TranscriptEvent(4, K.TEXT, 1, "I look", at=0.0),
        TranscriptEvent(5, K.CALL, 1, '{"path": "x"}', tool="read", call_id="c1", at=0.0),
        TranscriptEvent(6, K.RESULT, 1, "no such file", call_id="c1", is_error=True),
    ]
    system, user, agent = steps_of(events)
    assert (system["source"], system["message"]) == ("system", "be short")
    assert (user["source"], user["message"]) == ("user", "do it")
    assert agent["reasoning_content"] == "hm"
    assert agent["message"] == "I look"
    assert agent["timestamp"] == "1970-01-01T00:00:00.000000+00:00"
    assert agent["tool_calls"] == [
        {"tool_call_id": "c1", "function_name": "read", "arguments": {"path": "x"}}
    ]
    (result,) = agent["observation"]["results"]
    assert (result["source_call_id"], result["content"]) == ("c1", "no such file")
    metrics = {name: value for name, value in agent["metrics"].items() if name != "extra"}
    assert metrics == {"prompt_tokens": 10, "completion_tokens": 7, "cached_tokens": 3, "cost_usd": 0.1}


def test_files_of_others_are_read(tmp_path: Path) -> None:
    steps = [
        {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "do it"}]},
        {
            "step_id": 2,
            "source": "agent",
            "timestamp": "2026-01-01T00:00:00Z",
            "message": "so",
            "reasoning_content": "hm",
            "tool_calls": [{"tool_call_id": "1", "function_name": "ls", "arguments": {"p": 1}}],
            "observation": {"results": [{"source_call_id": "1", "content": None}]},
            "metrics": {"prompt_tokens": 9, "cached_tokens": 4, "completion_tokens": 2, "cost_usd": 0.25},
        },
        {"step_id": 3, "source": "system", "message": "over", "unknown": 1},
    ]
    events = read(tmp_path, document(steps))
    assert [(event.number, event.kind.value, event.turn, event.text) for event in events] == [
        (1, "user", 0, "do it"),
        (2, "reasoning", 1, "hm"),
        (3, "text", 1, "so"),
        (4, "call", 1, '{"p": 1}'),
        (5, "result", 1, ""),
        (6, "system", 1, "over"),
    ]
    assert events[1].reply is not None
    assert events[1].reply.usage == {"input": 5, "cache_read": 4, "output": 2}
    assert events[1].reply.cost_usd == Decimal("0.25")
    assert events[4].call_id == "1"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "is no JSON"),
        (b"[]", 'is no ATIF trajectory: "schema_version" names none'),
        (b'{"schema_version": "ATIF-v1.7", "steps": 3}', 'is no ATIF trajectory: "steps" is no list'),
        (b"[" * 100_000, "is no JSON"),
    ],
)
def test_what_is_no_trajectory_has_a_clear_error(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=problem):
        read_atif(path)


@given(
    st.dictionaries(
        st.sampled_from(["source", "message", "tool_calls", "observation", "metrics", "extra"]), JSON
    )
)
def test_no_step_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, step: dict[str, Any]) -> None:
    last = {"step_id": 2, "source": "user", "message": "after it"}
    found = read(tmp_path_factory.getbasetemp(), document([step, last]))
    assert (found[-1].kind, found[-1].text) == (K.USER, "after it")
    assert [event.number for event in found] == [*range(found[0].number, found[0].number + len(found))]


def trial(run: Path, *conversations: RecordedConversation) -> ExportedTrial:
    return ExportedTrial(
        "r",
        "a",
        "open/direct",
        "x__y-1",
        1,
        OutcomeFacet.FAILURE,
        scores={"A": None},
        conversations=conversations,
    )


@pytest.mark.parametrize("usage", [None, {"input": 3, "cache_read": 1, "output": 2}])
def test_totals_are_left_out_if_the_tokens_of_one_reply_are_unknown(usage: dict[str, int] | None) -> None:
    totals = _Totals()
    for facts in (ReplyFacts("a", usage={"input": 5, "output": 1}), ReplyFacts("b", usage=usage)):
        for step in steps_of(
            [TranscriptEvent(1, K.TEXT, 1, "x", reply=facts), TranscriptEvent(2, K.USER, 1, "y")]
        ):
            totals.add(step)
    assert totals.known is (usage is not None)
    assert totals.prompt_tokens == (9 if usage else 5)


def test_trial_without_conversation_has_a_file_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    write_trial(trial(tmp_path), path)
    data = json.loads(path.read_text())
    assert [step["message"] for step in data["steps"]] == ["No conversation of this trial was recorded."]
    assert data["extra"]["codetaste"]["outcome"] == "failure"
    assert read_atif(path)[0].events == ()


def test_other_conversations_and_sub_agents_are_embedded(tmp_path: Path) -> None:
    lines = [
        {"type": "assistant", "message": {"id": "1", "content": [{"type": "text", "text": "I delegate"}]}},
        {"type": "assistant", "parent_tool_use_id": "t", "message": {"id": "2", "content": "sub"}},
        {
            "type": "assistant",
            "message": {"id": "3", "content": [{"type": "text", "text": "x" * 10_000_000}]},
        },
    ]
    for name in ("plan", "execute"):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    own = [
        RecordedConversation(name, SourceKind.OUTPUT, "", name, "", 0, tmp_path / name, tmp_path)
        for name in ("plan", "execute")
    ]
    path = tmp_path / "t.json"
    written = write_trial(trial(tmp_path, *own), path)
    assert written.embedded == ["execute#sub-agent 1", "plan", "plan#sub-agent 1"]
    main, *others = read_atif(path)
    assert main.id == "execute"
    assert [len(event.text) for event in main.events] == [10, 10_000_000]
    assert [each.id for each in others] == written.embedded
    assert [event.agent for event in others[0].events] == ["sub-agent 1"]


@given(st.text(max_size=300), st.text(max_size=300))
def test_names_of_files_are_safe_and_differ(one: str, two: str) -> None:
    name = safe_name(one)
    assert name not in {"", ".", ".."}
    assert not set(name) & set("/\\\0\n\x1b")
    assert len(name) < 140
    assert (name == safe_name(two)) == (one == two)
