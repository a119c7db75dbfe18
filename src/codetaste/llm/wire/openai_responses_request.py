"""OpenAI's Responses protocol, server side: decode requests."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Message, ProviderBlocks, Request, TextBlock, ToolSpec
from codetaste.llm.wire.calls import FREEFORM_INPUT, parse_result_text
from codetaste.llm.wire.openai_responses import (
    CALL_TYPES,
    PROTOCOL,
    message_items,
    neutral_blocks,
    wire_tool,
)
from codetaste.llm.wire.prompt import content_text, separately_billed_features
from codetaste.llm.wire.request import (
    DEFAULT_CAP,
    WireRequest,
    cap_of,
    optional_flag,
    optional_objects,
    options_of,
    require_object,
    require_objects,
    require_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.llm.messages import Block

CAP_NAMES = ("max_output_tokens",)
_READ = ("model", "max_output_tokens", "stream", "input", "instructions", "tools")
_WRITTEN = {
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
}
_FREEFORM = "custom"
_OWN = ("function", _FREEFORM)
"""Types of tools that the client runs itself and defines."""
_SCHEMA = {
    "type": "object",
    "properties": {FREEFORM_INPUT: {"type": "string"}},
    "required": [FREEFORM_INPUT],
}
"""The parameters of a freeform tool in neutral form."""
_OUTPUT = "_output"


def read_request(body: Any) -> WireRequest:  # noqa: ANN401 - JSON data
    """Read the parsed body of a request.

    Raises:
        MalformedRequest: it is malformed; the message has one line.
    """
    body = require_object(body, "the body")
    given = body.get("input")
    items = (
        [{"role": "user", "content": given}] if isinstance(given, str) else require_objects(given, "input")
    )
    tools = optional_objects(body.get("tools"), "tools")
    cap = cap_of(body, CAP_NAMES)
    options = options_of(body, _READ, _WRITTEN)
    if built_in := [tool for tool in tools if tool.get("type") not in _OWN]:
        options["tools"] = built_in
    instructions = body.get("instructions")
    request = Request(
        system=instructions if isinstance(instructions, str) else "",
        messages=tuple(_messages(items)),
        tools=tuple(_tool(tool) for tool in tools if tool.get("type") in _OWN),
        max_output_tokens=cap or DEFAULT_CAP,
        options=options,
    )
    return WireRequest(
        protocol="openai",
        body=body,
        request=request,
        model=require_text(body.get("model"), "model"),
        stream=optional_flag(body.get("stream"), "stream"),
        cap=cap,
        separately_billed=separately_billed_features(body, "input"),
        freeform=frozenset(tool["name"] for tool in tools if tool.get("type") == _FREEFORM),
    )


def _tool(tool: Mapping[str, Any]) -> ToolSpec:
    given = tool.get("parameters")
    schema = _SCHEMA if tool["type"] == _FREEFORM else given if isinstance(given, dict) else {}
    name, description = require_text(tool.get("name"), "tools: name"), str(tool.get("description") or "")
    neutral = ToolSpec(name, description, schema)
    if wire_tool(neutral) == tool:
        return neutral
    return ToolSpec(name, description, schema, ProviderBlocks(PROTOCOL, (tool,)))


def _messages(items: list[dict[str, Any]]) -> Iterator[Message]:
    """Yield one message for each sequence of items from the model, or from the client."""
    for by_model, group in groupby(items, _is_from_model):
        group_items = [*group]
        if by_model:
            _check_calls(group_items)
            neutral = Message("assistant", tuple(neutral_blocks(group_items)))
        else:
            neutral = Message("user", tuple(_client_blocks(group_items)))
        exact = message_items(neutral) == group_items
        yield neutral if exact else replace(neutral, raw=ProviderBlocks(PROTOCOL, tuple(group_items)))


def _is_from_model(item: Mapping[str, Any]) -> bool:
    """Whether an item comes from the model: not a tool result, and not a message of another role."""
    kind = item.get("type")
    if "role" in item:
        return bool(item["role"] == "assistant")
    return not (isinstance(kind, str) and kind.endswith(_OUTPUT))


def _check_calls(items: list[dict[str, Any]]) -> None:
    for item in items:
        if item.get("type") in CALL_TYPES:
            require_text(item.get("call_id"), "input: the call_id of a call")


def _client_blocks(items: list[dict[str, Any]]) -> Iterator[Block]:
    for item in items:
        if "role" not in item:
            call_id = require_text(item.get("call_id"), "input: the call_id of an output")
            yield parse_result_text(call_id, content_text(item.get("output")))
        elif isinstance(content := item.get("content"), str):
            yield TextBlock(content)
        else:
            yield from (
                TextBlock(content_text([part])) for part in optional_objects(content, "input: content")
            )
