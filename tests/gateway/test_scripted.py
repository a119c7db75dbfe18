"""Scripted models through the gateway, asked by clients of all three protocols."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from codetaste.gateway.gateway import Gateway
from codetaste.llm.messages import Request, TextBlock, ToolCall
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from support.gateway.jobs import PATHS, PROTOCOLS, admitted, asked, run, scripted, transcript


def hello(request: Request) -> list[Any]:
    said = request.messages[-1].text
    return [TextBlock(f"You said: {said}"), ToolCall("c1", "bash", {"command": "ls"})]


def words_of(protocol: str, body: dict[str, Any]) -> str:
    match protocol:
        case "anthropic":
            return str(body["content"][0]["text"])
        case "openai":
            return str(body["output"][0]["content"][0]["text"])
    return str(body["choices"][0]["message"]["content"])


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_scripted_model_answers_programs_of_every_protocol_and_is_paid(
    tmp_path: Path, protocol: str, stream: bool
) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admitted(ctx, gateway, protocol) as (access, client):
            answer = await client.post(PATHS[protocol], json=asked(protocol, stream=stream))
            assert answer.status_code == 200, answer.text
            if stream:
                assert answer.headers["content-type"].startswith("text/event-stream")
                assert "You said: hello" in answer.text
            else:
                assert words_of(protocol, answer.json()) == "You said: hello"
            tally = access.usage
            assert (tally.requests, tally.turns, tally.tool_calls, tally.budget_refusal) == (1, 1, 1, "")
            return [str(tally.settled_usd), str(tally.unknown_usd), tally.tokens.total]

    outcome, spent = await run(tmp_path, [scripted(tmp_path, hello)], body, usd="1")
    assert outcome.status is Status.DONE, outcome
    assert isinstance(outcome.value, list)
    settled, unknown, tokens = outcome.value
    ledger = [json.loads(line) for line in (tmp_path / "m.ledger.jsonl").read_text().splitlines()]
    assert [Decimal(line["cost_usd"]) for line in ledger] == [spent.settled.usd] == [Decimal(settled)]
    assert Decimal(unknown) == spent.unknown.usd == 0
    assert tokens == spent.settled.tokens
    lines = transcript(tmp_path)
    assert sum("request" in line for line in lines) == sum("reply" in line for line in lines) == 1
