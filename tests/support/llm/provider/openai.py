"""Replies in OpenAI's two protocols, Responses and Chat Completions, implemented from their documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.llm.provider.reply import CREATED, Block, Event, arguments, pieces

DONE = "[DONE]"

_FINISH = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


def response(
    body: dict[str, Any], name: str, usage: Any, stop: str | None, output: list[Block]
) -> dict[str, Any]:
    """Return a response object; without ``stop`` it is in progress."""
    cut = stop in {"max_tokens", "refusal"}
    reason = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}.get(stop or "", "")
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": CREATED,
        "model": body["model"],
        "status": "in_progress" if stop is None else "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if cut else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "usage": usage,
    }


def item_of(name: str, index: int, block: Block) -> Block:
    suffix = f"{name}_{index}"
    match block["type"]:
        case "text":
            part = {"type": "output_text", "text": block["text"], "annotations": []}
            message = {"id": f"msg_{suffix}", "type": "message", "role": "assistant", "status": "completed"}
            return {**message, "content": [part]}
        case "thinking":
            summary = [{"type": "summary_text", "text": block["thinking"]}]
            reasoning = {"id": f"rs_{suffix}", "type": "reasoning", "summary": summary}
            return {**reasoning, "encrypted_content": block["signature"]}
        case "redacted_thinking":
            reasoning = {"id": f"rs_{suffix}", "type": "reasoning", "summary": []}
            return {**reasoning, "encrypted_content": block["data"]}
        case "tool_use":
            call = {
                "id": f"fc_{suffix}",
                "type": "function_call",
                "call_id": block["id"],
                "name": block["name"],
            }
            return {**call, "arguments": arguments(block), "status": "completed"}
        case _:
            return block


def responses_events(
    body: dict[str, Any], blocks: list[Block], stop: str, usage: Any, name: str
) -> Iterator[Event]:
    begun, items = response(body, name, None, None, []), []
    events: list[Event] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, block in enumerate(blocks):
        item = item_of(name, index, block)
        items.append(item)
        events.append(
            {"type": "response.output_item.added", "output_index": index, "item": _without_content(item)}
        )
        where = {"output_index": index, "item_id": item.get("id", "")}
        events += [{**event, **where} for event in _item_events(item)]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    last = response(body, name, usage, stop, items)
    events.append({"type": f"response.{last['status']}", "response": last})
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


def _without_content(item: Block) -> Block:
    fields = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}
    more = fields.get(item["type"], {})
    return {**item, **more, **({"status": "in_progress"} if "status" in item else {})}


def _item_events(item: Block) -> Iterator[Event]:
    match item["type"]:
        case "message":
            part, at = item["content"][0], {"content_index": 0}
            yield {"type": "response.content_part.added", "part": {**part, "text": ""}, **at}
            for piece in pieces(part["text"]):
                yield {"type": "response.output_text.delta", "delta": piece, "logprobs": [], **at}
            yield {"type": "response.output_text.done", "text": part["text"], "logprobs": [], **at}
            yield {"type": "response.content_part.done", "part": part, **at}
        case "function_call":
            for piece in pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", "delta": piece}
            yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}
        case "reasoning":
            for part in item["summary"]:
                at = {"summary_index": 0}
                yield {"type": "response.reasoning_summary_part.added", "part": {**part, "text": ""}, **at}
                for piece in pieces(part["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", "delta": piece, **at}
                yield {"type": "response.reasoning_summary_text.done", "text": part["text"], **at}
                yield {"type": "response.reasoning_summary_part.done", "part": part, **at}


def chat_events(
    body: dict[str, Any], blocks: list[Block], stop: str, usage: Any, name: str
) -> Iterator[Event | str]:
    chunk = {"id": f"chatcmpl-{name}", "object": "chat.completion.chunk", "created": CREATED}
    chunk["model"] = body["model"]

    def chunk_of(delta: Block, finish: str | None = None) -> Event:
        return {**chunk, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    yield chunk_of({"role": "assistant", "content": ""})
    number = 0
    for block in blocks:
        match block["type"]:
            case "text":
                yield from (chunk_of({"content": piece}) for piece in pieces(block["text"]))
            case "thinking":
                yield from (chunk_of({"reasoning_content": piece}) for piece in pieces(block["thinking"]))
            case "tool_use":
                call = {"index": number, "id": block["id"], "type": "function"}
                yield chunk_of(
                    {"tool_calls": [{**call, "function": {"name": block["name"], "arguments": ""}}]}
                )
                for piece in pieces(arguments(block)):
                    yield chunk_of({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
                number += 1
    yield chunk_of({}, _FINISH.get(stop, stop))
    # Like the real API: a stream reports its usage only on request.
    if usage is not None and (body.get("stream_options") or {}).get("include_usage"):
        yield {**chunk, "choices": [], "usage": usage}
    yield DONE


def completion(body: dict[str, Any], blocks: list[Block], stop: str, usage: Any, name: str) -> dict[str, Any]:
    words = [block["text"] for block in blocks if block["type"] == "text"]
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": arguments(block)},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    thought = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(words) if words else None}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"reasoning_content": thought} if thought else {}
    choice = {"index": 0, "message": message, "finish_reason": _FINISH.get(stop, stop)}
    head = {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": CREATED,
        "model": body["model"],
    }
    return {**head, "choices": [choice], "usage": usage}


def whole_response(
    body: dict[str, Any], blocks: list[Block], stop: str, usage: Any, name: str
) -> dict[str, Any]:
    """Return a response that is not streamed."""
    return response(body, name, usage, stop, [item_of(name, *each) for each in enumerate(blocks)])
