"""Behind the gateway, a provider that counts later what it has not counted before bills no more either."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.gateway.gateway import Gateway
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from support.gateway.billed_clients import make_gateway_model
from support.gateway.jobs import PATHS, admit_client, make_request, run_job
from support.llm.late_counts import LONG, PARTS, LateCounts
from support.llm.provider import server as provider

BUDGET_USD = Decimal(1)
AT_ONCE = 32
PNG = "iVBORw0KGgo="


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        yield running


def long_request(protocol: str, part: str) -> dict[str, Any]:
    """Return a request in which ``part`` is long, as a reply before it in the conversation may be."""
    body = make_request(protocol, LONG if part == "earlier messages" else "hello", model="expensive")
    messages: list[Any] = body["input" if protocol == "openai" else "messages"]
    if protocol == "openai":
        body["max_output_tokens"] = 64
    else:
        body["max_tokens"] = 64
    if part == "tools":
        body["tools"][0].get("function", body["tools"][0])["description"] = LONG
    elif part == "system":
        key = {"anthropic": "system", "openai": "instructions"}.get(protocol)
        (body if key else messages[0])[key or "content"] = LONG
    elif part == "pictures":
        picture = {
            "anthropic": {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PNG},
            },
            "openai": {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
            "openai-chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        }[protocol]
        messages[-1]["content"] = [picture]
    elif part == "thinking":
        body |= {"thinking": {"type": "adaptive"}} if protocol == "anthropic" else {}
        messages += {
            "anthropic": [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": LONG, "signature": "s"},
                        {"type": "tool_use", "id": "1", "name": "bash", "input": {}},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "."}]},
            ],
            "openai": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": LONG}]},
                {"type": "function_call", "call_id": "1", "name": "bash", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "."},
            ],
            "openai-chat": [{"role": "assistant", "content": "well", "reasoning_content": LONG}],
        }[protocol]
    return body


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", provider.PROTOCOLS_OTHERS_HEAVY)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("known", [1, 4])
async def test_requests_in_flight_are_paid_whatever_the_provider_counts_later(
    server: provider.Server, tmp_path: Path, protocol: str, part: str, known: int
) -> None:
    """After ``known`` requests of one agent, two agents send many at once that continue the conversation."""
    server.default = LateCounts(part, after=known).answer
    model = make_gateway_model(protocol, server.url, tmp_path, permits=AT_ONCE)
    body = long_request(protocol, part)
    messages = "input" if protocol == "openai" else "messages"
    statuses: list[int] = []

    async def send(client: Any, number: int) -> None:
        more = [] if number == 0 else [{"role": "user", "content": f"go on {number}"}]
        request = {**body, messages: [*body[messages], *more]}
        statuses.append((await client.post(PATHS[protocol], json=request)).status_code)

    async def work(ctx: JobContext, gateway: Gateway) -> Json:
        async with admit_client(ctx, gateway, protocol, ["expensive"]) as (_, first):
            for number in range(known):
                await send(first, number)
            async with (
                admit_client(ctx, gateway, protocol, ["expensive"], name="second") as (_, second),
                anyio.create_task_group() as tasks,
            ):
                for number in range(AT_ONCE):
                    tasks.start_soon(send, (first, second)[number % 2], 100 + number)
        return None

    _, spent = await run_job(tmp_path, [model], work, usd=str(BUDGET_USD))
    await model.metered.aclose()
    print(f"{protocol} {part}: bill ${server.billed_usd} for {len(server.bill)} calls")  # noqa: T201
    assert statuses[:known] == [200] * known
    assert len(server.bill) > known
    assert server.billed_usd <= spent.spent.usd
    assert server.billed_usd <= BUDGET_USD * Decimal("1.1")
