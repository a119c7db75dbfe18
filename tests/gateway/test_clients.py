"""The official client libraries of the providers work with the gateway."""

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
from support.gateway.jobs import admit_client, make_scripted_model, open_short_path, run_job

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}


def script(request: Request) -> list[Any]:
    if any(message.role == "assistant" for message in request.messages):
        return [TextBlock("done")]
    return [TextBlock("I look."), ToolCall("call_1", "bash", {"command": "ls ü"})]


@asynccontextmanager
async def open_http_client(
    ctx: JobContext, gateway: Gateway, protocol: str
) -> AsyncIterator[tuple[GatewaySession, httpx2.AsyncClient]]:
    """Open an HTTP client for an official client library on the gateway's socket."""
    with open_short_path(gateway) as path:
        transport = httpx2.AsyncHTTPTransport(uds=path)
        async with (
            admit_client(ctx, gateway, protocol) as (access, _),
            httpx2.AsyncClient(transport=transport, timeout=120) as client,
        ):
            yield access, client


async def run_to_end(folder: Path, body: Any, usd: str | None = None) -> Json:
    outcome, _ = await run_job(folder, [make_scripted_model(folder, script)], body, usd=usd)
    assert outcome.status is Status.DONE, (outcome.error, outcome.traceback)
    return outcome.value


@pytest.mark.anyio
async def test_anthropic_client_gets_streamed_and_whole_replies(tmp_path: Path) -> None:
    from anthropic import AsyncAnthropic, PermissionDeniedError

    async def body(ctx: JobContext, gateway: Gateway) -> Json:
        async with open_http_client(ctx, gateway, "anthropic") as (access, http):
            client = AsyncAnthropic(
                api_key=access.token, base_url="http://gateway", http_client=http, max_retries=0
            )
            tools: Any = [{"name": "bash", "input_schema": SCHEMA}]
            messages: list[Any] = [{"role": "user", "content": "hello"}]
            async with client.messages.stream(
                model="m", max_tokens=2000, tools=tools, messages=messages
            ) as stream:
                first = await stream.get_final_message()
            assert first.stop_reason == "tool_use"
            assert first.content[1].input == {"command": "ls ü"}  # type: ignore[union-attr]
            result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "files"}  # type: ignore[union-attr]
            messages += [
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": [result]},
            ]
            last = await client.messages.create(model="m", max_tokens=2000, tools=tools, messages=messages)
            assert (last.content[0].text, last.stop_reason) == ("done", "end_turn")  # type: ignore[union-attr]
            assert first.usage.output_tokens > 0
            counted = await client.messages.count_tokens(model="m", messages=messages)
            assert counted.input_tokens > 0
            other = client.with_options(api_key="wrong")
            with pytest.raises(PermissionDeniedError, match="token"):
                await other.messages.create(model="m", max_tokens=1, messages=messages)
        return [access.usage.turns, access.usage.tool_calls]

    assert await run_to_end(tmp_path, body) == [2, 1]


@pytest.mark.anyio
async def test_openai_client_gets_streamed_and_whole_replies(tmp_path: Path) -> None:
    from openai import AsyncOpenAI

    async def responses(ctx: JobContext, gateway: Gateway) -> Json:
        async with open_http_client(ctx, gateway, "openai") as (access, http):
            client = AsyncOpenAI(
                api_key=access.token, base_url="http://gateway/v1", http_client=http, max_retries=0
            )
            tools: Any = [{"type": "function", "name": "bash", "parameters": SCHEMA, "strict": False}]
            messages: Any = [{"role": "user", "content": "hello"}]
            async with client.responses.stream(model="m", input=messages, tools=tools) as stream:
                first = await stream.get_final_response()
            call = first.output[1]
            assert (call.name, call.arguments) == ("bash", '{"command":"ls ü"}')  # type: ignore[union-attr]
            messages += [item.model_dump(exclude_none=True) for item in first.output]
            messages.append({"type": "function_call_output", "call_id": call.call_id, "output": "files"})  # type: ignore[union-attr]
            last = await client.responses.create(model="m", input=messages, tools=tools)
            assert (last.output_text, last.status) == ("done", "completed")
        return [access.usage.turns, access.usage.tool_calls]

    async def chat(ctx: JobContext, gateway: Gateway) -> Json:
        async with open_http_client(ctx, gateway, "openai-chat") as (access, http):
            client = AsyncOpenAI(
                api_key=access.token, base_url="http://gateway/v1", http_client=http, max_retries=0
            )
            tools: Any = [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]
            messages: Any = [{"role": "user", "content": "hello"}]
            async with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
                first = (await stream.get_final_completion()).choices[0].message
            assert first.tool_calls is not None
            messages.append({"role": "assistant", "content": first.content})
            messages[-1]["tool_calls"] = [
                each.model_dump(exclude={"function": {"parsed_arguments"}}) for each in first.tool_calls
            ]
            messages.append({"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "files"})
            last = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            assert (last.choices[0].message.content, last.choices[0].finish_reason) == ("done", "stop")
        return [access.usage.turns, access.usage.tool_calls]

    assert await run_to_end(tmp_path / "responses", responses) == [2, 1]
    assert await run_to_end(tmp_path / "chat", chat) == [2, 1]


@pytest.mark.anyio
async def test_clients_do_not_retry_request_refused_by_budget(tmp_path: Path) -> None:
    """The clients' own retries are on."""
    from anthropic import APIStatusError as AnthropicError
    from anthropic import AsyncAnthropic
    from openai import APIStatusError as OpenAIError
    from openai import AsyncOpenAI

    async def anthropic(ctx: JobContext, gateway: Gateway) -> Json:
        async with open_http_client(ctx, gateway, "anthropic") as (access, http):
            client = AsyncAnthropic(api_key=access.token, base_url="http://gateway", http_client=http)
            with pytest.raises(AnthropicError) as error:
                await client.messages.create(
                    model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]
                )
            return [error.value.status_code, access.usage.requests]

    async def openai(ctx: JobContext, gateway: Gateway) -> Json:
        async with open_http_client(ctx, gateway, "openai") as (access, http):
            client = AsyncOpenAI(api_key=access.token, base_url="http://gateway/v1", http_client=http)
            with pytest.raises(OpenAIError) as error:
                await client.responses.create(model="m", input="x")
            return [error.value.status_code, access.usage.requests]

    assert await run_to_end(tmp_path / "anthropic", anthropic, "0.0001") == [402, 1]
    assert await run_to_end(tmp_path / "openai", openai, "0.0001") == [400, 1]
