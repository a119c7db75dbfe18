"""The errors for which providers of the three protocols refuse a conversation with tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from support.llm.provider.protocols import Protocol


def fault_in(protocol: Protocol, body: dict[str, Any]) -> str:
    """Return the error for which a provider would refuse the conversation; "" if it is valid."""
    try:
        turns = {"anthropic": _anthropic, "openai": _responses, "openai-chat": _chat}[protocol](body)
    except (KeyError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    seen: set[str] = set()
    for calls, answers in turns:
        if not all(calls):
            return "a call without an id"
        if len(set(calls)) < len(calls) or seen & set(calls):
            return f"duplicate ids: {calls}"
        if sorted(calls) != sorted(answers):
            return f"calls {calls} are answered by {answers}"
        seen |= set(calls)
    return ""


def bound_thought(body: dict[str, Any], length: int | None = None) -> dict[str, Any]:
    """Return a thinking block bound to the first ``length`` messages of ``body``, or to all of them."""
    prefix = [body.get("system"), body["messages"][:length]]
    digest = sha256(json.dumps(_uncached(prefix), sort_keys=True).encode()).hexdigest()
    return {"type": "thinking", "thinking": "hm " * 20, "signature": f"bound-{digest}"}


def _uncached(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _uncached(value) for key, value in node.items() if key != "cache_control"}
    return [_uncached(item) for item in node] if isinstance(node, list) else node


def _check_thinking(body: dict[str, Any], number: int, blocks: Sequence[dict[str, Any]]) -> None:
    signatures = [block["signature"] for block in blocks if block["type"] == "thinking"]
    bound = [signature for signature in signatures if signature.startswith("bound-")]
    if bound and set(bound) != {bound_thought(body, number)["signature"]}:
        raise ValueError(f"messages.{number}: the thinking block is bound to a different conversation")


Turns = list[tuple[list[str], list[str]]]
"""For each turn the ids of its calls, and the ids of the results that follow."""


def _anthropic(body: dict[str, Any]) -> Turns:
    turns: Turns = [([], [])]
    for number, message in enumerate(body["messages"]):
        blocks = message["content"]
        if not blocks:
            raise ValueError(f"empty {message['role']} message")
        _check_thinking(body, number, blocks)
        if message["role"] == "assistant":
            turns.append(([_call_id(block) for block in blocks if block["type"] == "tool_use"], []))
        else:
            answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            if any(block["type"] == "tool_result" for block in blocks[len(answers) :]):
                raise ValueError("a tool_result after other content")
            turns[-1][1].extend(answers)
    return turns


def _call_id(block: dict[str, Any]) -> str:
    if not block["name"] or not isinstance(block["input"], dict):
        raise ValueError(f"an invalid call: {block}")
    return str(block["id"])


def _responses(body: dict[str, Any]) -> Turns:
    turns: Turns = [([], [])]
    for item in body["input"]:
        if item.get("type") == "function_call":
            _check_arguments(item["name"], item["arguments"])
            if turns[-1][1]:
                turns.append(([], []))
            turns[-1][0].append(item["call_id"])
        elif item.get("type") == "function_call_output":
            turns[-1][1].append(item["call_id"])
        elif item.get("role") == "user" and turns[-1][0]:
            turns.append(([], []))
    return turns


def _chat(body: dict[str, Any]) -> Turns:
    turns: Turns = [([], [])]
    for message in body["messages"]:
        if message["role"] == "tool":
            turns[-1][1].append(message["tool_call_id"])
            continue
        calls = message.get("tool_calls") or []
        for call in calls:
            _check_arguments(call["function"]["name"], call["function"]["arguments"])
        if message["role"] == "assistant" and not calls and not message.get("content"):
            raise ValueError("an empty assistant message")
        turns.append(([call["id"] for call in calls], []))
    return turns


def _check_arguments(name: str, arguments: str) -> None:
    if not name or not isinstance(json.loads(arguments), dict):
        raise ValueError(f"an invalid call: {name!r} {arguments!r}")
