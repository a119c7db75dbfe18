"""The official clients at the gateway, as programs are built on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from codetaste.gateway.gateway import Gateway
from codetaste.gateway.session import GatewaySession
from codetaste.llm.messages import Request, TextBlock, ToolCall
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from support.gateway.jobs import admitted, door, run, scripted

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}


def script(request: Request) -> list[Any]:
    if any(message.role == "assistant" for message in request.messages):
        return [TextBlock("done")]
    return [TextBlock("I look."), ToolCall("call_1", "bash", {"command": "ls ü"})]


@asynccontextmanager
async def wired(
    ctx: JobContext, gateway: Gateway, protocol: str
) -> AsyncIterator[tuple[GatewaySession, httpx2.AsyncClient]]:
    """What an official client speaks HTTP with, on the gateway's socket."""
    with door(gateway) as path:
        transport = httpx2.AsyncHTTPTransport(uds=path)
        async with (
            admitted(ctx, gateway, protocol) as (access, _),
            httpx2.AsyncClient(transport=transport, timeout=30) as client,
        ):
            yield access, client


async def works(folder: Path, body: Any, usd: str | None = None) -> Json:
    outcome, _ = await run(folder, [scripted(folder, script)], body, usd=usd)
    assert outcome.status is Status.DONE, (outcome.error, outcome.traceback)
    return outcome.value


@pytest.mark.anyio
async def test_anthropics_client_talks_to_a_scripted_model_streamed_and_whole(tmp_path: Path) -> None:
    from anthropic import AsyncAnthropic, PermissionDeniedError

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with wired(ctx, gateway, "anthropic") as (access, http):
            client = AsyncAnthropic(
                api_key=access.token, base_url="http://gateway", http_client=http, max_retries=0
            )
            tools: Any = [{"name": "bash", "input_schema": SCHEMA}]
            said: list[Any] = [{"role": "user", "content": "hello"}]
            async with client.messages.stream(
                model="m", max_tokens=2000, tools=tools, messages=said
            ) as stream:
                first = await stream.get_final_message()
            assert first.stop_reason == "tool_use"
            assert first.content[1].input == {"command": "ls ü"}  # type: ignore[union-attr]
            result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "files"}  # type: ignore[union-attr]
            said += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
            last = await client.messages.create(model="m", max_tokens=2000, tools=tools, messages=said)
            assert (last.content[0].text, last.stop_reason) == ("done", "end_turn")  # type: ignore[union-attr]
            assert first.usage.output_tokens > 0
            counted = await client.messages.count_tokens(model="m", messages=said)
            assert counted.input_tokens > 0
            other = client.with_options(api_key="wrong")
            with pytest.raises(PermissionDeniedError, match="token"):
                await other.messages.create(model="m", max_tokens=1, messages=said)
        return [access.usage.turns, access.usage.tool_calls]

    assert await works(tmp_path, body) == [2, 1]


@pytest.mark.anyio
async def test_openais_client_talks_responses_and_chat_streamed_and_whole(tmp_path: Path) -> None:
    from openai import AsyncOpenAI

    async def responses(ctx: JobContext, gateway: Gateway) -> Json:
        async with wired(ctx, gateway, "openai") as (access, http):
            client = AsyncOpenAI(
                api_key=access.token, base_url="http://gateway/v1", http_client=http, max_retries=0
            )
            tools: Any = [{"type": "function", "name": "bash", "parameters": SCHEMA, "strict": False}]
            said: Any = [{"role": "user", "content": "hello"}]
            async with client.responses.stream(model="m", input=said, tools=tools) as stream:
                first = await stream.get_final_response()
            call = first.output[1]
            assert (call.name, call.arguments) == ("bash", '{"command":"ls ü"}')  # type: ignore[union-attr]
            said += [item.model_dump(exclude_none=True) for item in first.output]
            said.append({"type": "function_call_output", "call_id": call.call_id, "output": "files"})  # type: ignore[union-attr]
            last = await client.responses.create(model="m", input=said, tools=tools)
            assert (last.output_text, last.status) == ("done", "completed")
        return [access.usage.turns, access.usage.tool_calls]

    async def chat(ctx: JobContext, gateway: Gateway) -> Json:
        async with wired(ctx, gateway, "openai-chat") as (access, http):
            client = AsyncOpenAI(
                api_key=access.token, base_url="http://gateway/v1", http_client=http, max_retries=0
            )
            tools: Any = [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]
            said: Any = [{"role": "user", "content": "hello"}]
            async with client.chat.completions.stream(model="m", messages=said, tools=tools) as stream:
                first = (await stream.get_final_completion()).choices[0].message
            assert first.tool_calls is not None
            said.append({"role": "assistant", "content": first.content})
            said[-1]["tool_calls"] = [
                each.model_dump(exclude={"function": {"parsed_arguments"}}) for each in first.tool_calls
            ]
            said.append({"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "files"})
            last = await client.chat.completions.create(model="m", messages=said, tools=tools)
            assert (last.choices[0].message.content, last.choices[0].finish_reason) == ("done", "stop")
        return [access.usage.turns, access.usage.tool_calls]

    assert await works(tmp_path / "responses", responses) == [2, 1]
    assert await works(tmp_path / "chat", chat) == [2, 1]


@pytest.mark.anyio
async def test_the_clients_do_not_try_again_what_the_budget_refused(tmp_path: Path) -> None:
    """With their own retries on."""
    from anthropic import APIStatusError as AnthropicError
    from anthropic import AsyncAnthropic
    from openai import APIStatusError as OpenAIError
    from openai import AsyncOpenAI

    async def anthropic(ctx: JobContext, gateway: Gateway) -> Json:
        async with wired(ctx, gateway, "anthropic") as (access, http):
            client = AsyncAnthropic(api_key=access.token, base_url="http://gateway", http_client=http)
            with pytest.raises(AnthropicError) as refused:
                await client.messages.create(
                    model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]
                )
            return [refused.value.status_code, access.usage.requests]

    async def openai(ctx: JobContext, gateway: Gateway) -> Json:
        async with wired(ctx, gateway, "openai") as (access, http):
            client = AsyncOpenAI(api_key=access.token, base_url="http://gateway/v1", http_client=http)
            with pytest.raises(OpenAIError) as refused:
                await client.responses.create(model="m", input="x")
            return [refused.value.status_code, access.usage.requests]

    assert await works(tmp_path / "anthropic", anthropic, "0.0001") == [402, 1]
    assert await works(tmp_path / "openai", openai, "0.0001") == [400, 1]
