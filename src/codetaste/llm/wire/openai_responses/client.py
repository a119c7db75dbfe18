"""OpenAI's Responses protocol, client side: encode requests; decode replies and stop reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.errors import MalformedReply
from codetaste.llm.messages import Message, ProviderBlocks, Reply, StopReason, TextBlock, ToolCall, ToolResult
from codetaste.llm.wire.common import openai
from codetaste.llm.wire.common.http import member
from codetaste.llm.wire.common.openai import error_in_stream, usage_from
from codetaste.llm.wire.common.tool_calls import (
    FREEFORM_INPUT,
    arguments_to_json,
    format_result_text,
    read_call,
    unique_call_ids,
    valid_arguments_json,
    valid_tool_name,
)
from codetaste.llm.wire.protocols import OPENAI_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from codetaste.llm.messages import Block, Request, ToolSpec

PROTOCOL = "openai-responses"

FREEFORM_CALL = "custom_tool_call"
CALL_TYPES = ("function_call", FREEFORM_CALL, "local_shell_call")
"""Types of items that call a tool which the client runs."""

INCOMPLETE_REASONS = {"max_output_tokens": StopReason.LENGTH, "content_filter": StopReason.REFUSAL}

key_headers, request_headers, error_from = openai.key_headers, openai.request_headers, openai.error_from


def request_body(
    request: Request, model: str, caps: Sequence[str] = OPENAI_RESPONSES.cap_names
) -> dict[str, Any]:
    """Return the body of a streamed request to ``model``, with the output cap by the names ``caps``.

    The provider stores nothing: reasoning is returned encrypted and is sent back with the conversation. An
    empty option ``include`` is left out, since models without reasoning refuse it. Tools in the options are
    added to those of the request.
    """
    options = dict(request.options)
    tools = [*options.pop("tools", ()), *map(wire_tool, request.tools)]
    body: dict[str, Any] = {
        "model": model,
        **dict.fromkeys(caps, request.max_output_tokens),
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if tools:
        body |= {"tools": tools, "tool_choice": "auto", "parallel_tool_calls": True}
    if request.system.strip():
        body["instructions"] = request.system
    body["input"] = [item for message in request.messages for item in message_items(message)]
    body |= options
    if not body["include"]:
        del body["include"]
    return body


def wire_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool in the format of this protocol."""
    if tool.raw is not None and tool.raw.protocol == PROTOCOL:
        return dict(tool.raw.blocks[0])
    head = {"type": "function", "name": tool.name, "description": tool.description}
    # By default the provider makes every parameter required.
    return {**head, "parameters": dict(tool.parameters), "strict": False}


def message_items(message: Message) -> list[dict[str, Any]]:
    """Return a message as input items; the provider's own items are returned unchanged if it has them."""
    if message.raw is not None and message.raw.protocol == PROTOCOL:
        # A provider that stores nothing refuses reasoning that is only an id.
        return [
            _repaired(dict(item))
            for item in message.raw.blocks
            if item.get("type") != "reasoning" or item.get("encrypted_content") or item.get("content")
        ]
    # Results come first, as in the protocols that require them directly after their calls.
    ordered = sorted(message.content, key=lambda block: not isinstance(block, ToolResult))
    return [
        _item(block, message.role)
        for block in ordered
        if not isinstance(block, TextBlock) or block.text.strip()
    ]


def _item(block: Block, role: str) -> dict[str, Any]:
    match block:
        case TextBlock(text):
            kind = "output_text" if role == "assistant" else "input_text"
            return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        case ToolCall(call_id, name, arguments):
            call = {"type": "function_call", "call_id": call_id, "name": valid_tool_name(name)}
            return {**call, "arguments": arguments_to_json(arguments)}
        case ToolResult(call_id):
            output = format_result_text(block)
            return {"type": "function_call_output", "call_id": call_id, "output": output}


def _repaired(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of a reply as the provider accepts it back; a well-formed one is unchanged."""
    if item.get("type") != "function_call":
        return item
    name, arguments = valid_tool_name(item.get("name")), valid_arguments_json(item.get("arguments"))
    return {**item, "name": name, "arguments": arguments}


def whole_reply(response: object, request_id: str = "", *, taken: Collection[str] = ()) -> Reply:
    """Decode a reply that was not streamed."""
    if not isinstance(response, dict) or response.get("type") == "error":
        raise error_in_stream(response, accepted=True, started=False)
    if response.get("error") or response.get("status") == "failed":
        raise error_in_stream(failure_of(response), accepted=True, started=False)
    return reply_from(response, request_id=request_id, taken=taken)


def failure_of(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error body of a failed response, with the reason that the provider gives."""
    reason = member(response.get("incomplete_details"), "reason")
    message = f"the response failed ({reason})" if reason else "the response failed"
    return {"error": response.get("error") or {"message": message}}


def reply_from(response: Mapping[str, Any], *, request_id: str = "", taken: Collection[str] = ()) -> Reply:
    """Decode a complete response.

    Args:
        response: with the provider's items.
        request_id: the provider's id of the request.
        taken: ids of earlier tool calls; a call with such an id, or none, gets a new one.

    Raises:
        MalformedReply: it has no items, or has not ended.
    """
    items, status = response.get("output"), response.get("status")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MalformedReply(f"a response without output: {one_line(str(dict(response)))}")
    if status not in ("completed", "incomplete"):
        raise MalformedReply(f"a response whose status is {one_line(repr(status))}")
    calls = [item.get("call_id") for item in items if item.get("type") in CALL_TYPES]
    ids = iter(unique_call_ids(calls, taken))
    items = [{**item, "call_id": next(ids)} if item.get("type") in CALL_TYPES else item for item in items]
    content = tuple(neutral_blocks(items))
    model = response.get("model")
    return Reply(
        message=Message("assistant", content, ProviderBlocks(PROTOCOL, tuple(items)) if items else None),
        stop=stop_from(response, items),
        usage=usage_from(response.get("usage")),
        model=model if isinstance(model, str) else "",
        request_id=request_id or str(response.get("id") or ""),
    )


def stop_from(response: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> StopReason:
    """Return why a response ended; an unknown reason is ``OTHER``."""
    if response.get("status") == "incomplete":
        reason = member(response.get("incomplete_details"), "reason")
        return INCOMPLETE_REASONS.get(str(reason), StopReason.OTHER)
    if any(part.get("type") == "refusal" for item in items for part in parts_of(item)):
        return StopReason.REFUSAL
    return StopReason.TOOL_USE if any(item.get("type") in CALL_TYPES for item in items) else StopReason.END


def read_call_item(item: Mapping[str, Any]) -> ToolCall:
    """Return the tool call of an item whose type is in ``CALL_TYPES``."""
    call_id, name = item["call_id"], item.get("name")
    if item["type"] == FREEFORM_CALL:
        return read_call(call_id, name, {FREEFORM_INPUT: item.get("input")})
    if item["type"] == "local_shell_call":
        return read_call(call_id, "local_shell", item.get("action"))
    return read_call(call_id, name, item.get("arguments"))


def neutral_blocks(items: Iterable[Mapping[str, Any]]) -> Iterable[Block]:
    """Yield the tool calls and texts of a model's items."""
    for item in items:
        if item.get("type") in CALL_TYPES:
            yield read_call_item(item)
        for part in parts_of(item):
            text = part.get("refusal" if part.get("type") == "refusal" else "text")
            if isinstance(text, str) and text:
                yield TextBlock(text)


def parts_of(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parts of a message item; other items have none."""
    parts = item.get("content") if item.get("type") == "message" else None
    if isinstance(parts, str):
        return [{"type": "output_text", "text": parts}]
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
