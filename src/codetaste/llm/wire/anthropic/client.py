"""Anthropic Messages protocol, client side: encode requests; decode replies, usage and errors."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.errors import MalformedReply, ModelRefused, ModelSetupError, ModelUnavailable
from codetaste.llm.messages import (
    Message,
    ProviderBlocks,
    Reply,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResult,
    Usage,
)
from codetaste.llm.wire.common.http import error_for_status, member, retry_after_s, too_long
from codetaste.llm.wire.common.openai import parse_error_body
from codetaste.llm.wire.common.tool_calls import read_call, unique_call_ids, valid_tool_name
from codetaste.llm.wire.common.turns import join_turns
from codetaste.llm.wire.common.usage import largest
from codetaste.llm.wire.protocols import ANTHROPIC

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from codetaste.errors import ModelError
    from codetaste.llm.messages import Block, Request, ToolSpec

PROTOCOL = ANTHROPIC.name

_STOPS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.REFUSAL,
    "pause_turn": StopReason.OTHER,
}
STOP_REASONS = {
    StopReason.END: "end_turn",
    StopReason.TOOL_USE: "tool_use",
    StopReason.LENGTH: "max_tokens",
    StopReason.REFUSAL: "refusal",
    StopReason.OTHER: "pause_turn",
}
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_TOO_LONG = "exceed_context_size_error"
"""The error type of llama.cpp's server."""
_FIELDS = {
    "text": ("type", "text", "citations", "cache_control"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input", "caller", "cache_control"),
}
"""What the provider accepts in blocks of these types; servers put other fields into them."""
_NOT_CACHEABLE = frozenset({"thinking", "redacted_thinking"})
# The provider looks for a cache entry some twenty blocks back: two moving breakpoints cover long turns.
_MOVING_BREAKPOINTS = 2


def key_headers(key: str) -> dict[str, str]:
    """Return the header with an API key."""
    return {"x-api-key": key}


def request_headers(request: Request) -> dict[str, str]:
    """Return the header with the option ``betas``, if it is set."""
    betas = request.options.get("betas")
    return {"anthropic-beta": ",".join(betas)} if betas else {}


def request_body(request: Request, model: str, caps: Sequence[str] = ANTHROPIC.cap_names) -> dict[str, Any]:
    """Return the body of a streamed request to ``model``, with the output cap by the names ``caps``.

    Two options are not sent as such: ``cache_control`` is the marker to put at up to four places of the
    prompt (a table, or false for none), and ``betas`` is sent in a header. Tools in the options are added to
    those of the request.
    """
    local = ("cache_control", "betas")
    options = {name: value for name, value in request.options.items() if name not in local}
    marker = request.options.get("cache_control", {"type": "ephemeral"})
    tools = [*options.pop("tools", ()), *map(wire_tool, request.tools)]
    wired = map(wire_message, request.messages)
    messages = join_turns([message] for message in wired if message["content"])
    body: dict[str, Any] = {"model": model, **dict.fromkeys(caps, request.max_output_tokens), "stream": True}
    if tools:
        body |= {"tools": tools, "tool_choice": {"type": "auto"}}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    body["messages"] = messages
    if marker:
        _mark(body, dict(marker))
    return body | options


def wire_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool in the format of this protocol."""
    if tool.raw is not None and tool.raw.protocol == PROTOCOL:
        return dict(tool.raw.blocks[0])
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def wire_message(message: Message) -> dict[str, Any]:
    """Return a message in the format of this protocol; one with a third role is in ``raw`` as a whole."""
    match message.raw:
        case ProviderBlocks(protocol=protocol, blocks=({"role": _, "content": _} as whole,)) if (
            protocol == PROTOCOL
        ):
            return dict(whole)
    return {"role": message.role, "content": message_blocks(message)}


def message_blocks(message: Message) -> list[dict[str, Any]]:
    """Return the blocks of a message; the provider's own blocks are returned unchanged if it has them."""
    if message.raw is not None and message.raw.protocol == PROTOCOL:
        blocks = [_repaired(dict(block)) for block in message.raw.blocks]
    else:
        # Results come first: the protocol requires them directly after their calls.
        ordered = sorted(message.content, key=lambda block: not isinstance(block, ToolResult))
        blocks = [_block(block) for block in ordered]
    # The provider may send empty texts, but does not accept them.
    return [block for block in blocks if block.get("type") != "text" or str(block.get("text") or "").strip()]


def _block(block: Block) -> dict[str, Any]:
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text}
        case ToolCall(call_id, name, arguments):
            call = {"type": "tool_use", "id": call_id, "name": valid_tool_name(name)}
            return {**call, "input": dict(arguments)}
        case ToolResult(call_id, content, is_error):
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
            if content.strip():
                result["content"] = content
            return {**result, "is_error": True} if is_error else result


def _repaired(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block of a reply as the provider accepts it back; a well-formed one is unchanged."""
    if (fields := _FIELDS.get(str(block.get("type")))) is not None:
        block = {name: value for name, value in block.items() if name in fields}
    if block.get("type") != "tool_use":
        return block
    given = block.get("input")
    name, arguments = valid_tool_name(block.get("name")), given if isinstance(given, dict) else {}
    return {**block, "name": name, "input": arguments}


def _mark(body: dict[str, Any], marker: dict[str, Any]) -> None:
    """Put the cache marker after the tools, after the system prompt, and after the last messages."""
    if body.get("tools"):
        body["tools"] = [*body["tools"][:-1], {**body["tools"][-1], "cache_control": marker}]
    if "system" in body:
        body["system"][-1]["cache_control"] = marker
    users = [message for message in body["messages"] if message["role"] == "user"]
    for message in users[-_MOVING_BREAKPOINTS:]:
        *before, last = message["content"]
        if last.get("type") not in _NOT_CACHEABLE:
            message["content"] = [*before, {**last, "cache_control": marker}]


def usage_from(reported: object) -> Usage | None:
    """Return the usage that the provider reported, or None if it is missing or malformed."""
    if not isinstance(reported, dict):
        return None
    creation = reported.get("cache_creation")
    by_life = [largest(0, member(creation, f"ephemeral_{life}_input_tokens")) for life in ("5m", "1h")]
    counts: dict[str, Any] = {
        "input": largest(reported.get("input_tokens")),
        "cache_read": largest(0, reported.get("cache_read_input_tokens")),
        "cache_write": largest(
            reported.get("cache_creation_input_tokens"), sum(each or 0 for each in by_life)
        ),
        "output": largest(reported.get("output_tokens")),
        "reasoning": largest(0, member(reported.get("output_tokens_details"), "thinking_tokens")),
    }
    if None in (*counts.values(), *by_life):
        return None
    usage = Usage(**counts)
    # No prompt is empty: a count of zero means that nothing was counted.
    return usage if usage.prompt else None


def wire_usage(usage: Usage | None) -> dict[str, Any]:
    """Return a usage in the format of this protocol; an unknown one is zero, which no client accepts."""
    counted = usage or Usage()
    reported: dict[str, Any] = {
        "input_tokens": counted.input,
        "cache_creation_input_tokens": counted.cache_write,
        "cache_read_input_tokens": counted.cache_read,
        "output_tokens": counted.output,
    }
    if counted.reasoning:
        reported["output_tokens_details"] = {"thinking_tokens": counted.reasoning}
    return reported


def whole_reply(message: object, request_id: str = "", *, taken: Collection[str] = ()) -> Reply:
    """Decode a reply that was not streamed."""
    if not isinstance(message, dict) or message.get("type") == "error" or message.get("error"):
        raise error_in_stream(message, started=False)
    return reply_from(message, request_id=request_id, taken=taken)


def reply_from(
    message: Mapping[str, Any],
    *,
    request_id: str = "",
    faults: Mapping[int, str] | None = None,
    taken: Collection[str] = (),
) -> Reply:
    """Decode a complete response message.

    Args:
        message: the response, with the provider's blocks.
        request_id: the provider's id of the request.
        faults: errors in the arguments of tool calls, by the index of their block.
        taken: ids of earlier tool calls; a call with such an id, or none, gets a new one.

    Raises:
        MalformedReply: it has no content.
    """
    blocks = message.get("content")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise MalformedReply(f"a reply without content: {one_line(str(dict(message)))}")
    blocks = [*blocks]
    calls = [place for place, block in enumerate(blocks) if block.get("type") == "tool_use"]
    distinct = unique_call_ids([blocks[place].get("id") for place in calls], taken)
    for place, call_id in zip(calls, distinct, strict=True):
        blocks[place] = {**blocks[place], "id": call_id}
    content = tuple(_neutral(blocks, faults or {}))
    raw = ProviderBlocks(PROTOCOL, tuple(blocks)) if blocks else None
    model, reason = message.get("model"), message.get("stop_reason")
    inferred = StopReason.TOOL_USE if calls else StopReason.END
    return Reply(
        message=Message("assistant", content, raw),
        # An unknown reason is OTHER.
        stop=_STOPS.get(str(reason), StopReason.OTHER) if reason else inferred,
        usage=usage_from(message.get("usage")),
        model=model if isinstance(model, str) else "",
        request_id=request_id or str(message.get("id") or ""),
    )


def _neutral(blocks: Sequence[Mapping[str, Any]], faults: Mapping[int, str]) -> Iterable[Block]:
    for place, block in enumerate(blocks):
        if block.get("type") == "text":
            yield TextBlock(str(block.get("text") or ""))
        elif block.get("type") == "tool_use":
            call = read_call(block["id"], block.get("name"), block.get("input"))
            yield replace(call, fault=faults.get(place, call.fault))


def error_from(
    status: int, body: object, headers: Mapping[str, str], *, now: datetime | None = None
) -> ModelError:
    """Return the error for a response with an error status."""
    failure, wait_s = parse_error_body(body), retry_after_s(headers, now=now or datetime.now(UTC))
    message = one_line(failure.message)
    code = member(member(member(body, "error"), "details"), "error_code")
    if status == 429 and "spend_limit" in str(code):  # noqa: PLR2004 - waiting does not help here
        why = "a spending limit of the account is reached"
        return ModelSetupError(f"HTTP {status}: {message} ({why})", "api_key_env")
    if failure.kind == _TOO_LONG:
        return too_long(status, message)
    wait_s = failure.wait_s if wait_s is None else wait_s
    return error_for_status(status, message, own=_is_error(body), wait_s=wait_s)


def error_in_stream(body: object, *, started: bool) -> ModelError:
    """Return the error for an ``error`` event; a reply that had ``started`` may have been billed."""
    failure = parse_error_body(body)
    kind, message = failure.kind, one_line(failure.message)
    status = _STATUS.get(kind) or failure.status or 500
    message = f"{kind}: {message}" if kind else message
    error = error_for_status(status, message, own=_is_error(body), wait_s=failure.wait_s)
    if not started:
        return error
    if isinstance(error, ModelRefused):
        return ModelUnavailable(f"the reply broke off: {error}")
    error.unbilled = False
    return error


def _is_error(body: object) -> bool:
    """Whether ``body`` is an error in this protocol's form."""
    return member(body, "type") == "error" and isinstance(member(body, "error"), dict)
