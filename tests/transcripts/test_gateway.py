"""A gateway's transcript as events: each message once, sub-agents and compaction told apart, damage named."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.gateway.gateway import Gateway
from codetaste.llm.messages import Request, TextBlock, ToolCall
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.transcripts.event import EventKind, TranscriptEvent
from codetaste.transcripts.gateway import gateway_events
from support.gateway.jobs import PATHS, PROTOCOLS, admit_client, make_request, make_scripted_model, run_job
from support.transcripts.gateway_lines import GatewayLines

K = EventKind


def read(path: Path) -> list[TranscriptEvent]:
    return [*gateway_events(path, path.parent)]


def shown(events: list[TranscriptEvent]) -> list[tuple[str, int, str, str]]:
    return [(event.kind.value, event.turn, event.agent, event.text) for event in events]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def call(number: int) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {"command": f"ls {number}"}}
    return {"role": "assistant", "content": [block]}


def result(number: int, text: str) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text}],
    }


def reply_of_turn(request: Request) -> list[Any]:
    turn = sum(message.role == "assistant" for message in request.messages)
    return [TextBlock(f"turn {turn}"), ToolCall(f"c{turn}", "bash", {"command": f"ls {turn}"})]


def append_turn(protocol: str, conversation: dict[str, Any], response: dict[str, Any], turn: int) -> None:
    match protocol:
        case "anthropic":
            conversation["messages"] += [
                {"role": "assistant", "content": response["content"]},
                result(turn, f"result {turn}"),
            ]
        case "openai":
            output = {"type": "function_call_output", "call_id": f"c{turn}", "output": f"result {turn}"}
            conversation["input"] += [*response["output"], output]
        case _:
            message = response["choices"][0]["message"]
            call_id = message["tool_calls"][0]["id"]
            answer = {"role": "tool", "tool_call_id": call_id, "content": f"result {turn}"}
            conversation["messages"] += [message, answer]


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_each_message_of_a_real_session_is_one_event(tmp_path: Path, protocol: str) -> None:
    turns = 4

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol) as (_, client):
            conversation = make_request(protocol)
            for turn in range(turns):
                response = await client.post(PATHS[protocol], json=conversation)
                append_turn(protocol, conversation, response.json(), turn)
                side_request = {**make_request(protocol, f"title {turn}"), "tools": []}
                await client.post(PATHS[protocol], json=side_request)
        return None

    outcome, _ = await run_job(tmp_path, [make_scripted_model(tmp_path, reply_of_turn)], body)
    assert outcome.status is Status.DONE, outcome
    events = read(tmp_path / "run" / "transcript.jsonl")
    assert [event.number for event in events] == [*range(1, len(events) + 1)]
    own = [(event.kind, event.text) for event in events if not event.agent]
    expected: list[tuple[EventKind, str]] = [(K.SYSTEM, "Be short."), (K.USER, "hello")]
    for turn in range(turns):
        expected += [(K.TEXT, f"turn {turn}"), (K.CALL, own[3 + 3 * turn][1])]
        assert json.loads(own[3 + 3 * turn][1]) == {"command": f"ls {turn}"}
        expected += [(K.RESULT, f"result {turn}")] if turn < turns - 1 else []
    assert own == expected
    assert {event.agent for event in events} == {"", *(f"side call {n + 1}" for n in range(turns))}
    replies = [event.reply for event in events if event.reply]
    assert len(replies) == 2 * turns
    assert replies[0].effect == "gateway/attempt-1/call-1"
    assert replies[0].cost_usd
    assert replies[0].usage


def test_sub_agents_have_their_own_conversation(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path)
    lines.exchange([user("task")], assistant("I delegate"), tools=["task", "bash"])
    lines.exchange([user("find it")], call(1), tools=["bash"])
    lines.exchange([user("find it"), call(1), result(1, "found")], assistant("here"), tools=["bash"])
    lines.exchange(
        [user("task"), assistant("I delegate"), user("sub: here")], assistant("done"), tools=["task", "bash"]
    )
    assert shown(read(lines.path)) == [
        ("user", 0, "", "task"),
        ("text", 1, "", "I delegate"),
        ("user", 1, "sub-agent 1", "find it"),
        ("call", 2, "sub-agent 1", '{"command": "ls 1"}'),
        ("result", 2, "sub-agent 1", "found"),
        ("text", 3, "sub-agent 1", "here"),
        ("user", 3, "", "sub: here"),
        ("text", 4, "", "done"),
    ]


def test_sub_agents_that_begin_with_the_same_messages_are_others(tmp_path: Path) -> None:
    lines, setup = GatewayLines(tmp_path), user("today is Monday")
    lines.exchange([setup, user("task")], assistant("I delegate"), tools=["task", "bash"])
    for number in (1, 2):
        lines.exchange([setup, user(f"find {number}")], call(number), tools=["bash"])
        conversation = [setup, user(f"find {number}"), call(number), result(number, "found")]
        lines.exchange(conversation, assistant("here"), tools=["bash"])
    main = [setup, user("task"), assistant("I delegate"), user("sub: here")]
    lines.exchange(main, assistant("done"), tools=["task", "bash"])
    events = read(lines.path)
    assert [event.text for event in events if event.agent == ""] == [
        *("today is Monday", "task", "I delegate", "sub: here", "done")
    ]
    for number in (1, 2):
        assert [event.text for event in events if event.agent == f"sub-agent {number}"] == [
            *("today is Monday", f"find {number}", f'{{"command": "ls {number}"}}', "found", "here")
        ]


def test_compaction_is_noted_with_what_is_no_longer_sent(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path)
    lines.exchange([user("task")], call(1))
    lines.exchange([user("task"), call(1), result(1, "long")], call(2))
    cleared = [user("task"), call(1), result(1, "[cleared]"), call(2), result(2, "more")]
    lines.exchange(cleared, assistant("so"))
    lines.exchange([user("summary of all")], assistant("end"))
    events = read(lines.path)
    assert shown(events) == [
        ("user", 0, "", "task"),
        ("call", 1, "", '{"command": "ls 1"}'),
        ("result", 1, "", "long"),
        ("call", 2, "", '{"command": "ls 2"}'),
        ("note", 2, "", "In place of an earlier result the agent now sends: [cleared]"),
        ("result", 2, "", "more"),
        ("note", 2, "", "From here on these events are no longer sent, or are sent shortened: 3"),
        ("text", 3, "", "so"),
        ("user", 3, "", "summary of all"),
        ("note", 3, "", "From here on these events are no longer sent, or are sent shortened: 1–2, 4, 6, 8"),
        ("text", 4, "", "end"),
    ]


def test_failed_replies_are_errors(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path)
    lines.exchange([user("task")], error="overloaded", status=529)
    lines.exchange([user("task")], assistant("here"))
    assert shown(read(lines.path)) == [
        ("user", 0, "", "task"),
        ("error", 1, "", "HTTP 529: overloaded"),
        ("text", 2, "", "here"),
    ]


def test_damage_is_named_and_the_rest_shown(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path)
    lines.exchange([user("task")], assistant("one"))
    lines.add({"part": "p8", "kind": "message", "stored": "../../etc/passwd"})
    lines.add({"part": "p9", "kind": "message", "stored": "0" * 64})
    lines.add({"request": 2, "continues": 1, "common": 1, "added": ["p7", "p8", "p9", 3]})
    lines.add({"reply": 2, "status": 200, "messages": []})
    lines.add({"reply": 9, "messages": []})
    lines.add({"request": 3, "added": None})
    with lines.path.open("ab") as file:
        file.write(b"[1]\n" + b'{"request": 4, "add')
    texts = [event.text for event in read(lines.path) if event.kind is EventKind.PROBLEM]
    assert texts == [
        "a part of the conversation is missing: p7",
        "a part of the conversation is missing or damaged in blobs/",
        "a part of the conversation is missing or damaged in blobs/",
        "line 10 is damaged (KeyError)",
        "line 11 is damaged (TypeError)",
        "line 12: this is no JSON object",
        "line 13: this is no JSON; it may have been cut off",
    ]
    assert "one" in [event.text for event in read(lines.path)]


def test_long_parts_come_from_blobs_whole(tmp_path: Path) -> None:
    lines, text = GatewayLines(tmp_path), "x" * 10_000_000
    data = json.dumps(user(text)).encode()
    digest = hashlib.sha256(data).hexdigest()
    blob = tmp_path / "blobs" / digest[:2] / digest
    blob.parent.mkdir(parents=True)
    blob.write_bytes(data)
    lines.add({"part": "p1", "kind": "message", "stored": digest})
    lines.add({"request": 1, "added": ["p1"]})
    assert [event.text for event in read(lines.path)] == [text]


def test_addresses_stay_when_the_file_grows(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path)
    conversation = [user("task")]
    before: list[TranscriptEvent] = []
    for turn in range(5):
        lines.exchange(conversation, call(turn))
        conversation = [*conversation, call(turn), result(turn, f"r{turn}")]
        events = read(lines.path)
        assert events[: len(before)] == before
        before = events
