"""The common behaviour of the clients of all three protocols, each against a server of its protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import (
    ConfigError,
    MalformedReply,
    ModelError,
    ModelRefused,
    ModelSetupError,
    ModelUnavailable,
    RateLimited,
)
from codetaste.llm.build import build_model
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Message, Request, StopReason, TextBlock, ToolSpec, Usage
from codetaste.llm.model import Model
from support.llm.provider import server as provider
from support.llm.provider.server import PROTOCOLS, Protocol

KEY = "sk-dummy-key-of-a-test"
TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})
HELLO = Request("Be brief.", (Message("user", (TextBlock("hello"),)),), (TOOL,))
COUNTS = {
    "input_tokens": 11,
    "cache_creation_input_tokens": 7,
    "cache_read_input_tokens": 5,
    "output_tokens": 42,
    "reasoning_tokens": 9,
}


@pytest.fixture
def server() -> Iterator[provider.Server]:
    with provider.serving() as running:
        yield running


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    return request.param


def client(
    protocol: Protocol, url: str, monkeypatch: pytest.MonkeyPatch, *, timeout: float = 20.0, **fields: Any
) -> Model:
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    base_url = url if protocol == "anthropic" else f"{url}/v1"
    given = {"base_url": base_url, "api_key_env": "MY_KEY", "timeout": timeout, **fields}
    config = ModelConfig.model_validate({"id": "m", "provider": protocol, "model": "some-model", **given})
    return build_model(config, base_dir=Path(), record_dir=Path())


@pytest.fixture
async def model(
    server: provider.Server, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Model]:
    built = client(protocol, server.url, monkeypatch)
    yield built
    await built.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("chunked", [False, True])
async def test_reply_is_independent_of_chunk_boundaries(
    server: provider.Server, model: Model, protocol: Protocol, *, chunked: bool
) -> None:
    async def handle(exchange: provider.Exchange) -> None:
        exchange.call.piece = lambda: 3
        await provider.send_reply(exchange, provider.text("näh 🙂"), usage=COUNTS, chunked=chunked)

    server.handlers.append(handle)
    reply = await model.complete(HELLO, call="1")
    assert (reply.message.text, reply.stop, reply.model) == ("näh 🙂", StopReason.END, "some-model")
    assert reply.request_id == "req_1"
    reasoning = 0 if protocol == "anthropic" else 9
    assert reply.usage == Usage(input=11, cache_read=5, cache_write=7, output=42, reasoning=reasoning)


@pytest.mark.anyio
async def test_no_call_is_lost_when_server_closes_idle_connection(
    server: provider.Server, model: Model, protocol: Protocol
) -> None:
    async def handle(exchange: provider.Exchange) -> None:
        usage = provider.count_usage(exchange.body, [], exchange.cap)
        events = provider.events_of(
            exchange.body, [provider.text("ok")], "end_turn", usage, protocol=protocol
        )
        # Like llama.cpp's server, but with a longer time in which a call could be lost.
        await exchange.stream(events, chunked=True, headers={"keep-alive": "timeout=5, max=100"})
        await anyio.sleep(0.2)
        await exchange.call.hang_up()

    server.default = handle
    for number in range(3):
        assert (await model.complete(HELLO, call=str(number))).message.text == "ok"


@pytest.mark.anyio
async def test_conversation_over_context_is_refused_with_reason(
    server: provider.Server, model: Model
) -> None:
    message = "request (6018 tokens) exceeds the available context size (2048 tokens), try increasing it"
    error = {"code": 400, "message": message, "type": "exceed_context_size_error", "n_prompt_tokens": 6018}
    server.handlers.append(provider.status(400, {"error": {**error, "n_ctx": 2048}}))
    with pytest.raises(ModelRefused, match=r"6018 tokens.*the conversation is too long") as caught:
        await model.complete(HELLO, call="1")
    assert caught.value.unbilled


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "kind", "hint"),
    [
        (400, ModelSetupError, "options"),
        (401, ModelSetupError, "api_key_env"),
        (402, ModelSetupError, "credit"),
        (403, ModelSetupError, "may not use this model"),
        (404, ModelSetupError, "base_url"),
        (413, ModelRefused, "too long"),
        (422, ModelSetupError, "options"),
        (307, ModelSetupError, "redirects"),
        (429, RateLimited, "no"),
        (500, ModelUnavailable, "no"),
        (503, ModelUnavailable, "no"),
        (529, ModelUnavailable, "no"),
    ],
)
async def test_error_of_status_has_type_and_hint(
    server: provider.Server, model: Model, code: int, kind: type[ModelError], hint: str
) -> None:
    server.handlers.append(provider.status(code, location="http://127.0.0.1:9/"))
    with pytest.raises(kind, match=rf"HTTP {code}: .*{hint}") as caught:
        await model.complete(HELLO, call="1")
    assert caught.value.unbilled
    assert caught.value.overloaded is (code in {429, 503, 529})
    assert len(server.bodies) == 1  # the client retries nothing by itself


@pytest.mark.anyio
@pytest.mark.parametrize("code", [408, 409, 500, 502, 503, 504, 520, 522, 529])
async def test_only_an_error_of_the_provider_itself_is_certainly_not_billed(
    server: provider.Server, model: Model, code: int
) -> None:
    foreign: list[object] = ["<html>Bad gateway</html>", "", "upstream timed out", "[]", "{}"]
    foreign += [{"message": "Internal server error"}, {"error": "Internal Server Error", "path": "/v1"}]
    for body in (None, *foreign):
        server.handlers.append(provider.status(code, body))
        with pytest.raises(ModelUnavailable, match=f"HTTP {code}") as caught:
            await model.complete(HELLO, call="1")
        assert caught.value.unbilled is (body is None and code in {408, 409, 500, 503, 529}), body


@pytest.mark.anyio
async def test_retry_after_of_server_is_used(server: provider.Server, model: Model) -> None:
    for headers, wait_s in (({"retry_after": "7"}, 7.0), ({"retry_after_ms": "250"}, 0.25), ({}, None)):
        server.handlers.append(provider.status(429, **headers))
        with pytest.raises(RateLimited) as caught:
            await model.complete(HELLO, call="1")
        assert caught.value.retry_after_s == wait_s


@pytest.mark.anyio
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("after", [1, 3])
async def test_interrupted_reply_may_be_billed(
    server: provider.Server, model: Model, protocol: Protocol, *, chunked: bool, broken: bool, after: int
) -> None:
    server.handlers.append(
        provider.cut(provider.text("a long reply"), after=after, chunked=chunked, reset=broken)
    )
    with pytest.raises(ModelUnavailable, match="lost") as caught:
        await model.complete(HELLO, call="1")
    assert not caught.value.unbilled
    if protocol == "anthropic":  # it reports the tokens of the prompt first
        assert isinstance(caught.value.usage, Usage)
        assert caught.value.usage.input > 0
    else:
        assert caught.value.usage is None


@pytest.mark.anyio
@pytest.mark.parametrize("handler", [provider.hang_up, provider.reset])
async def test_connection_dropped_before_reply_may_be_billed(
    server: provider.Server, model: Model, handler: provider.Handler
) -> None:
    server.handlers.append(handler)
    with pytest.raises(ModelUnavailable, match="lost before it answered") as caught:
        await model.complete(HELLO, call="1")
    assert not caught.value.unbilled


@pytest.mark.anyio
async def test_unreachable_provider_bills_nothing(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider.serving() as gone:
        url = gone.url
    model = client(protocol, url, monkeypatch)
    with pytest.raises(ModelUnavailable, match="cannot be reached") as caught:
        await model.complete(HELLO, call="1")
    assert caught.value.unbilled
    await model.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("after", [0, 3])
async def test_stalled_reply_ends_at_time_limit_and_may_be_billed(
    server: provider.Server, protocol: Protocol, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    server.handlers.append(provider.stall(provider.text("x"), after=after))
    model = client(protocol, server.url, monkeypatch, timeout=1.0)
    with anyio.fail_after(60), pytest.raises(ModelUnavailable) as caught:
        await model.complete(HELLO, call="1")
    assert not caught.value.unbilled
    assert (caught.value.usage is not None) is (after > 0 and protocol == "anthropic")
    await model.aclose()


@pytest.mark.anyio
async def test_cancelled_call_closes_connection_and_next_call_works(
    server: provider.Server, model: Model
) -> None:
    server.handlers += [provider.stall(provider.text("x")), provider.reply(provider.text("fine"))]
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: model.complete(HELLO, call="1"))
        while not server.bodies:  # noqa: ASYNC110 - it has its own thread
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    assert (await model.complete(HELLO, call="2")).message.text == "fine"
    assert len({*server.ports}) == 2


@pytest.mark.anyio
async def test_data_after_complete_reply_is_not_awaited(server: provider.Server, model: Model) -> None:
    async def handle(exchange: provider.Exchange) -> None:
        usage = provider.count_usage(exchange.body, [], exchange.cap)
        events = provider.events_of(
            exchange.body, [provider.text("all")], "end_turn", usage, protocol=exchange.protocol
        )
        await exchange.stream(events, chunked=True, end=False)
        await anyio.sleep(3600)

    server.handlers.append(handle)
    with anyio.fail_after(60):
        assert (await model.complete(HELLO, call="1")).message.text == "all"


@pytest.mark.anyio
@pytest.mark.parametrize(("protocol", "missing"), [("anthropic", 1), ("openai-chat", 1), ("openai-chat", 2)])
@pytest.mark.parametrize("reset", [False, True])
async def test_whole_reply_needs_no_last_event(
    server: provider.Server, model: Model, missing: int, *, reset: bool
) -> None:
    """The server keeps the connection open, or resets it."""

    async def handle(exchange: provider.Exchange) -> None:
        events = provider.events_of(
            exchange.body, [provider.text("all")], "end_turn", COUNTS, protocol=exchange.protocol
        )
        await exchange.stream(events[:-missing], chunked=True, end=False)
        await (exchange.call.reset() if reset else anyio.sleep(3600))

    server.handlers.append(handle)
    with anyio.fail_after(60):
        reply = await model.complete(HELLO, call="1")
    assert (reply.message.text, reply.stop) == ("all", StopReason.END)
    assert (reply.usage is None) is (missing == 2)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "handler",
    [
        provider.status(200, "<html>Log in to the hotel</html>", content_type="text/html"),
        provider.status(200, "data: {}\n\n", content_type="text/plain"),
        provider.status(200, "", content_type=""),
        provider.status(204, "", content_type="application/json"),
        provider.status(200, "{oops", content_type="application/json"),
        provider.status(200, "[]", content_type="application/json"),
        provider.status(200, "{}", content_type="application/json"),
        provider.status(200, '{"choices": [7], "output": [7], "content": [7]}'),
        provider.status(200, '{"choices": [{"message": {"tool_calls": [{}]}}], "output": {}}'),
        provider.status(200, "data: {oops\n\n", content_type="text/event-stream"),
        provider.status(200, "data: [1]\n\n", content_type="text/event-stream"),
        provider.status(200, "data: 1e999999\n\n", content_type="text/event-stream"),
    ],
)
async def test_invalid_reply_is_reported_in_one_short_line(
    server: provider.Server, model: Model, handler: provider.Handler
) -> None:
    server.handlers.append(handler)
    with pytest.raises(ModelError) as caught:
        await model.complete(HELLO, call="1")
    assert isinstance(caught.value, MalformedReply | ModelUnavailable)
    assert not caught.value.unbilled
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.anyio
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_invalid_utf_8_is_a_malformed_reply(
    server: provider.Server, model: Model, content_type: str
) -> None:
    async def handle(exchange: provider.Exchange) -> None:
        await exchange.respond(200, b'data: {"\xff": 1}\n\n', content_type, {})

    server.handlers.append(handle)
    with pytest.raises(MalformedReply, match="not UTF-8"):
        await model.complete(HELLO, call="1")


@pytest.mark.anyio
async def test_endless_refusal_is_not_read_to_the_end(server: provider.Server, model: Model) -> None:
    async def handle(exchange: provider.Exchange) -> None:
        headers = {"content-type": "text/plain", "transfer-encoding": "chunked", "retry-after": "7"}
        await exchange.call.head(429, headers)
        while True:
            await exchange.call.send(b"no " * 10_000)

    server.handlers.append(handle)
    server.default = provider.reply(provider.text("ok"))
    with anyio.fail_after(60), pytest.raises(RateLimited, match="HTTP 429: no no") as caught:
        await model.complete(HELLO, call="1")
    assert caught.value.retry_after_s == 7
    assert (await model.complete(HELLO, call="2")).message.text == "ok"


@pytest.mark.anyio
async def test_html_error_page_is_not_quoted(server: provider.Server, model: Model) -> None:
    page = "<html>" + "bad gateway " * 10_000 + "</html>"
    server.handlers.append(provider.status(502, page, content_type="text/html"))
    with pytest.raises(ModelUnavailable, match="HTTP 502: an HTML page"):
        await model.complete(HELLO, call="1")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "absurd",
    [
        None,
        7,
        {"output_tokens": 3, "completion_tokens": 3},
        {"input_tokens": 5, "prompt_tokens": 5, "output_tokens": None},
        {"input_tokens": 0, "prompt_tokens": 0, "output_tokens": 5, "completion_tokens": 5},
        *(
            {"input_tokens": 5, "prompt_tokens": 5, "output_tokens": odd, "completion_tokens": odd}
            for odd in (-1, 2.5, True, "-3", "3 k", None, [3])
        ),
        *(
            {"input_tokens": odd, "prompt_tokens": odd, "output_tokens": 3, "completion_tokens": 3}
            for odd in (-1, 2.5, True, "-3", "3 k", None, [3])
        ),
    ],
)
async def test_missing_or_invalid_usage_is_unknown(
    server: provider.Server, model: Model, absurd: Any
) -> None:
    server.handlers.append(provider.reply(provider.text("x"), report_usage=lambda _: absurd))
    reply = await model.complete(HELLO, call="1")
    assert reply.message.text == "x"
    assert reply.usage is None


@pytest.mark.anyio
async def test_unstreamed_reply_is_read(server: provider.Server, model: Model, protocol: Protocol) -> None:
    async def handle(exchange: provider.Exchange) -> None:
        exchange.body["stream"] = False
        blocks = [
            provider.text("all at once"),
            {"type": "tool_use", "id": "1", "name": "look", "input": {"at": "é"}},
        ]
        await provider.send_reply(exchange, *blocks, stop="tool_use", usage=COUNTS)

    server.handlers.append(handle)
    reply = await model.complete(HELLO, call="1")
    assert (reply.message.text, reply.stop) == ("all at once", StopReason.TOOL_USE)
    assert [call.arguments for call in reply.message.tool_calls] == [{"at": "é"}]
    assert reply.usage is not None
    assert (reply.usage.prompt, reply.usage.output) == (23, 42)


@pytest.mark.anyio
async def test_environment_is_ignored_except_named_key(
    server: provider.Server,
    protocol: Protocol,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    custom = "x-spy: 1\nAuthorization: Bearer stolen\nanthropic-version: 1999"
    for name, value in {
        "API_KEY": "key-other",
        "ADMIN_KEY": "admin-other",
        "AUTH_TOKEN": "token-other",
        "BASE_URL": "http://127.0.0.1:9/",
        "ORG_ID": "org-other",
        "PROJECT_ID": "project-other",
        "LOG": "debug",
        "CUSTOM_HEADERS": custom,
    }.items():
        monkeypatch.setenv(f"OPENAI_{name}", value)
        monkeypatch.setenv(f"ANTHROPIC_{name}", value)
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    model = client(protocol, server.url, monkeypatch)
    server.handlers.append(provider.reply(provider.text("ok")))
    await model.complete(HELLO, call="1")
    await model.aclose()
    (sent,) = server.headers
    assert sent["authorization"] == f"Bearer {KEY}"
    assert "x-spy" not in sent
    assert not any("other" in value or "stolen" in value or "1999" in value for value in sent.values())
    assert "".join(capfd.readouterr()) == ""


@pytest.mark.anyio
async def test_key_repeated_by_provider_is_redacted(server: provider.Server, model: Model) -> None:
    body = {"error": {"type": "authentication_error", "message": f"bad key {KEY}"}}
    page = f"<p>{KEY}</p>"
    error_event = "data: " + json.dumps({"type": "error", **body}) + "\n\n"
    server.handlers += [
        provider.status(401, body),
        provider.status(401, page, content_type="text/html"),
        provider.status(200, page, content_type="text/html"),
        provider.status(200, error_event, content_type="text/event-stream"),
        provider.status(200, {"type": "error", **body}),
        provider.status(200, {"headers": {"authorization": f"Bearer {KEY}"}}),
        provider.status(200, f"{{{KEY}"),
        provider.status(200, f"data: {{{KEY}\n\n", content_type="text/event-stream"),
        provider.status(200, f"data: [{json.dumps(KEY)}]\n\n", content_type="text/event-stream"),
        *(provider.status(200, f"{{{'x' * length}{KEY}") for length in range(280, 300)),
    ]
    for number in range(len(server.handlers)):
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO, call=str(number))
        assert KEY[:5] not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, "MY_KEY is not set"), ("  ", "MY_KEY is not set"), ("schlüssel", "not an API key")],
)
def test_error_of_missing_key_names_variable_and_hides_value(
    monkeypatch: pytest.MonkeyPatch, protocol: Protocol, value: str | None, message: str
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    config = ModelConfig(id="m", provider=protocol, model="x", api_key_env="MY_KEY")
    with pytest.raises(ConfigError, match=message) as caught:
        build_model(config, base_dir=Path(), record_dir=Path())
    assert "schlüssel" not in str(caught.value)
