"""OpenAI's Responses protocol, server side: decode requests, encode replies and errors."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, groupby
from time import time
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Message, ProviderBlocks, StopReason, TextBlock, ToolCall, ToolSpec
from codetaste.llm.wire.common import openai
from codetaste.llm.wire.common.error_codes import TRANSIENT_ERRORS
from codetaste.llm.wire.common.request import (
    content_text,
    decoded_request,
    optional_objects,
    options_of,
    require_object,
    require_objects,
    require_text,
)
from codetaste.llm.wire.common.sse import format_event, split_text
from codetaste.llm.wire.common.tool_calls import FREEFORM_INPUT, parse_result_text
from codetaste.llm.wire.openai_responses.client import (
    CALL_TYPES,
    FREEFORM_CALL,
    INCOMPLETE_REASONS,
    PROTOCOL,
    message_items,
    neutral_blocks,
    wire_tool,
)
from codetaste.llm.wire.protocols import OPENAI_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.llm.messages import Block, Reply
    from codetaste.llm.wire.common.error_codes import ErrorCode
    from codetaste.llm.wire.common.request import WireRequest


_READ = ("model", *OPENAI_RESPONSES.cap_names, "stream", "input", "instructions", "tools")

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
    """Read the parsed body of a request."""
    body = require_object(body, "the body")
    given = body.get("input")
    one = [{"role": "user", "content": given}]
    items = one if isinstance(given, str) else require_objects(given, "input")
    tools = optional_objects(body.get("tools"), "tools")
    options = options_of(body, _READ, _WRITTEN)
    if built_in := [tool for tool in tools if tool.get("type") not in _OWN]:
        options["tools"] = built_in
    instructions = body.get("instructions")
    return decoded_request(
        OPENAI_RESPONSES,
        body,
        system=instructions if isinstance(instructions, str) else "",
        messages=tuple(_messages(items)),
        tools=tuple(_tool(tool) for tool in tools if tool.get("type") in _OWN),
        options=options,
        freeform=frozenset(tool["name"] for tool in tools if tool.get("type") == _FREEFORM),
    )


def _tool(tool: Mapping[str, Any]) -> ToolSpec:
    given = tool.get("parameters")
    schema = _SCHEMA if tool["type"] == _FREEFORM else given if isinstance(given, dict) else {}
    name, description = require_text(tool.get("name"), "tools: name"), str(tool.get("description") or "")
    neutral = ToolSpec(name, description, schema)
    return neutral if wire_tool(neutral) == tool else replace(neutral, raw=ProviderBlocks(PROTOCOL, (tool,)))


def _messages(items: list[dict[str, Any]]) -> Iterator[Message]:
    """Yield one message for each sequence of items from the model, or from the client."""
    for by_model, group in groupby(items, _is_from_model):
        group_items = [*group]
        if by_model:
            for item in group_items:
                if item.get("type") in CALL_TYPES:
                    require_text(item.get("call_id"), "input: the call_id of a call")
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


def capped_body(
    wire: WireRequest, cap: int, caps: Sequence[str] = OPENAI_RESPONSES.cap_names
) -> dict[str, Any]:
    """Return a client's body with its output capped at ``cap`` tokens; nothing is stored by default."""
    stored = {"store": False} if wire.body.get("store") is None else {}
    return {**wire.body, **stored, **dict.fromkeys(caps, cap)}


_INCOMPLETE = {stop: reason for reason, stop in INCOMPLETE_REASONS.items()} | {StopReason.OTHER: "other"}

_PREFIXES = {"message": "msg", "function_call": "fc", FREEFORM_CALL: "ctc", "reasoning": "rs"}

_EMPTY: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    FREEFORM_CALL: {"input": ""},
    "reasoning": {"summary": []},
}


def write_reply(reply: Reply, wire: WireRequest, *, name: str) -> dict[str, Any]:
    """Return the body of a reply that is not streamed."""
    reason = _INCOMPLETE.get(reply.stop)
    return {
        **_head(wire, name),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _items(reply, wire, name),
        "usage": openai.wire_usage(reply.usage, "input"),
    }


def reply_messages(whole: dict[str, Any]) -> list[Any]:
    """Return a reply that ``write_reply`` encoded as messages of a later request."""
    return [*whole["output"]]


def stream_reply(reply: Reply, wire: WireRequest, *, name: str) -> Iterator[bytes]:
    """Yield the events of a streamed reply."""
    for number, event in enumerate(_events(reply, wire, name)):
        yield format_event({**event, "sequence_number": number}, name=event["type"])


def _events(reply: Reply, wire: WireRequest, name: str) -> Iterator[dict[str, Any]]:
    whole = write_reply(reply, wire, name=name)
    begun = {**_head(wire, name), "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index}
        started = {"status": "in_progress"} if "status" in item else {}
        empty = {**item, **_EMPTY.get(item["type"], {}), **started}
        yield {"type": "response.output_item.added", **at, "item": empty}
        for event in _item_events(item):
            yield {**event, **at, "item_id": item["id"]}
        yield {"type": "response.output_item.done", **at, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _head(wire: WireRequest, name: str) -> dict[str, Any]:
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": int(time()),
        "model": wire.model,
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _items(reply: Reply, wire: WireRequest, name: str) -> list[dict[str, Any]]:
    message = reply.message
    if message.raw is not None and message.raw.protocol == PROTOCOL:
        items = [dict(item) for item in message.raw.blocks]
    else:
        items = message_items(message)
        freeform = {call.id: call for call in message.tool_calls if call.name in wire.freeform}
        items = [_as_freeform_call(item, freeform) for item in items]
    return [_completed(item, f"{name}-{place}") for place, item in enumerate(items)]


def _as_freeform_call(item: dict[str, Any], calls: dict[str, ToolCall]) -> dict[str, Any]:
    """Return a call of a freeform tool in the format of such a call, any other item unchanged."""
    call = calls.get(item.get("call_id", ""))
    text = None if call is None else call.arguments.get(FREEFORM_INPUT)
    if call is None or not isinstance(text, str):
        return item
    return {"type": FREEFORM_CALL, "call_id": call.id, "name": call.name, "input": text}


def _completed(item: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an item in the format of a response: with an id, and with a status if its type has one."""
    kind = str(item.get("type") or "message")
    finished = {"id": f"{_PREFIXES.get(kind, 'item')}_{name}", **item, "type": kind}
    if kind != "reasoning":
        finished.setdefault("status", "completed")
    if kind == "message" and isinstance(item.get("content"), list):
        finished["content"] = [
            {"annotations": [], **part} if part.get("type") == "output_text" else part
            for part in item["content"]
        ]
    return finished


def _item_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events between the start and the end of an item."""
    match item:
        case {"type": "message", "content": [*parts]}:
            return chain.from_iterable(_part(part, place) for place, part in enumerate(parts))
        case {"type": "function_call", "arguments": str(text)}:
            return _text_events("response.function_call_arguments", "arguments", text)
        case {"type": "custom_tool_call", "input": str(text)}:
            return _text_events("response.custom_tool_call_input", "input", text)
        case {"type": "reasoning", "summary": [*parts]}:
            return chain.from_iterable(_summary(part, place) for place, part in enumerate(parts))
    return iter(())


def _part(part: dict[str, Any], place: int) -> Iterator[dict[str, Any]]:
    at = {"content_index": place}
    kind = "refusal" if part.get("type") == "refusal" else "text"
    text, event = str(part.get(kind) or ""), "refusal" if kind == "refusal" else "output_text"
    more: dict[str, Any] = {} if kind == "refusal" else {"logprobs": []}
    yield {"type": "response.content_part.added", "part": {**part, kind: ""}, **at}
    for grown in _text_events(f"response.{event}", kind, text):
        yield {**grown, **at, **more}
    yield {"type": "response.content_part.done", "part": part, **at}


def _summary(part: dict[str, Any], place: int) -> Iterator[dict[str, Any]]:
    at, text = {"summary_index": place}, str(part.get("text") or "")
    yield {"type": "response.reasoning_summary_part.added", "part": {**part, "text": ""}, **at}
    for event in _text_events("response.reasoning_summary_text", "text", text):
        yield {**event, **at}
    yield {"type": "response.reasoning_summary_part.done", "part": part, **at}


def _text_events(event: str, field: str, text: str) -> Iterator[dict[str, Any]]:
    """Yield the deltas of a text, and its complete form at the end."""
    for piece in split_text(text):
        yield {"type": f"{event}.delta", "delta": piece}
    yield {"type": f"{event}.done", field: text}


error_body = openai.error_body

ERROR_CODES = {
    kind: error if kind in TRANSIENT_ERRORS else replace(error, status=400)
    for kind, error in openai.ERROR_CODES.items()
}


def error_events(error: ErrorCode, message: str) -> bytes:
    """Return an error as the last event of a stream."""
    failure = {"code": error.code, "message": message}
    response = {"id": "resp_failed", "object": "response", "status": "failed", "error": failure}
    event = {"type": "response.failed", "response": {**response, "output": [], "usage": None}}
    return format_event(event, name="response.failed")
