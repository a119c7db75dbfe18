"""The bill of Anthropic's Messages, by its documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any

from support.attacks.billing.charge import (
    REMOTE_DOCUMENT_TOKENS,
    SEARCHES,
    Charge,
    kind_of,
    tokens,
    walk,
    wanted_reply,
)

_LONG_PROMPT_TOKENS = 100_000
_SENTENCE_TOKENS = 10
"""Tokens that mark each sentence of a document with citations."""


def charge_messages(body: dict[str, Any], headers: Mapping[str, str], _stored: dict[str, int]) -> Charge:
    """Return what a request costs."""
    charge = Charge(cap=body["max_tokens"], reply_tokens=wanted_reply(body))
    messages = _after_compaction(body["messages"], charge)
    messages = _cleared(messages, body.get("context_management"), charge)
    messages = _with_current_thinking(_merged(messages, charge), body.get("thinking") or {}, charge)
    charge.prompt = tokens(_unmarked(messages)) + tokens(body.get("system"))
    blocks = _content_blocks(messages, charge)
    _charge_tools([*(body.get("tools") or [])], blocks, charge)
    for block in blocks:
        _charge_block(block, charge)
    _charge_cache([body, *walk(body.get("system")), *walk(body.get("tools")), *blocks], charge)
    _charge_options(body, headers, charge)
    return charge


def _after_compaction(messages: list[Any], charge: Charge) -> list[Any]:
    """Drop all content before the last block that summarises it."""
    for at in range(len(messages) - 1, -1, -1):
        content = messages[at]["content"]
        places = [n for n, block in enumerate(content) if kind_of(block) == "compaction"]
        if places:
            charge.use("compaction")
            return [{**messages[at], "content": content[places[-1] :]}, *messages[at + 1 :]]
    return messages


def _cleared(messages: list[Any], management: Any, charge: Charge) -> list[Any]:
    edits = (management or {}).get("edits") or []
    if not any(kind_of(edit).startswith("clear_tool_uses") for edit in edits):
        return messages
    charge.use("context_management")
    return [
        {
            **message,
            "content": [
                {**block, "content": ""} if kind_of(block) == "tool_result" else block
                for block in message["content"]
            ]
            if isinstance(message["content"], list)
            else message["content"],
        }
        for message in messages
    ]


def _merged(messages: list[Any], charge: Charge) -> list[Any]:
    """Merge consecutive messages of one role."""
    merged = []
    for role, group in groupby(messages, lambda message: message["role"]):
        same = [*group]
        if len(same) > 1:
            charge.use("merged")
            same = [{"role": role, "content": [block for each in same for block in _blocks(each)]}]
        merged += same
    return merged


def _blocks(message: dict[str, Any]) -> list[Any]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _with_current_thinking(messages: list[Any], thinking: dict[str, Any], charge: Charge) -> list[Any]:
    """Drop the thinking of all turns before the last message that has no tool result.

    All of it is dropped if thinking is off: in the request, or as the model's last message of the turn
    begins without thinking.
    """
    turn = 0
    for at, message in enumerate(messages):
        if message["role"] == "user" and "tool_result" not in map(kind_of, _blocks(message)):
            turn = at
    calls = [message for message in messages[turn:] if message["role"] == "assistant"]
    is_off = kind_of(thinking) not in ("enabled", "adaptive")
    if is_off or (calls and kind_of(_blocks(calls[-1])[0]) != "thinking"):
        turn = len(messages)
    counted = []
    for at, message in enumerate(messages):
        content = message["content"]
        if isinstance(content, list) and "thinking" in map(kind_of, content):
            charge.use("thinking" if at >= turn else "dropped thinking")
            if at < turn:
                content = [block for block in content if kind_of(block) != "thinking"]
        counted.append({**message, "content": content})
    return counted


def _unmarked(messages: list[Any]) -> list[Any]:
    """Drop cache markers, which are no part of the prompt; arguments of tools are."""
    return [
        {
            **message,
            "content": [
                {name: value for name, value in block.items() if name != "cache_control"}
                for block in message["content"]
            ]
            if isinstance(message["content"], list)
            else message["content"],
        }
        for message in messages
    ]


def _content_blocks(messages: list[Any], charge: Charge) -> list[dict[str, Any]]:
    """Return all blocks, without what is inside the arguments of tools."""
    found = []
    for message in messages:
        content = message["content"]
        for block in content if isinstance(content, list) else []:
            found += walk({**block, "input": None})
            if any("cache_control" in each for each in walk(block.get("input"))):
                charge.use("cache_control")
    return found


def _charge_tools(tools: list[Any], blocks: list[dict[str, Any]], charge: Charge) -> None:
    loaded = {block.get("tool_name") for block in blocks if kind_of(block) == "tool_reference"}
    inline = [block["definition"] for block in blocks if kind_of(block) == "tool_definition"]
    for tool in [*tools, *inline]:
        if tool.get("defer_loading"):
            charge.use("defer_loading")
        if tool not in inline and (not tool.get("defer_loading") or tool["name"] in loaded):
            charge.prompt += tokens(tool)
        if kind_of(tool).startswith("web_search"):
            charge.search(tool.get("max_uses") or SEARCHES, "tool_addition" if tool in inline else "tools")


def _charge_block(block: dict[str, Any], charge: Charge) -> None:
    source = block.get("source") if isinstance(block.get("source"), dict) else {}
    assert source is not None
    if kind_of(block) == "document" and source.get("type") == "url":
        charge.prompt += REMOTE_DOCUMENT_TOKENS
        charge.use("document")
    if kind_of(block) == "document" and (block.get("citations") or {}).get("enabled"):
        charge.prompt += _SENTENCE_TOKENS * len(re.findall(r"\. ", str(source.get("data"))))
        charge.use("citations")


def _charge_cache(marked: list[dict[str, Any]], charge: Charge) -> None:
    markers = [each["cache_control"] for each in marked if isinstance(each.get("cache_control"), dict)]
    charge.cache_written = any(marker.get("type") == "ephemeral" for marker in markers)
    if any(marker.get("ttl") in ("1h", 3600) for marker in markers):
        charge.write_factor = Decimal(2)
        charge.use("ttl")


def _charge_options(body: dict[str, Any], headers: Mapping[str, str], charge: Charge) -> None:
    if "context-1m" in headers.get("anthropic-beta", ""):
        charge.use("context-1m")
        if charge.prompt > _LONG_PROMPT_TOKENS:
            charge.input_factor, charge.output_factor = Decimal(2), Decimal("1.5")
    for name, value, factor in (
        ("speed", "fast", 6),
        ("inference_geo", "us", 2),
        ("service_tier", "auto", 3),
    ):
        if body.get(name) == value:
            charge.use(name)
            charge.input_factor *= factor
            charge.output_factor *= factor
