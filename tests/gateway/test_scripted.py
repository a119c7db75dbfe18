"""Scripted models behind the gateway, with clients of all three protocols."""

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
from support.gateway.jobs import (
    PATHS,
    PROTOCOLS,
    admit_client,
    make_request,
    make_scripted_model,
    read_transcript_lines,
    run_job,
)


def echo(request: Request) -> list[Any]:
    user_text = request.messages[-1].text
    return [TextBlock(f"You said: {user_text}"), ToolCall("c1", "bash", {"command": "ls"})]


def text_of(protocol: str, body: dict[str, Any]) -> str:
    match protocol:
        case "anthropic":
            return str(body["content"][0]["text"])
        case "openai":
            return str(body["output"][0]["content"][0]["text"])
    return str(body["choices"][0]["message"]["content"])


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
async def test_scripted_model_replies_in_every_protocol_and_is_charged(
    tmp_path: Path, protocol: str, stream: bool
) -> None:
    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol) as (access, client):
            response = await client.post(PATHS[protocol], json=make_request(protocol, stream=stream))
            assert response.status_code == 200, response.text
            if stream:
                assert response.headers["content-type"].startswith("text/event-stream")
                assert "You said: hello" in response.text
            else:
                assert text_of(protocol, response.json()) == "You said: hello"
            usage = access.usage
            assert (usage.requests, usage.turns, usage.tool_calls, usage.budget_refusal) == (1, 1, 1, "")
            return [str(usage.settled_usd), str(usage.unknown.usd), usage.tokens.total]

    outcome, spent = await run_job(tmp_path, [make_scripted_model(tmp_path, echo)], body, usd="1")
    assert outcome.status is Status.DONE, outcome
    assert isinstance(outcome.value, list)
    settled, unknown, tokens = outcome.value
    ledger = [json.loads(line) for line in (tmp_path / "m.ledger.jsonl").read_text().splitlines()]
    assert [Decimal(line["cost_usd"]) for line in ledger] == [spent.settled.usd] == [Decimal(settled)]
    assert Decimal(unknown) == spent.unknown.usd == 0
    assert tokens == spent.settled.tokens
    lines = read_transcript_lines(tmp_path)
    assert sum("request" in line for line in lines) == sum("reply" in line for line in lines) == 1
