"""Anthropic Messages protocol, server side: decode requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Message, ProviderBlocks, Request, TextBlock, ToolResult, ToolSpec
from codetaste.llm.wire.anthropic import PROTOCOL, message_blocks, wire_tool
from codetaste.llm.wire.calls import read_call
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

CAP_NAMES = ("max_tokens",)
_READ = ("model", "max_tokens", "stream", "messages", "system", "tools")
_WRITTEN = {"tool_choice": {"type": "auto"}}


def read_request(body: Any) -> WireRequest:  # noqa: ANN401 - JSON data
    """Read the parsed body of a request.

    Raises:
        MalformedRequest: it is malformed; the message has one line.
    """
    body = require_object(body, "the body")
    messages = require_objects(body.get("messages"), "messages")
    tools = optional_objects(body.get("tools"), "tools")
    cap = cap_of(body, CAP_NAMES)
    # The client sets cache markers itself; more of them would exceed the provider's limit.
    options = options_of(body, _READ, _WRITTEN) | {"cache_control": False}
    if built_in := [tool for tool in tools if not _is_own(tool)]:
        options["tools"] = built_in
    system, blocks = _system(body.get("system"))
    if blocks is not None:
        options["system"] = blocks
    request = Request(
        system=system,
        messages=tuple(_message(data, f"messages[{place}]") for place, data in enumerate(messages)),
        tools=tuple(_tool(tool, "tools") for tool in tools if _is_own(tool)),
        max_output_tokens=cap or DEFAULT_CAP,
        options=options,
    )
    return WireRequest(
        protocol="anthropic",
        body=body,
        request=request,
        model=require_text(body.get("model"), "model"),
        stream=optional_flag(body.get("stream"), "stream"),
        cap=cap,
        separately_billed=separately_billed_features(body, "messages"),
    )


def _is_own(tool: Mapping[str, Any]) -> bool:
    """Whether the client runs the tool itself and defines its parameters."""
    return tool.get("type") in (None, "custom")


def _tool(tool: Mapping[str, Any], where: str) -> ToolSpec:
    schema = tool.get("input_schema")
    neutral = ToolSpec(
        require_text(tool.get("name"), f"{where}.name"),
        str(tool.get("description") or ""),
        schema if isinstance(schema, dict) else {},
    )
    if wire_tool(neutral) == tool:
        return neutral
    return ToolSpec(neutral.name, neutral.description, neutral.parameters, ProviderBlocks(PROTOCOL, (tool,)))


def _system(system: object) -> tuple[str, list[dict[str, Any]] | None]:
    """Return the text of the system prompt, and its blocks if they contain more than the text."""
    if system is None or isinstance(system, str):
        return system or "", None
    blocks = require_objects(system, "system")
    text = "\n\n".join(str(block.get("text") or "") for block in blocks)
    return text, None if blocks == [{"type": "text", "text": text}] else blocks


def _message(data: Mapping[str, Any], where: str) -> Message:
    content = data.get("content")
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}]
    else:
        blocks = optional_objects(content, f"{where}.content")
    role = require_text(data.get("role"), f"{where}.role")
    neutral = Message("assistant" if role == "assistant" else "user", tuple(_neutral(blocks, where)))
    if role != neutral.role:
        # Clients also send "system" messages in mid-conversation, which have no neutral form.
        return replace(neutral, raw=ProviderBlocks(PROTOCOL, ({**data, "content": blocks},)))
    exact = message_blocks(neutral) == blocks
    return neutral if exact else replace(neutral, raw=ProviderBlocks(PROTOCOL, tuple(blocks)))


def _neutral(blocks: list[dict[str, Any]], where: str) -> Iterator[Block]:
    for block in blocks:
        match block.get("type"):
            case "text":
                yield TextBlock(str(block.get("text") or ""))
            case "tool_use":
                call_id = require_text(block.get("id"), f"{where}: the id of a tool_use")
                yield read_call(call_id, block.get("name"), block.get("input"))
            case "tool_result":
                call_id = require_text(block.get("tool_use_id"), f"{where}: the id of a tool_result")
                yield ToolResult(
                    call_id, content_text(block.get("content")), is_error=block.get("is_error") is True
                )
            case "image" | "document":
                yield TextBlock(content_text([block]))
            case _:
                pass
