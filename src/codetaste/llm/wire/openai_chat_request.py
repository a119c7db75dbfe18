"""Chat Completions protocol, server side: decode requests."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Message, Raw, Request, Text, ToolSpec
from codetaste.llm.wire.calls import FREEFORM_INPUT, read_call, result_of
from codetaste.llm.wire.openai_chat import CAPS, PROTOCOL, wire_messages, wire_tool
from codetaste.llm.wire.prompt import apart_in, shown
from codetaste.llm.wire.request import (
    UNCAPPED,
    WireRequest,
    cap_of,
    flag,
    optional_rows,
    options_of,
    rows,
    string,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.llm.messages import Block

_READ = ("model", *CAPS, "stream", "stream_options", "messages", "tools")
_WRITTEN = {"tool_choice": "auto"}
_USAGE = "include_usage"


def read_request(body: Any) -> WireRequest:  # noqa: ANN401 - JSON data
    """Read the parsed body of a request.

    Raises:
        MalformedRequest: it is malformed; the message has one line.
    """
    body = table(body, "the body")
    data = rows(body.get("messages"), "messages")
    tools = optional_rows(body.get("tools"), "tools")
    cap = cap_of(body, CAPS)
    options = options_of(body, _READ, _WRITTEN)
    of_stream = table(body.get("stream_options") or {}, "stream_options")
    if more := {name: value for name, value in of_stream.items() if name != _USAGE}:
        options["stream_options"] = more
    if built_in := [tool for tool in tools if not _is_own(tool)]:
        options["tools"] = built_in
    system, data = _system(data)
    request = Request(
        system=system,
        messages=tuple(_messages(data)),
        tools=tuple(_tool(tool) for tool in tools if _is_own(tool)),
        max_output_tokens=cap or UNCAPPED,
        options=options,
    )
    return WireRequest(
        protocol="openai-chat",
        body=body,
        request=request,
        model=string(body.get("model"), "model"),
        stream=flag(body.get("stream"), "stream"),
        cap=cap,
        apart=apart_in(body, "messages"),
        include_usage=flag(of_stream.get(_USAGE), f"stream_options.{_USAGE}"),
    )


def _is_own(tool: Mapping[str, Any]) -> bool:
    """Whether the client runs the tool itself and defines its parameters."""
    return bool(tool.get("type", "function") == "function")


def _tool(tool: Mapping[str, Any]) -> ToolSpec:
    function = table(tool.get("function"), "tools: function")
    schema = function.get("parameters")
    neutral = ToolSpec(
        string(function.get("name"), "tools: function.name"),
        str(function.get("description") or ""),
        schema if isinstance(schema, dict) else {},
    )
    if wire_tool(neutral) == tool:
        return neutral
    return ToolSpec(neutral.name, neutral.description, neutral.parameters, Raw(PROTOCOL, (dict(tool),)))


def _system(data: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Return the system prompt, if it is one text at the beginning, and the other messages."""
    match data:
        case [{"role": "system", "content": str(text), **more}, *rest] if text.strip() and not more:
            return text, rest
    return "", data


def _messages(data: list[dict[str, Any]]) -> Iterator[Message]:
    """Yield one message for each of the model's, and one for all messages between two of these."""
    for by_model, group in groupby(data, lambda each: each.get("role") == "assistant"):
        for messages in ([each] for each in group) if by_model else ([*group],):
            content = tuple(block for each in messages for block in _blocks(each))
            neutral = Message("assistant" if by_model else "user", content)
            exact = wire_messages(neutral) == messages
            yield neutral if exact else replace(neutral, raw=Raw(PROTOCOL, tuple(messages)))


def _blocks(message: Mapping[str, Any]) -> Iterator[Block]:
    content = message.get("content")
    if string(message.get("role"), "messages: role") == "tool":
        call_id = string(message.get("tool_call_id"), "messages: tool_call_id")
        yield result_of(call_id, shown(content))
        return
    if isinstance(content, str):
        yield Text(content)
    else:
        yield from (Text(shown([part])) for part in optional_rows(content, "messages: content"))
    for call in optional_rows(message.get("tool_calls"), "messages: tool_calls"):
        call_id = string(call.get("id"), "messages: the id of a tool call")
        function, freeform = call.get("function"), call.get("custom")
        if isinstance(freeform, dict):
            yield read_call(call_id, freeform.get("name"), {FREEFORM_INPUT: freeform.get("input")})
        else:
            function = function if isinstance(function, dict) else {}
            yield read_call(call_id, function.get("name"), function.get("arguments"))
