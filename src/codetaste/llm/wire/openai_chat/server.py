"""Chat Completions protocol, server side: decode requests, encode replies and errors."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from time import time
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Message, ProviderBlocks, TextBlock, ToolSpec
from codetaste.llm.wire.common import openai
from codetaste.llm.wire.common.openai import wire_usage
from codetaste.llm.wire.common.request import (
    content_text,
    decoded_request,
    optional_flag,
    optional_objects,
    options_of,
    require_object,
    require_objects,
    require_text,
)
from codetaste.llm.wire.common.sse import format_event, split_text
from codetaste.llm.wire.common.stream import DONE
from codetaste.llm.wire.common.tool_calls import (
    FREEFORM_INPUT,
    parse_result_text,
    read_call,
)
from codetaste.llm.wire.openai_chat.client import (
    FINISH_REASONS,
    PROTOCOL,
    REASONING,
    wire_call,
    wire_messages,
    wire_tool,
)
from codetaste.llm.wire.protocols import OPENAI_CHAT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.llm.messages import Block, Reply
    from codetaste.llm.wire.common.error_codes import ErrorCode
    from codetaste.llm.wire.common.request import WireRequest


_READ = ("model", *OPENAI_CHAT.cap_names, "stream", "stream_options", "messages", "tools")

_WRITTEN = {"tool_choice": "auto"}

_USAGE = "include_usage"


def read_request(body: Any) -> WireRequest:  # noqa: ANN401 - JSON data
    """Read the parsed body of a request."""
    body = require_object(body, "the body")
    data = require_objects(body.get("messages"), "messages")
    tools = optional_objects(body.get("tools"), "tools")
    options = options_of(body, _READ, _WRITTEN)
    of_stream = require_object(body.get("stream_options") or {}, "stream_options")
    if more := {name: value for name, value in of_stream.items() if name != _USAGE}:
        options["stream_options"] = more
    if built_in := [tool for tool in tools if not _is_own(tool)]:
        options["tools"] = built_in
    system = ""
    match data:  # one text at the beginning is the system prompt
        case [{"role": "system", "content": str(text), **more}, *rest] if text.strip() and not more:
            system, data = text, rest
    return decoded_request(
        OPENAI_CHAT,
        body,
        system=system,
        messages=tuple(_messages(data)),
        tools=tuple(_tool(tool) for tool in tools if _is_own(tool)),
        options=options,
        include_usage=optional_flag(of_stream.get(_USAGE), f"stream_options.{_USAGE}"),
    )


def _is_own(tool: Mapping[str, Any]) -> bool:
    """Whether the client runs the tool itself and defines its parameters."""
    return bool(tool.get("type", "function") == "function")


def _tool(tool: Mapping[str, Any]) -> ToolSpec:
    function = require_object(tool.get("function"), "tools: function")
    schema = function.get("parameters")
    neutral = ToolSpec(
        require_text(function.get("name"), "tools: function.name"),
        str(function.get("description") or ""),
        schema if isinstance(schema, dict) else {},
    )
    return neutral if wire_tool(neutral) == tool else replace(neutral, raw=ProviderBlocks(PROTOCOL, (tool,)))


def _messages(data: list[dict[str, Any]]) -> Iterator[Message]:
    """Yield one message for each of the model's, and one for all messages between two of these."""
    for by_model, group in groupby(data, lambda each: each.get("role") == "assistant"):
        for messages in ([each] for each in group) if by_model else ([*group],):
            content = tuple(block for each in messages for block in _blocks(each))
            neutral = Message("assistant" if by_model else "user", content)
            exact = wire_messages(neutral) == messages
            yield neutral if exact else replace(neutral, raw=ProviderBlocks(PROTOCOL, tuple(messages)))


def _blocks(message: Mapping[str, Any]) -> Iterator[Block]:
    content = message.get("content")
    if require_text(message.get("role"), "messages: role") == "tool":
        call_id = require_text(message.get("tool_call_id"), "messages: tool_call_id")
        yield parse_result_text(call_id, content_text(content))
        return
    if isinstance(content, str):
        yield TextBlock(content)
    else:
        yield from (
            TextBlock(content_text([part])) for part in optional_objects(content, "messages: content")
        )
    for call in optional_objects(message.get("tool_calls"), "messages: tool_calls"):
        call_id = require_text(call.get("id"), "messages: the id of a tool call")
        function, freeform = call.get("function"), call.get("custom")
        if isinstance(freeform, dict):
            yield read_call(call_id, freeform.get("name"), {FREEFORM_INPUT: freeform.get("input")})
        else:
            function = function if isinstance(function, dict) else {}
            yield read_call(call_id, function.get("name"), function.get("arguments"))


def capped_body(wire: WireRequest, cap: int, caps: Sequence[str] = OPENAI_CHAT.cap_names) -> dict[str, Any]:
    """Return a client's body with its output capped at ``cap`` tokens; a stream ends with its usage."""
    body = {name: value for name, value in wire.body.items() if name not in OPENAI_CHAT.cap_names}
    if wire.stream:
        body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
    return {**body, **dict.fromkeys(caps, cap)}


_END = f"data: {DONE}\n\n".encode()
"""The last event of a stream."""


def write_reply(reply: Reply, wire: WireRequest, *, name: str) -> dict[str, Any]:
    """Return the body of a reply that is not streamed."""
    choice = {"index": 0, "message": _message(reply.message), "logprobs": None}
    usage = wire_usage(reply.usage, "prompt")
    return {
        **_head(wire, name, "chat.completion"),
        "choices": [{**choice, "finish_reason": FINISH_REASONS[reply.stop]}],
        **({} if usage is None else {"usage": usage}),
    }


def reply_messages(whole: dict[str, Any]) -> list[Any]:
    """Return a reply that ``write_reply`` encoded as messages of a later request."""
    return [whole["choices"][0]["message"]]


def stream_reply(reply: Reply, wire: WireRequest, *, name: str) -> Iterator[bytes]:
    """Yield the events of a streamed reply."""
    head = _head(wire, name, "chat.completion.chunk")
    yield _chunk(head, {"role": "assistant", "content": ""})
    for delta in _deltas(_message(reply.message)):
        yield _chunk(head, delta)
    yield _chunk(head, {}, FINISH_REASONS[reply.stop])
    # A client that did not request usage may not understand a chunk without a choice.
    if wire.include_usage and reply.usage is not None:
        yield format_event({**head, "choices": [], "usage": wire_usage(reply.usage, "prompt")})
    yield _END


def _head(wire: WireRequest, name: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{name}", "object": kind, "created": int(time()), "model": wire.model}


def _chunk(head: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return format_event({**head, "choices": [choice]})


def _message(message: Message) -> dict[str, Any]:
    """Return the message of a completion: the provider's own if there is one."""
    if message.raw is not None and message.raw.protocol == PROTOCOL and len(message.raw.blocks) == 1:
        return {"content": None, **message.raw.blocks[0]}
    texts = [block.text for block in message.content if isinstance(block, TextBlock) and block.text]
    wired: dict[str, Any] = {"role": "assistant", "content": "\n".join(texts) if texts else None}
    if message.tool_calls:
        wired["tool_calls"] = [wire_call(call) for call in message.tool_calls]
    return wired


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in (*REASONING[:2], "content", "refusal"):
        if isinstance(text := message.get(name), str):
            yield from ({name: piece} for piece in split_text(text))
        elif text is not None:
            yield {name: text}
    if details := message.get(REASONING[2]):
        yield {REASONING[2]: details}
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        begun = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield {"tool_calls": [begun]}
        for piece in split_text(str(function.get("arguments") or "")):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


ERROR_CODES, error_body = openai.ERROR_CODES, openai.error_body


def error_events(error: ErrorCode, message: str) -> bytes:
    """Return an error as the last events of a stream."""
    return format_event(error_body(error, message)) + _END
