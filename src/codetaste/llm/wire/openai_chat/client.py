"""Chat Completions protocol, client side: encode requests; decode replies and stop reasons.

Besides OpenAI, many servers speak variants of it: vLLM, llama.cpp, Ollama, DeepSeek, Qwen, OpenRouter. Fields
that they add to a reply are preserved and sent back in the place where such a server expects them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.errors import MalformedReply, ModelUnavailable
from codetaste.llm.messages import Message, ProviderBlocks, Reply, StopReason, TextBlock, ToolCall, ToolResult
from codetaste.llm.wire.common import openai
from codetaste.llm.wire.common.http import member
from codetaste.llm.wire.common.openai import error_in_stream, usage_from
from codetaste.llm.wire.common.tool_calls import (
    arguments_to_json,
    format_result_text,
    read_call,
    unique_call_ids,
    valid_arguments_json,
    valid_tool_name,
)
from codetaste.llm.wire.common.turns import join_turns
from codetaste.llm.wire.protocols import OPENAI_CHAT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from codetaste.llm.messages import Block, Request, ToolSpec

PROTOCOL = OPENAI_CHAT.name
REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields with the reasoning, depending on the server, which expects it back in the same field."""
LOCAL_OPTIONS = frozenset({"output_cap", "send_reasoning"})
"""Options that control the encoding of a request and are not sent."""

_STOPS = {
    "": StopReason.END,
    "stop": StopReason.END,
    "eos": StopReason.END,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "length": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}
FINISH_REASONS = {
    StopReason.END: "stop",
    StopReason.TOOL_USE: "tool_calls",
    StopReason.LENGTH: "length",
    StopReason.REFUSAL: "content_filter",
    StopReason.OTHER: "other",
}
_ABORTED = frozenset({"error", "abort", "insufficient_system_resource", "network_error"})
"""Finish reasons of a reply that the server aborted."""
_SENT_BACK = ("role", "name", "content", "refusal", "tool_calls")

key_headers, request_headers, error_from = openai.key_headers, openai.request_headers, openai.error_from


def request_body(request: Request, model: str, caps: Sequence[str] = OPENAI_CHAT.cap_names) -> dict[str, Any]:
    """Return the body of a streamed request to ``model``.

    Two options are not sent as such: ``output_cap`` is the name of the output cap that the server accepts,
    and ``send_reasoning = false`` leaves the model's earlier reasoning out. An empty option
    ``stream_options`` is left out. Tools in the options are added to those of the request.

    Args:
        request: the conversation.
        model: the provider's name for the model.
        caps: the names of the cap if the options have none. A server ignores a name that it does not know; if
            only that one were sent, the reply would have no cap.
    """
    options = {name: value for name, value in request.options.items() if name not in LOCAL_OPTIONS}
    cap = request.options.get("output_cap")
    reasoning = bool(request.options.get("send_reasoning", True))
    tools = [*options.pop("tools", ()), *map(wire_tool, request.tools)]
    of_stream = options.pop("stream_options", {"include_usage": True})
    body: dict[str, Any] = {"model": model, "stream": True}
    body |= dict.fromkeys([cap] if cap else caps, request.max_output_tokens)
    if of_stream:
        body["stream_options"] = {"include_usage": True, **of_stream}
    if tools:
        body |= {"tools": tools, "tool_choice": "auto"}
    system = [{"role": "system", "content": request.system}] if request.system.strip() else []
    messages = join_turns(wire_messages(message, reasoning=reasoning) for message in request.messages)
    body["messages"] = [*system, *messages]
    return body | options


def wire_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool in the format of this protocol."""
    if tool.raw is not None and tool.raw.protocol == PROTOCOL:
        return dict(tool.raw.blocks[0])
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def wire_messages(message: Message, *, reasoning: bool = True) -> list[dict[str, Any]]:
    """Return a message in the format of this protocol, with one message per tool result.

    The provider's own message is returned unchanged, with or without its ``reasoning``.
    """
    if message.raw is not None and message.raw.protocol == PROTOCOL:
        fields = (*_SENT_BACK, *REASONING) if reasoning else _SENT_BACK
        return [_sent_back(raw, fields) for raw in message.raw.blocks]
    results: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": block.call_id, "content": format_result_text(block)}
        for block in message.content
        if isinstance(block, ToolResult)
    ]
    texts = [block.text for block in message.content if isinstance(block, TextBlock) and block.text.strip()]
    if not texts and not message.tool_calls:
        return results
    wired: dict[str, Any] = {"role": message.role, "content": texts[0] if texts else None}
    if len(texts) > 1:
        wired["content"] = [{"type": "text", "text": text} for text in texts]
    if message.tool_calls:
        wired["tool_calls"] = [wire_call(call) for call in message.tool_calls]
    # Results come first: the protocol requires them directly after their calls.
    return [*results, wired]


def wire_call(call: ToolCall) -> dict[str, Any]:
    """Return a tool call in the format of this protocol."""
    function = {"name": valid_tool_name(call.name), "arguments": arguments_to_json(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _sent_back(raw: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Return a client's message unchanged, and of a model's message the fields that servers accept."""
    if raw.get("role") != "assistant":
        return dict(raw)
    message = {name: raw[name] for name in fields if name in raw}
    if message.get("tool_calls"):
        message["tool_calls"] = [_repaired_call(call) for call in message["tool_calls"]]
    else:
        message.pop("tool_calls", None)
    return message


def _repaired_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, dict):
        return dict(call)  # of a freeform tool, or malformed: the server refuses it
    name, arguments = valid_tool_name(function.get("name")), valid_arguments_json(function.get("arguments"))
    return {**call, "function": {**function, "name": name, "arguments": arguments}}


def whole_reply(completion: object, request_id: str = "", *, taken: Collection[str] = ()) -> Reply:
    """Decode a reply that was not streamed."""
    if not isinstance(completion, dict) or is_error(completion):
        raise error_in_stream(completion, accepted=True, started=False)
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = member(choice, "message")
    if member(choice, "error"):
        raise error_in_stream(choice, accepted=True, started=bool(member(message, "content")))
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise MalformedReply(f"a completion without a message: {one_line(str(completion))}")
    return reply_from(
        message,
        str(choice.get("finish_reason") or ""),
        completion,
        usage=completion.get("usage") or choice.get("usage"),
        request_id=request_id,
        taken=taken,
    )


def is_error(body: Mapping[str, Any]) -> bool:
    """Whether a response or an event is an error, in any of the forms that servers use."""
    flat = "choices" not in body and body.get("code") and body.get("message")
    return bool(flat or body.get("error") or "error" in (body.get("object"), body.get("type")))


def reply_from(
    message: Mapping[str, Any],
    finish_reason: str,
    head: Mapping[str, Any],
    *,
    usage: object = None,
    request_id: str = "",
    taken: Collection[str] = (),
) -> Reply:
    """Decode a complete message.

    Args:
        message: of the provider.
        finish_reason: why it ended.
        head: contains the ``id`` of the completion and the ``model``.
        usage: as the provider reported it.
        request_id: the provider's id of the request.
        taken: ids of earlier tool calls; a call with such an id, or none, gets a new one.

    Raises:
        ModelUnavailable: the server aborted the reply.
        MalformedReply: the message is malformed.
    """
    if finish_reason in _ABORTED:
        raise ModelUnavailable(f"the provider aborted the reply ({finish_reason})")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(
        isinstance(call, dict) and isinstance(call.get("function"), dict) for call in calls
    ):
        raise MalformedReply(f"malformed tool calls: {one_line(str(calls))}")
    ids = unique_call_ids([call.get("id") for call in calls], taken)
    calls = [{**call, "id": call_id, "type": "function"} for call, call_id in zip(calls, ids, strict=True)]
    raw = {"role": "assistant", **message} | {"role": "assistant"} | ({"tool_calls": calls} if calls else {})
    has_content = any(raw.get(name) for name in ("content", "refusal", "tool_calls", *REASONING))
    model = head.get("model")
    return Reply(
        message=Message(
            "assistant", tuple(_neutral(raw)), ProviderBlocks(PROTOCOL, (raw,)) if has_content else None
        ),
        stop=_stop(finish_reason, raw),
        usage=usage_from(usage),
        model=model if isinstance(model, str) else "",
        request_id=request_id or str(head.get("id") or ""),
    )


def _stop(finish_reason: str, message: Mapping[str, Any]) -> StopReason:
    """Return why a reply ended; an unknown reason is ``OTHER``."""
    stop = _STOPS.get(finish_reason, StopReason.OTHER)
    if message.get("refusal"):
        return StopReason.REFUSAL
    if stop in {StopReason.END, StopReason.TOOL_USE}:
        # Some servers also report "stop" after a tool call.
        return StopReason.TOOL_USE if message.get("tool_calls") else StopReason.END
    return stop


def _neutral(message: Mapping[str, Any]) -> Iterable[Block]:
    for text in (*content_texts(message.get("content")), message.get("refusal")):
        if isinstance(text, str) and text:
            yield TextBlock(text)
    for call in message.get("tool_calls") or ():
        yield read_call(call["id"], call["function"].get("name"), call["function"].get("arguments"))


def content_texts(content: object) -> list[str]:
    """Return the texts of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return [text for text in texts if isinstance(text, str)]
