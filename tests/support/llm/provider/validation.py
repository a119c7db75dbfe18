"""What the providers of the three protocols refuse in a conversation with tools; "" where it is in order."""

from __future__ import annotations

import json
from typing import Any

from support.llm.provider.protocols import Protocol


def fault_in(protocol: Protocol, body: dict[str, Any]) -> str:
    """Say what a provider would refuse: calls without an answer, answers without a call, ids given twice."""
    try:
        turns = {"anthropic": _anthropic, "openai": _responses, "openai-chat": _chat}[protocol](body)
    except (KeyError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    seen: set[str] = set()
    for calls, answers in turns:
        if not all(calls):
            return "a call without an id"
        if len(set(calls)) < len(calls) or seen & set(calls):
            return f"ids given twice: {calls}"
        if sorted(calls) != sorted(answers):
            return f"calls {calls} are answered by {answers}"
        seen |= set(calls)
    return ""


Turns = list[tuple[list[str], list[str]]]
"""The ids of the calls that one turn makes, and of those that are answered next."""


def _anthropic(body: dict[str, Any]) -> Turns:
    turns: Turns = [([], [])]
    for message in body["messages"]:
        blocks = message["content"]
        if not blocks:
            raise ValueError(f"empty {message['role']} message")
        if message["role"] == "assistant":
            turns.append(([_named(block) for block in blocks if block["type"] == "tool_use"], []))
        else:
            answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            if any(block["type"] == "tool_result" for block in blocks[len(answers) :]):
                raise ValueError("a tool_result after something else")
            turns[-1][1].extend(answers)
    return turns


def _named(block: dict[str, Any]) -> str:
    if not block["name"] or not isinstance(block["input"], dict):
        raise ValueError(f"a call that cannot be sent: {block}")
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
            raise ValueError("an assistant message with nothing in it")
        turns.append(([call["id"] for call in calls], []))
    return turns


def _check_arguments(name: str, arguments: str) -> None:
    if not name or not isinstance(json.loads(arguments), dict):
        raise ValueError(f"a call that cannot be sent: {name!r} {arguments!r}")
