"""The real command with one model per protocol: equal rules and equal cost."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from codetaste.llm.messages import Message, Request, TextBlock, ToolCall
from support.flows import discovery_models, tiny_benchmark
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace
from support.llm.provider import server as provider

COUNTS = {
    "input_tokens": 700,
    "cache_read_input_tokens": 200,
    "cache_creation_input_tokens": 100,
    "output_tokens": 50,
}
USD = Decimal(700 * 3 + 50 * 15) / 10**6 + Decimal("0.3") * 200 / 10**6 + Decimal("3.75") * 100 / 10**6


def results_in(body: dict[str, Any]) -> int:
    """Count the tool results of a conversation, in any protocol."""
    items = [*body.get("input", ()), *body.get("messages", ())]
    blocks = [block for item in items if isinstance(item.get("content"), list) for block in item["content"]]
    kinds = [each.get("type") for each in (*items, *blocks)] + [item.get("role") for item in items]
    return sum(kind in {"tool_result", "function_call_output", "tool"} for kind in kinds)


async def scripted_reply(exchange: provider.Exchange) -> None:
    """Reply like the scripted model, with reasoning and a constant call id."""
    system = exchange.call.data.decode()
    turns = (Message("assistant", ()),) * results_in(exchange.body)
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "hm … näh", "signature": "c2ln"}]
    for block in discovery_models.reply(Request(system, turns)).content:
        match block:
            case TextBlock(text):
                blocks.append(provider.text(text))
            case ToolCall(_, name, arguments):
                blocks.append({"type": "tool_use", "id": "call_0", "name": name, "input": dict(arguments)})
    await provider.send_reply(exchange, *blocks, stop="tool_use", usage=COUNTS, chunked=True)


def table(protocol: str, url: str) -> str:
    base_url = url if protocol == "anthropic" else f"{url}/v1"
    key = "" if protocol == "openai-chat" else 'api_key_env = "FAKE_KEY"\n'
    return (
        f'provider = "{protocol}"\nmodel = "some-{protocol}"\nbase_url = "{base_url}"\n{key}'
        f"price = {tiny_benchmark.PRICE}\n"
    )


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_three_protocols_find_equal_rules_at_equal_cost(
    tmp_path: Path, alpha: TinyBenchmark, uninterrupted_run: tuple[Workspace, CommandResult]
) -> None:
    with provider.serving() as server:
        server.default = scripted_reply
        models = {protocol: table(protocol, server.url) for protocol in provider.PROTOCOLS}
        workspace = alpha.make_workspace(tmp_path, models, run="budget_usd = 5.0")
        workspace.env["FAKE_KEY"] = "sk-not-a-real-key"
        result = workspace.run("--json")
        billed = {name: sum(each.model == f"some-{name}" for each in server.bill) for name in models}
    assert result.code == 0, result.err
    scripted = {name.removeprefix("m/"): text for name, text in uninterrupted_run[0].rules().items()}
    for protocol in models:
        mine = {name.removeprefix(f"{protocol}/"): text for name, text in workspace.rules().items()}
        assert {name: text for name, text in mine.items() if name in scripted} == scripted, protocol
    assert billed == dict.fromkeys(models, 12)
    assert Decimal(result.json["money"]["settled_usd"]) == 36 * USD == server.billed_usd
    assert Decimal(result.json["money"]["unknown_usd"]) == 0
