"""The bill of OpenAI's Responses, by its documentation."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from support.attacks.billing.charge import (
    LONGEST_REPLY,
    REMOTE_DOCUMENT_TOKENS,
    REMOTE_PICTURE_TOKENS,
    SEARCHES,
    Charge,
    kind_of,
    tokens,
    walk,
    wanted_reply,
)

_WINDOW_TOKENS = 120_000
_HOSTED = ("web_search", "file_search", "code_interpreter", "mcp", "image_generation")


def charge_responses(body: dict[str, Any], _headers: Mapping[str, str], stored: dict[str, int]) -> Charge:
    """Return what a request costs; ``stored`` has the tokens of items by id, and gets those of this one."""
    charge = Charge(cap=body.get("max_output_tokens") or LONGEST_REPLY, reply_tokens=wanted_reply(body))
    items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    sizes = [_size(item, stored, charge) for item in _counted_items(items, body, charge)]
    if body.get("truncation") == "auto":
        charge.use("truncation")
        while len(sizes) > 1 and sum(sizes) > _WINDOW_TOKENS:
            del sizes[0]
    added = [kind_of(item) for item in items].count("additional_tools")
    charge.prompt = (
        sum(sizes) + tokens(body.get("instructions")) + (0 if added else tokens(body.get("tools")))
    )
    if isinstance(body.get("messages"), list):
        charge.prompt += tokens(body["messages"])
        charge.use("messages")
    if body.get("store") is not False:
        stored |= {item["id"]: tokens(item) for item in items if item.get("id") and _has_content(item)}
    if (body.get("prompt_cache_options") or {}).get("ttl") == "12h":
        charge.cache_written, charge.write_factor = True, Decimal("2.5")
        charge.use("prompt_cache_options")
    return charge


def _counted_items(items: list[Any], body: dict[str, Any], charge: Charge) -> list[Any]:
    """Drop tools that later ones replace, and reasoning of earlier turns unless all turns are requested."""
    added = [item for item in items if kind_of(item) == "additional_tools"]
    items = [item for item in items if item not in added[:-1]]
    if (body.get("reasoning") or {}).get("context") == "all_turns":
        charge.use("reasoning.context")
        return items
    turn = max((at for at, item in enumerate(items) if item.get("role") == "user"), default=0)
    return [item for at, item in enumerate(items) if at > turn or item.get("type") != "reasoning"]


def _has_content(item: Mapping[str, Any]) -> bool:
    """Whether an item has a text of its own: a list of empty texts is as good as none."""
    return any(_has_text(item.get(name)) for name in ("content", "encrypted_content", "output"))


def _has_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_text(inner) for name, inner in value.items() if name != "type")
    return any(map(_has_text, value)) if isinstance(value, list) else bool(value)


def _size(item: dict[str, Any], stored: Mapping[str, int], charge: Charge) -> int:
    """Return the tokens of an item; one that has only an id stands for the stored one."""
    kind, size = kind_of(item), tokens(item)
    if item.get("id") in stored and not _has_content(item):
        charge.use("id")
        size += stored[item["id"]]
    if kind in ("additional_tools", "tool_search_output"):
        hosted = [tool for tool in item["tools"] if kind_of(tool).startswith(_HOSTED)]
        charge.search(SEARCHES * len(hosted), kind)
    for block in walk(item):
        if kind_of(block) == "computer_screenshot" and block.get("image_url"):
            size += REMOTE_PICTURE_TOKENS
            charge.use("computer_call_output")
        if kind_of(block) == "input_file" and block.get("file_url"):
            size += REMOTE_DOCUMENT_TOKENS
            charge.use("input_file")
    return size
