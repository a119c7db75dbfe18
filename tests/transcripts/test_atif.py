"""Trajectories of other harnesses in a trial's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codetaste.transcripts.conversations import conversations_of_logs
from codetaste.transcripts.event import EventKind, SourceKind, TranscriptEvent
from codetaste.transcripts.read import read_events

K = EventKind


def step(number: int, source: str, message: str, **fields: Any) -> dict[str, Any]:
    return {"step_id": number, "source": source, "message": message, **fields}


def trajectory(name: str, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    agent = {"name": "other-agent", "version": "1", "model_name": "m"}
    return {"schema_version": "ATIF-v1.7", "session_id": name, "agent": agent, "steps": steps, **fields}


def events(folder: Path) -> list[TranscriptEvent]:
    [conversation] = conversations_of_logs(folder)
    assert (conversation.source, conversation.step) == (SourceKind.ATIF, "execute")
    return [*read_events(conversation)]


def test_a_trajectory_is_the_conversation_of_a_trial(tmp_path: Path) -> None:
    call = {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "ls"}}
    reply = step(
        2,
        "agent",
        "I look",
        tool_calls=[call],
        observation={"results": [{"source_call_id": "c", "content": "a.py"}]},
        metrics={"prompt_tokens": 10, "completion_tokens": 3, "cached_tokens": 4, "cost_usd": 0.02},
    )
    document = trajectory("t", step(1, "user", "rename it"), reply)
    (tmp_path / "trajectory.json").write_text(json.dumps(document))
    found = events(tmp_path)
    assert [(each.kind, each.turn, each.text) for each in found] == [
        (K.USER, 0, "rename it"),
        (K.TEXT, 1, "I look"),
        (K.CALL, 1, '{"command": "ls"}'),
        (K.RESULT, 1, "a.py"),
    ]
    facts = found[1].reply
    assert facts is not None
    assert (str(facts.cost_usd), facts.usage) == ("0.02", {"input": 6, "cache_read": 4, "output": 3})


def test_embedded_trajectories_are_sub_agents_with_numbers_of_their_own(tmp_path: Path) -> None:
    embedded = [
        trajectory("explorer", step(1, "user", "find it"), step(2, "agent", "there")),
        trajectory("", step(1, "agent", "x"), agent={}),
    ]
    main = trajectory("t", step(1, "agent", "I delegate"), subagent_trajectories=embedded)
    (tmp_path / "trajectory.json").write_text(json.dumps(main))
    found = [(each.number, each.turn, each.agent, each.text) for each in events(tmp_path)]
    assert found == [
        (1, 1, "", "I delegate"),
        (2, 1, "explorer", "find it"),
        (3, 1, "explorer", "there"),
        (4, 1, "sub-agent 2", "x"),
    ]


def test_what_is_no_trajectory_is_a_problem(tmp_path: Path) -> None:
    for text in ("{", "[]", "{}", '{"schema_version": "ATIF-v1.7"}', "\ud800"):
        (tmp_path / "trajectory.json").write_text(text, errors="surrogatepass")
        [problem] = events(tmp_path)
        assert (problem.kind, problem.number) == (K.PROBLEM, 1)
        assert problem.text.startswith("trajectory.json: is no ")


def test_the_log_of_the_agent_comes_before_a_trajectory(tmp_path: Path) -> None:
    (tmp_path / "trajectory.json").write_text(json.dumps(trajectory("t")))
    (tmp_path / "inference.out").write_text("{}\n")
    assert [each.name for each in conversations_of_logs(tmp_path)] == ["inference.out"]
