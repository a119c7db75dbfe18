"""Chat Completions protocol, server side: encode replies, whole or streamed."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import TextBlock
from codetaste.llm.wire.calls import arguments_to_json, valid_tool_name
from codetaste.llm.wire.openai_chat import FINISH_REASONS, PROTOCOL, REASONING
from codetaste.llm.wire.openai_chat_stream import DONE
from codetaste.llm.wire.openai_usage import wire_usage
from codetaste.llm.wire.sse import format_event, split_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.llm.messages import Message, Reply
    from codetaste.llm.wire.request import WireRequest

REQUEST_ID_HEADER = "x-request-id"
PING = b": ping\n\n"
"""A keep-alive comment, valid between any two events."""
END = f"data: {DONE}\n\n".encode()
"""The last event of a stream."""


def write_reply(reply: Reply, wire: WireRequest, *, name: str) -> dict[str, Any]:
    """Return the body of a reply that is not streamed.

    Args:
        reply: the model's answer.
        wire: the request.
        name: the id of this reply; letters, digits and dashes.
    """
    choice = {"index": 0, "message": _message(reply.message), "logprobs": None}
    usage = wire_usage(reply.usage, "prompt")
    return {
        **_head(wire, name, "chat.completion"),
        "choices": [{**choice, "finish_reason": FINISH_REASONS[reply.stop]}],
        **({} if usage is None else {"usage": usage}),
    }


def stream_reply(reply: Reply, wire: WireRequest, *, name: str) -> Iterator[bytes]:
    """Yield the events of a streamed reply; arguments as ``write_reply``."""
    head = _head(wire, name, "chat.completion.chunk")
    yield _chunk(head, {"role": "assistant", "content": ""})
    for delta in _deltas(_message(reply.message)):
        yield _chunk(head, delta)
    yield _chunk(head, {}, FINISH_REASONS[reply.stop])
    # A client that did not request usage may not understand a chunk without a choice.
    if wire.include_usage and reply.usage is not None:
        yield format_event({**head, "choices": [], "usage": wire_usage(reply.usage, "prompt")})
    yield END


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
        wired["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": valid_tool_name(call.name),
                    "arguments": arguments_to_json(call.arguments),
                },
            }
            for call in message.tool_calls
        ]
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
