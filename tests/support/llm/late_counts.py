"""A provider that leaves a part of all prompts out of its counts and its bill, and counts it later.

It imports nothing of codetaste.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import anyio

from support.llm.provider.exchange import Exchange
from support.llm.provider.server import send_reply, text

LONG = "ab, cd " * 7_000
"""A text of 49,000 bytes, of which the provider makes half as many tokens."""
PICTURE_TOKENS = 25_000
PARTS = ("tools", "system", "thinking", "pictures", "earlier messages")

_THINKING = frozenset({"thinking", "reasoning", "reasoning_content", "summary", "data"})
_PICTURES = frozenset({"image", "input_image", "image_url"})


@dataclass
class LateCounts:
    """Answers requests; ``part`` is counted from request ``after`` + 1 on, in which replies take a moment.

    With ``tells`` false it reports no usage from then on.
    """

    part: str
    after: int
    tells: bool = True

    async def answer(self, exchange: Exchange) -> None:
        late = exchange.number > self.after
        prompt = count_prompt(exchange.body, "" if late else self.part)
        secret = self.part == "thinking" and exchange.protocol == "anthropic"
        thought = {"type": "redacted_thinking", "data": LONG if secret else "hm"}
        await anyio.sleep(0.5 if late else 0.0)
        usage = {"input_tokens": prompt, "output_tokens": 20}
        await send_reply(exchange, thought, text("well"), usage=usage, report_usage=self.tells or not late)


def count_prompt(body: dict[str, Any], dropped: str) -> int:
    """Count a prompt without one of ``PARTS``: a token for two bytes of text, and a number for a picture."""
    messages = next(body[name] for name in ("messages", "input") if name in body)
    system = [body.get("system"), body.get("instructions"), *filter(_is_system, messages)]
    messages = [message for message in messages if not _is_system(message)]
    if dropped == "earlier messages":
        return _count([messages[-1]], dropped)
    counted = [*messages, body.get("tools"), *system]
    if dropped in ("tools", "system"):
        counted = [*messages, *(system if dropped == "tools" else [body.get("tools")])]
    return _count(counted, dropped)


def _is_system(message: Any) -> bool:
    return message.get("role") in ("system", "developer")


def _count(value: Any, dropped: str) -> int:
    if isinstance(value, list):
        return sum(_count(each, dropped) for each in value)
    if not isinstance(value, dict):
        return len(json.dumps(value)) // 2
    if value.get("type") in _PICTURES:
        return 0 if dropped == "pictures" else PICTURE_TOKENS
    if dropped == "thinking":
        value = {name: each for name, each in value.items() if name not in _THINKING}
    return sum(_count(each, dropped) for each in value.values())
