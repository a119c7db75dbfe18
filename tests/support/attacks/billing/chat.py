"""The bill of Chat Completions, by OpenAI's documentation and that of servers for open models."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from support.attacks.billing.charge import (
    LONGEST_REPLY,
    REMOTE_VIDEO_TOKENS,
    SEARCHES,
    Charge,
    tokens,
    walk,
    wanted_reply,
)

_LOOP = re.compile(r"range\((\d+)\)")
_REASONING = re.compile(r"<think>.*?</think>", re.DOTALL)
_REPEATING = "[template that repeats tools]"
"""Text of a conversation with a server whose template writes the tools three times."""


def charge_chat(body: dict[str, Any], _headers: Mapping[str, str], _stored: dict[str, int]) -> Charge:
    """Return what a request costs at a server that knows ``max_tokens`` alone."""
    body = {**body, **(body.get("extra_body") or {})}
    charge = Charge(reply_tokens=wanted_reply(body))
    charge.cap = body.get("max_tokens") or LONGEST_REPLY
    if body.get("max_completion_tokens"):
        charge.use("max_completion_tokens")
    if body.get("n_predict"):
        charge.cap = body["n_predict"]
        charge.use("n_predict")
    if int(body.get("n") or 1) > 1:
        charge.choices = int(body["n"])
        charge.use("extra_body")
    charge.prompt = _prompt(body, charge)
    if (last := body["messages"][-1]).get("prefix"):
        charge.reply_text = last["content"] + charge.reply_text
        charge.use("prefix")
    if "web_search_options" in body:
        charge.search(SEARCHES, "web_search_options")
    if any("google_search" in tool for tool in body.get("tools") or []):
        charge.search(SEARCHES, "google_search")
    return charge


def _prompt(body: dict[str, Any], charge: Charge) -> int:
    messages = _with_last_system(_with_current_reasoning(body["messages"], charge), charge)
    prompt = tokens(messages)
    given = body.get("tools") or []
    tools = [tool for tool in given if "function" in tool]
    if len(tools) < len(given):
        charge.use("tools")
    if tools and body.get("tool_choice") == "none":
        charge.use("tool_choice")
    else:
        times = 3 if _REPEATING in str(messages) else 1
        prompt += times * sum(_indented_tokens(tool) for tool in tools)
        if tools:
            charge.use("indented tools" if times == 1 else "repeated tools")
    if "instructions" in body:
        prompt += tokens(body["instructions"])
        charge.use("instructions")
    if loop := _LOOP.search(str(body.get("chat_template"))):
        prompt *= int(loop[1])
        charge.use("chat_template")
    for part in walk(messages):
        if "video_url" in part:
            prompt += REMOTE_VIDEO_TOKENS
            charge.use("video_url")
    if body.get("truncate_prompt_tokens"):
        prompt = min(prompt, body["truncate_prompt_tokens"])
        charge.use("truncate_prompt_tokens")
    return prompt


def _indented_tokens(tool: Any) -> int:
    """Count a tool as most templates write it."""
    return len(json.dumps(tool, indent=4, ensure_ascii=False).encode("utf-8", "replace"))


def _with_last_system(messages: list[Any], charge: Charge) -> list[Any]:
    """Drop the messages of the system before the last of them."""
    places = [at for at, each in enumerate(messages) if each["role"] == "system"]
    if len(places) > 1:
        charge.use("replaced system")
    return [each for at, each in enumerate(messages) if at not in places[:-1]]


def _with_current_reasoning(messages: list[Any], charge: Charge) -> list[Any]:
    """Drop the reasoning of replies before the last message of the user, also that in their text."""
    turn = max((at for at, each in enumerate(messages) if each["role"] == "user"), default=0)
    counted = []
    for at, message in enumerate(messages):
        content = message.get("content")
        if "reasoning_content" in message:
            charge.use("reasoning_content")
        drop = ("reasoning_content",) if at < turn else ()
        shown = {name: value for name, value in message.items() if name not in drop}
        if message["role"] == "assistant" and isinstance(content, str) and _REASONING.search(content):
            charge.use("reasoning text" if at >= turn else "dropped reasoning text")
            shown["content"] = _REASONING.sub("", content) if at < turn else content
        counted.append(shown)
    return counted
