"""What is written down of an agent's exchanges, and how it is read back."""

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
from support.gateway.jobs import PATHS, PROTOCOLS, admitted, asked, run, scripted, transcript

SAID = {"anthropic": "messages", "openai": "input", "openai-chat": "messages"}


def talkative(request: Request) -> list[Any]:
    turn = sum(message.role == "assistant" for message in request.messages)
    return [
        TextBlock(f"turn {turn} " + "words " * 50),
        ToolCall(f"c{turn}", "bash", {"command": f"sed -i {turn}"}),
    ]


def go_on(protocol: str, conversation: dict[str, Any], answer: dict[str, Any], turn: int) -> None:
    """Take a reply into the conversation with a result, as a program does."""
    result = f"result {turn} " + "of a test " * 40
    said = conversation[SAID[protocol]]
    match protocol:
        case "anthropic":
            said.append({"role": "assistant", "content": answer["content"]})
            block = {"type": "tool_result", "tool_use_id": answer["content"][-1]["id"], "content": result}
            for message in said:
                if message["role"] == "user" and isinstance(message["content"], list):
                    message["content"][-1].pop("cache_control", None)
            said.append({"role": "user", "content": [{**block, "cache_control": {"type": "ephemeral"}}]})
        case "openai":
            said.extend(answer["output"])
            call = next(item for item in answer["output"] if item["type"] == "function_call")
            said.append({"type": "function_call_output", "call_id": call["call_id"], "output": result})
        case _:
            message = answer["choices"][0]["message"]
            said.append(message)
            said.append({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": result})


def read(folder: Path) -> list[TranscriptEntry]:
    return read_transcript(folder / "run" / "transcript.jsonl", Blobs(folder / "run" / "blobs"))


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_long_conversation_is_written_once_and_read_back_whole(tmp_path: Path, protocol: str) -> None:
    turns = 40
    sent: list[dict[str, Any]] = []

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol) as (_, client):
            conversation = asked(protocol)
            for turn in range(turns):
                sent.append(json.loads(json.dumps(conversation)))
                answer = await client.post(PATHS[protocol], json=conversation)
                assert answer.status_code == 200, answer.text
                go_on(protocol, conversation, answer.json(), turn)
                side = {**asked(protocol, f"title {turn}"), "tools": []}
                assert (await client.post(PATHS[protocol], json=side)).status_code == 200
        return None

    outcome, _ = await run(tmp_path, [scripted(tmp_path, talkative)], body)
    assert outcome.status is Status.DONE, outcome
    exchanged = read(tmp_path)
    assert [each.is_agent_turn for each in exchanged] == [True, False] * turns
    assert [each.number for each in exchanged] == [*range(1, 2 * turns + 1)]
    mains = [each for each in exchanged if each.is_agent_turn]
    for body_, each in zip(sent, mains, strict=True):
        assert [*each.messages] == _unmarked(body_[SAID[protocol]])
        assert [*each.tools] == body_["tools"]
    assert [
        call.shell_text for each in mains for message in each.reply_messages for call in tool_calls(message)
    ] == [f"sed -i {turn}" for turn in range(turns)]
    size = (tmp_path / "run" / "transcript.jsonl").stat().st_size
    assert size < 5 * len(json.dumps(sent[-1])) + 2 * turns * 800
    parts = [line["part"] for line in transcript(tmp_path) if "part" in line]
    assert len(parts) == len(set(parts))


def _unmarked(said: Any) -> Any:
    if isinstance(said, dict):
        return {name: _unmarked(value) for name, value in said.items() if name != "cache_control"}
    return [_unmarked(each) for each in said] if isinstance(said, list) else said


@pytest.mark.anyio
async def test_long_parts_lie_beside_the_journal_and_odd_characters_come_back(tmp_path: Path) -> None:
    words = "long \ud800 text " * 2000

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway) as (_, client):
            content = json.dumps(asked("anthropic", words))
            answer = await client.post(PATHS["anthropic"], content=content)
            assert answer.status_code == 200, answer.text
        return None

    outcome, _ = await run(tmp_path, [scripted(tmp_path, lambda _: "well")], body)
    assert outcome.status is Status.DONE, outcome
    [exchanged] = read(tmp_path)
    assert exchanged.messages[0]["content"] == words
    assert max(map(len, (tmp_path / "run" / "transcript.jsonl").read_text().splitlines())) < 9000
    assert exchanged.reply["status"] == 200
    assert exchanged.reply["usage"]["output"] > 0
    assert float(exchanged.reply["cost_usd"]) > 0
