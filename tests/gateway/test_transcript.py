"""The transcript of an agent's requests and replies is written, and read back unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.evaluation.activity.tool_calls import tool_calls
from codetaste.gateway.gateway import Gateway
from codetaste.gateway.transcript import TranscriptEntry, read_transcript
from codetaste.llm.messages import Request, TextBlock, ToolCall
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.blobs import Blobs
from codetaste.orchestration.journal.journal import Json
from support.gateway.jobs import (
    PATHS,
    PROTOCOLS,
    admit_client,
    make_request,
    make_scripted_model,
    read_transcript_lines,
    run_job,
)

MESSAGES_KEY = {"anthropic": "messages", "openai": "input", "openai-chat": "messages"}


def reply_with_tool_call(request: Request) -> list[Any]:
    turn = sum(message.role == "assistant" for message in request.messages)
    return [
        TextBlock(f"turn {turn} " + "words " * 50),
        ToolCall(f"c{turn}", "bash", {"command": f"sed -i {turn}"}),
    ]


def append_turn(protocol: str, conversation: dict[str, Any], response: dict[str, Any], turn: int) -> None:
    """Add a reply and a tool result to the conversation, like an agent."""
    result = f"result {turn} " + "of a test " * 40
    messages = conversation[MESSAGES_KEY[protocol]]
    match protocol:
        case "anthropic":
            messages.append({"role": "assistant", "content": response["content"]})
            block = {"type": "tool_result", "tool_use_id": response["content"][-1]["id"], "content": result}
            for message in messages:
                if message["role"] == "user" and isinstance(message["content"], list):
                    message["content"][-1].pop("cache_control", None)
            messages.append({"role": "user", "content": [{**block, "cache_control": {"type": "ephemeral"}}]})
        case "openai":
            messages.extend(response["output"])
            call = next(item for item in response["output"] if item["type"] == "function_call")
            messages.append({"type": "function_call_output", "call_id": call["call_id"], "output": result})
        case _:
            message = response["choices"][0]["message"]
            messages.append(message)
            messages.append(
                {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": result}
            )


def read_entries(folder: Path) -> list[TranscriptEntry]:
    return read_transcript(folder / "run" / "transcript.jsonl", Blobs(folder / "run" / "blobs"))


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_long_conversation_is_written_once_and_read_back_completely(
    tmp_path: Path, protocol: str
) -> None:
    turns = 40
    sent: list[dict[str, Any]] = []

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol) as (_, client):
            conversation = make_request(protocol)
            for turn in range(turns):
                sent.append(json.loads(json.dumps(conversation)))
                response = await client.post(PATHS[protocol], json=conversation)
                assert response.status_code == 200, response.text
                append_turn(protocol, conversation, response.json(), turn)
                side_request = {**make_request(protocol, f"title {turn}"), "tools": []}
                assert (await client.post(PATHS[protocol], json=side_request)).status_code == 200
        return None

    outcome, _ = await run_job(tmp_path, [make_scripted_model(tmp_path, reply_with_tool_call)], body)
    assert outcome.status is Status.DONE, outcome
    entries = read_entries(tmp_path)
    assert [each.is_agent_turn for each in entries] == [True, False] * turns
    assert [each.number for each in entries] == [*range(1, 2 * turns + 1)]
    agent_turns = [each for each in entries if each.is_agent_turn]
    for request_body, each in zip(sent, agent_turns, strict=True):
        assert [*each.messages] == _without_cache_control(request_body[MESSAGES_KEY[protocol]])
        assert [*each.tools] == request_body["tools"]
    assert [
        call.shell_text
        for each in agent_turns
        for message in each.reply_messages
        for call in tool_calls(message)
    ] == [f"sed -i {turn}" for turn in range(turns)]
    size = (tmp_path / "run" / "transcript.jsonl").stat().st_size
    assert size < 5 * len(json.dumps(sent[-1])) + 2 * turns * 800
    parts = [line["part"] for line in read_transcript_lines(tmp_path) if "part" in line]
    assert len(parts) == len(set(parts))


def _without_cache_control(messages: Any) -> Any:
    if isinstance(messages, dict):
        return {
            name: _without_cache_control(value) for name, value in messages.items() if name != "cache_control"
        }
    return [_without_cache_control(each) for each in messages] if isinstance(messages, list) else messages


@pytest.mark.anyio
async def test_long_parts_are_stored_as_blobs_and_surrogates_are_preserved(tmp_path: Path) -> None:
    words = "long \ud800 text " * 2000

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway) as (_, client):
            content = json.dumps(make_request("anthropic", words))
            response = await client.post(PATHS["anthropic"], content=content)
            assert response.status_code == 200, response.text
        return None

    outcome, _ = await run_job(tmp_path, [make_scripted_model(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.DONE, outcome
    [entry] = read_entries(tmp_path)
    assert entry.messages[0]["content"] == words
    assert max(map(len, (tmp_path / "run" / "transcript.jsonl").read_text().splitlines())) < 9000
    assert entry.reply["status"] == 200
    assert entry.reply["usage"]["output"] > 0
    assert float(entry.reply["cost_usd"]) > 0
