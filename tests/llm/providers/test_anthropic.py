from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from codetaste.errors import (
    MalformedReply,
    ModelError,
    ModelRefused,
    ModelSetupError,
    ModelUnavailable,
    RateLimited,
)
from codetaste.llm.build import build_model
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import (
    Message,
    Request,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from codetaste.llm.providers.remote import RemoteModel
from codetaste.llm.wire.protocols import PROTOCOLS
from support.llm.provider import server as provider

KEY = "sk-dummy-key-of-a-test"
TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})
HELLO = Request("Be brief.", (Message("user", (TextBlock("hello"),)),), (TOOL,))


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        yield running


@pytest.fixture
async def model(server: provider.Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RemoteModel]:
    monkeypatch.setenv("MY_KEY", KEY)
    config = ModelConfig(
        id="m",
        provider="anthropic",
        model="some-model",
        base_url=server.url,
        api_key_env="MY_KEY",
        timeout=20.0,
    )
    remote = RemoteModel(PROTOCOLS[config.provider], config)
    yield remote
    await remote.aclose()


STRAY_DELTA = '{"type": "content_block_delta", "index": 3, "delta": {}}'
THINKING = {"type": "thinking", "thinking": "hm … näh", "signature": "c2lnbmF0dXJl+/=="}
REDACTED = {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"}
CALL = {"type": "tool_use", "id": "toolu_01", "name": "look", "input": {"at": "é\u0000", "n": [1, 2.5]}}


@pytest.mark.anyio
@pytest.mark.parametrize("chunked", [False, True])
async def test_streamed_reply_has_the_providers_own_blocks(
    server: provider.Server, model: RemoteModel, *, chunked: bool
) -> None:
    blocks = [THINKING, REDACTED, provider.text("Let me look. 🙂"), CALL]
    usage = {
        "input_tokens": 11,
        "cache_creation_input_tokens": 7,
        "cache_read_input_tokens": 5,
        "output_tokens": 42,
    }
    server.handlers.append(provider.reply(*blocks, stop="tool_use", usage=usage, chunked=chunked))
    reply = await model.complete(HELLO, call="1")
    assert reply.stop is StopReason.TOOL_USE
    assert reply.usage == Usage(input=11, cache_write=7, cache_read=5, output=42)
    assert reply.message.text == "Let me look. 🙂"
    assert reply.message.tool_calls == (ToolCall("toolu_01", "look", CALL["input"]),)  # type: ignore[arg-type]
    assert (reply.model, reply.request_id) == ("some-model", "req_1")
    assert reply.message.raw is not None
    assert list(reply.message.raw.blocks) == blocks


@pytest.mark.anyio
async def test_provider_blocks_are_sent_back_byte_for_byte(
    server: provider.Server, model: RemoteModel
) -> None:
    blocks = [THINKING, REDACTED, provider.text("Let me look."), CALL]
    server.handlers += [provider.reply(*blocks, stop="tool_use"), provider.reply(provider.text("done"))]
    reply = await model.complete(HELLO, call="1")
    result = Message("user", (TextBlock("and?"), ToolResult("toolu_01", "no such place", is_error=True)))
    await model.complete(replace(HELLO, messages=(*HELLO.messages, reply.message, result)), call="2")
    written = json.dumps(blocks, ensure_ascii=False, separators=(",", ":")).encode()
    assert b'"role":"assistant","content":' + written in server.raw_bodies[1]
    results, words = server.bodies[1]["messages"][2]["content"]
    assert results == {
        "type": "tool_result",
        "tool_use_id": "toolu_01",
        "content": "no such place",
        "is_error": True,
    }
    assert words["text"] == "and?"


@pytest.mark.anyio
async def test_prompt_cache_uses_at_most_four_moving_breakpoints(
    server: provider.Server, model: RemoteModel
) -> None:
    server.default = provider.reply(provider.text("ok"))
    turns: list[Message] = []
    for turn in range(4):
        turns.append(Message("user", (TextBlock(f"turn {turn}"),)))
        reply = await model.complete(replace(HELLO, messages=tuple(turns)), call=str(turn))
        turns.append(reply.message)
    body = server.bodies[-1]
    marked = [body["tools"][-1], body["system"][-1]]
    marked += [block for message in body["messages"] for block in message["content"]]
    marked = [block for block in marked if "cache_control" in block]
    assert [block.get("text", block.get("name")) for block in marked] == [
        "look",
        "Be brief.",
        "turn 2",
        "turn 3",
    ]
    assert all(block["cache_control"] == {"type": "ephemeral"} for block in marked)
    assert body["tool_choice"] == {"type": "auto"}
    assert body["stream"] is True
    plain = replace(HELLO, options={"cache_control": False})
    await model.complete(plain, call="x")
    assert "cache_control" not in json.dumps(server.bodies[-1])


@pytest.mark.anyio
async def test_options_are_sent_unchanged(server: provider.Server, model: RemoteModel) -> None:
    server.default = provider.reply(provider.text("ok"))
    options = {
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "temperature": 1.0,
        "betas": ["one", "two"],
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
    }
    await model.complete(replace(HELLO, options=options, max_output_tokens=5000), call="1")
    body = server.bodies[0]
    assert (body["thinking"], body["temperature"], body["max_tokens"]) == (options["thinking"], 1.0, 5000)
    assert "betas" not in body
    assert server.headers[0]["anthropic-beta"] == "one,two"
    assert body["system"][0]["cache_control"]["ttl"] == "1h"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("partial", "fault"),
    [
        ('{"at": "wher', "not JSON"),
        ("[1]", "list, not a JSON object"),
        ('{"n": NaN}', "NaN is not JSON"),
        ('{"n": ' + "[" * 150 + "]" * 150 + "}", "nested deeper than 100"),
        ("[" * 100_000, "not JSON"),
        ('{"n": 1' + "0" * 5000 + "}", "not JSON"),
    ],
)
async def test_invalid_tool_call_is_reported_and_can_be_sent_back(
    server: provider.Server, model: RemoteModel, partial: str, fault: str
) -> None:
    bad = {"type": "tool_use", "id": "t1", "name": "look", "partial": partial}
    server.handlers.append(provider.reply(provider.text("x"), bad, CALL, stop="max_tokens"))
    reply = await model.complete(HELLO, call="1")
    assert reply.stop is StopReason.LENGTH
    broken, whole = reply.message.tool_calls
    assert fault in str(broken.fault)
    assert len(str(broken.fault)) < 500
    assert (broken.arguments, whole.fault) == ({}, None)
    server.handlers.append(provider.reply(provider.text("sorry")))
    await model.complete(replace(HELLO, messages=(*HELLO.messages, reply.message)), call="2")
    assert server.bodies[1]["messages"][1]["content"][1]["input"] == {}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", StopReason.END),
        ("stop_sequence", StopReason.END),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("refusal", StopReason.REFUSAL),
        ("pause_turn", StopReason.OTHER),
        ("something_new", StopReason.OTHER),
    ],
)
async def test_stop_reasons_are_mapped(
    server: provider.Server, model: RemoteModel, reason: str, stop: StopReason
) -> None:
    server.handlers.append(provider.reply(provider.text("x"), stop=reason))
    assert (await model.complete(HELLO, call="1")).stop is stop


@pytest.mark.anyio
@pytest.mark.parametrize(
    "handler",
    [
        provider.reply(provider.text("x"), report_usage=False),
        provider.reply(provider.text("x"), usage={"input_tokens": -5, "output_tokens": 3}),
        provider.reply(provider.text("x"), usage={"input_tokens": 5.5, "output_tokens": 3}),
        provider.reply(provider.text("x"), usage={"input_tokens": 5, "output_tokens": "3.5"}),
        provider.reply(provider.text("x"), usage={"output_tokens": 3}),
        provider.reply(provider.text("x"), usage={"input_tokens": 0, "output_tokens": 0}),
        provider.reply(provider.text("x"), usage={"input_tokens": 5, "output_tokens": None}),
    ],
)
async def test_missing_or_invalid_usage_is_unknown(
    server: provider.Server, model: RemoteModel, handler: provider.Handler
) -> None:
    server.handlers.append(handler)
    reply = await model.complete(HELLO, call="1")
    assert reply.message.text == "x"
    assert reply.usage is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "kind", "hint"),
    [
        (400, ModelSetupError, "options"),
        (401, ModelSetupError, "api_key_env"),
        (402, ModelSetupError, "credit"),
        (403, ModelSetupError, "may not use this model"),
        (404, ModelSetupError, "base_url"),
        (408, ModelUnavailable, "no"),
        (409, ModelUnavailable, "no"),
        (413, ModelRefused, "too long"),
        (307, ModelSetupError, "redirects"),
        (429, RateLimited, "no"),
        (500, ModelUnavailable, "no"),
        (503, ModelUnavailable, "no"),
        (529, ModelUnavailable, "no"),
    ],
)
async def test_error_of_status_has_type_and_hint(
    server: provider.Server, model: RemoteModel, code: int, kind: type[ModelError], hint: str
) -> None:
    server.handlers.append(provider.status(code))
    with pytest.raises(kind, match=rf"HTTP {code}: .*{hint}") as caught:
        await model.complete(HELLO, call="1")
    assert caught.value.unbilled
    assert len(server.bodies) == 1  # the client retries nothing by itself


@pytest.mark.anyio
async def test_retry_after_is_read_as_seconds_or_date(server: provider.Server, model: RemoteModel) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    for header, low, high in [("7", 7, 7), (soon, 50, 60), ("garbage", None, None), ("1e999", None, None)]:
        server.handlers.append(provider.status(429, retry_after=header))
        with pytest.raises(RateLimited) as caught:
            await model.complete(HELLO, call="1")
        wait_s = caught.value.retry_after_s
        assert wait_s is None if low is None else low <= (wait_s or 0) <= high  # type: ignore[operator]


@pytest.mark.anyio
async def test_spending_limit_is_not_retried(server: provider.Server, model: RemoteModel) -> None:
    details = {"error_code": "enforced_spend_limit_reached"}
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "enough", "details": details}}
    server.handlers.append(provider.status(429, body))
    with pytest.raises(ModelRefused, match="spending limit"):
        await model.complete(HELLO, call="1")


@pytest.mark.anyio
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("after", [1, 4])
async def test_interrupted_reply_may_be_billed(
    server: provider.Server, model: RemoteModel, *, chunked: bool, after: int
) -> None:
    server.handlers.append(provider.cut(provider.text("a long reply"), after=after, chunked=chunked))
    with pytest.raises(ModelUnavailable, match="connection was lost in the middle") as caught:
        await model.complete(HELLO, call="1")
    assert not caught.value.unbilled


@pytest.mark.anyio
@pytest.mark.parametrize(
    "handler",
    [
        provider.status(200, "<html>Log in to the hotel</html>", content_type="text/html"),
        provider.status(200, "{oops", content_type="application/json"),
        provider.status(200, {"type": "message", "content": "no list"}),
        provider.status(200, "event: message_start\ndata: {oops\n\n", content_type="text/event-stream"),
        provider.status(200, f"event: x\ndata: {STRAY_DELTA}\n\n", content_type="text/event-stream"),
    ],
)
async def test_invalid_reply_is_reported_in_one_short_line(
    server: provider.Server, model: RemoteModel, handler: provider.Handler
) -> None:
    server.handlers.append(handler)
    with pytest.raises(MalformedReply) as caught:
        await model.complete(HELLO, call="1")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("kind", "error", "unbilled"),
    [
        ("overloaded_error", ModelUnavailable, True),
        ("rate_limit_error", RateLimited, True),
        ("invalid_request_error", ModelRefused, True),
        ("api_error", ModelUnavailable, True),
        ("timeout_error", ModelUnavailable, False),
    ],
)
async def test_error_event_after_reply_began_may_be_billed(
    server: provider.Server, model: RemoteModel, kind: str, error: type[ModelError], *, unbilled: bool
) -> None:
    event = {"type": "error", "error": {"type": kind, "message": "sorry"}}
    first_event = provider.events_of({"model": "x"}, [], "end_turn", {"output_tokens": 1, "input_tokens": 1})[
        0
    ]

    server.handlers.append(lambda exchange: exchange.stream([event]))
    with pytest.raises(error, match="sorry") as before:
        await model.complete(HELLO, call="1")
    assert before.value.unbilled is unbilled
    server.handlers.append(lambda exchange: exchange.stream([first_event, event]))
    with pytest.raises(ModelError, match="sorry") as after:
        await model.complete(HELLO, call="2")
    assert not after.value.unbilled
    assert not isinstance(after.value, ModelRefused)


@pytest.mark.anyio
async def test_unstreamed_reply_is_read(server: provider.Server, model: RemoteModel) -> None:
    message = {
        "type": "message",
        "id": "msg_9",
        "model": "other",
        "content": [provider.text("all at once")],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    server.handlers.append(provider.status(200, message))
    reply = await model.complete(HELLO, call="1")
    assert (reply.message.text, reply.usage) == ("all at once", Usage(input=3, output=4))
    assert reply.request_id == "msg_9"


@pytest.mark.anyio
async def test_environment_is_ignored_except_configured_key(
    server: provider.Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name, value in {
        "ANTHROPIC_API_KEY": "sk-other",
        "ANTHROPIC_AUTH_TOKEN": "token-other",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/",
        "ANTHROPIC_CUSTOM_HEADERS": "x-spy: 1\nAuthorization: Bearer stolen\nanthropic-version: 1999",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
        "MY_KEY": f" {KEY}\n",
    }.items():
        monkeypatch.setenv(name, value)
    config = ModelConfig(
        id="m", provider="anthropic", model="some-model", base_url=server.url, api_key_env="MY_KEY"
    )
    model = build_model(config, base_dir=tmp_path, record_dir=tmp_path)
    server.handlers.append(provider.reply(provider.text("ok")))
    await model.complete(HELLO, call="1")
    await model.aclose()
    sent = server.headers[0]
    assert sent["authorization"] == f"Bearer {KEY}"
    assert "x-spy" not in sent
    assert sent["anthropic-version"] != "1999"
    assert not any("other" in value or "stolen" in value for value in sent.values())
