"""The bill of Chat Completions, by OpenAI's documentation and that of servers for open models."""

from __future__ import annotations

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
    messages = _with_current_reasoning(body["messages"], charge)
    prompt = tokens(messages)
    given = body.get("tools") or []
    tools = [tool for tool in given if "function" in tool]
    if len(tools) < len(given):
        charge.use("tools")
    if tools and body.get("tool_choice") == "none":
        charge.use("tool_choice")
    else:
        prompt += tokens(tools)
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


def _with_current_reasoning(messages: list[Any], charge: Charge) -> list[Any]:
    """Drop the reasoning of replies before the last message of the user."""
    turn = max((at for at, each in enumerate(messages) if each["role"] == "user"), default=0)
    counted = []
    for at, message in enumerate(messages):
        if "reasoning_content" in message:
            charge.use("reasoning_content")
        drop = ("reasoning_content",) if at < turn else ()
        counted.append({name: value for name, value in message.items() if name not in drop})
    return counted
