"""Features of a client's request whose cost its bytes and its output cap do not bound.

No tokenizer makes more tokens than there are UTF-8 bytes, and JSON never has fewer bytes than its text, so
the JSON of a part, with raw blocks, ids and signatures, bounds its tokens. Pictures may have more tokens than
bytes, but at most ``PER_PICTURE``. Parts without such a bound, and features that are billed in addition to
tokens, are reported by name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.llm.price import ROUTING_OPTIONS, STANDARD_OPTIONS, cache_ttls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from codetaste.llm.messages import Request


PER_PICTURE = 50_000
"""Tokens of the costliest picture that a provider documents (gpt-4o-mini: 2,833 and 8 tiles of 5,667)."""

_UNBOUNDED_PARTS = (
    "file",
    "input_file",
    "container_upload",
    "input_audio",
    "video",
    "video_url",
    "item_reference",
)
"""Parts that are not in the request itself, or whose tokens cannot be bounded by their bytes."""

_SHORT_TTL = "5m"


def separately_billed_features(body: Mapping[str, Any], messages_key: str) -> tuple[str, ...]:
    """Return the names of features that may cost more than the prompt's bytes and the output cap allow for.

    ``messages_key`` is the key of the messages in ``body``.
    """
    found = separately_billed_options(body)
    found.extend(
        name
        for name, usual in STANDARD_OPTIONS.items()
        if (value := body.get(name)) is not None and not (isinstance(value, str) and value in usual)
    )
    found.extend(name for name in ROUTING_OPTIONS if body.get(name))
    everywhere = [body, *_objects(body.get("system")), *_objects(body.get("tools"))]
    messages = body.get(messages_key)
    for part in messages if isinstance(messages, list) else [messages]:
        blocks = [*_blocks_in(part)]
        everywhere.extend(blocks)
        found.extend(f"a part of type {block['type']}" for block in blocks if _is_unbounded(block))
    markers = [block["cache_control"] for block in everywhere if "cache_control" in block]
    found.extend(f"a cache for {ttl}" for ttl in cache_ttls(markers) if ttl != _SHORT_TTL)
    return tuple(dict.fromkeys(found))


def _blocks_in(part: object) -> Iterator[dict[str, Any]]:
    """Yield a message or item and the blocks in it, without the arguments of tools."""
    if not isinstance(part, dict):
        return
    yield part
    for name in ("content", "output"):
        for inner in _objects(part.get(name)):
            yield from _blocks_in(inner)
    if isinstance(source := part.get("source"), dict):
        for inner in _objects(source.get("content")):
            yield from _blocks_in(inner)


def content_text(content: object) -> str:
    """Return the text of a content, which is a text or a list of parts; other parts become ``[type]``."""
    if isinstance(content, str):
        return content
    texts = []
    for part in _objects(content):
        text = part.get("refusal" if part.get("type") == "refusal" else "text")
        texts.append(text if isinstance(text, str) else f"[{part.get('type')}]")
    return "\n".join(texts)


def _is_unbounded(block: Mapping[str, Any]) -> bool:
    kind, source = block.get("type"), block.get("source")
    if kind == "document":
        return not isinstance(source, dict) or source.get("type") not in ("text", "content")
    # A picture stored at the provider is bounded like any other.
    return kind in _UNBOUNDED_PARTS


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


MIN_OUTPUT_TOKENS = 1024
"""Output tokens below which a cap is never lowered, since a shorter reply is useless."""

_NOT_BY_TOKENS = frozenset(
    {"mcp_servers", "container", "web_search_options", "plugins", "audio", "moderation"}
    | {"search_parameters", "search_options", "enable_search", "web_search"}
)
"""Billed by something other than tokens."""

_STORED_CONTENT = frozenset({"previous_response_id", "conversation", "prompt", "thread", "data_sources"})
"""These add content stored at the provider to the prompt, so its length is unknown."""

_UNBOUNDED = frozenset({"prediction", "background", "context_management", "compaction"})
"""Tokens beyond the cap of the reply, or a reply that continues after the connection has closed."""

_OTHER_MODEL_OR_ACCOUNT = frozenset({"models", "fallbacks", "billing_policy"})
"""Another model may answer, or another account may pay."""

_UNSUPPORTED = _NOT_BY_TOKENS | _STORED_CONTENT | _UNBOUNDED | _OTHER_MODEL_OR_ACCOUNT

_OWN_TOOLS = ("custom", "function")

_FREE_BUILT_IN = re.compile(
    r"local_shell|apply_patch|tool_search|tool_search_tool_\w+|(?:bash|text_editor|memory|computer)_\d{8}"
)
"""Built-in tools of a provider whose calls cost nothing but their tokens."""

_CLEARING = "clear_"
"""Prefix of the context-management edits that only remove content from the prompt."""


def lower_output(request: Request, cap: int) -> Request:
    """Return ``request`` with its output capped at ``cap`` tokens; a thinking budget is lowered too."""
    thinking = lowered_thinking(request.options.get("thinking"), cap)
    if thinking is None:
        return replace(request, max_output_tokens=cap)
    return replace(request, max_output_tokens=cap, options={**request.options, "thinking": thinking})


def lowered_thinking(thinking: object, cap: int) -> dict[str, Any] | None:
    """Return the ``thinking`` option to send with a cap of ``cap`` tokens, None if it can stay unchanged."""
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(thinking, dict) or not isinstance(budget, int) or budget < cap:
        return None
    # A thinking budget must leave room for an answer; providers refuse budgets below the minimum.
    room = max(cap // 2, min(MIN_OUTPUT_TOKENS, cap - 1))
    return {**thinking, "budget_tokens": room} if room >= MIN_OUTPUT_TOKENS else {"type": "disabled"}


def separately_billed_options(options: Mapping[str, Any]) -> list[str]:
    """Return the names of options that may make a call cost more than its counted tokens."""
    found = sorted(_UNSUPPORTED & {name for name, value in options.items() if value})
    if "context_management" in found:
        management = options["context_management"]
        edits = management.get("edits") if isinstance(management, dict) else None
        if isinstance(edits, list) and all(
            hasattr(edit, "get") and str(edit.get("type")).startswith(_CLEARING) for edit in edits
        ):
            found.remove("context_management")
    tools = options.get("tools")
    tools = tools if isinstance(tools, list | tuple) else ()
    found.extend(f"tools ({_kind(tool)})" for tool in _billed_tools(tools))
    found.extend(name for name in ("n", "best_of") if options.get(name) not in (None, 1))
    modalities, reasoning = options.get("modalities"), options.get("reasoning")
    if modalities and modalities != ["text"]:
        found.append("modalities")
    if isinstance(reasoning, dict) and reasoning.get("mode", "standard") != "standard":
        # It is undocumented how many samples it draws, and whether the cap applies to all of them.
        found.append("reasoning.mode")
    return found


def _billed_tools(tools: Iterable[Any]) -> Iterator[Any]:
    """Yield the tools whose calls are billed in addition to their tokens."""
    for tool in tools:
        kind = _kind(tool)
        if kind == "namespace":
            yield from _billed_tools(inner if isinstance(inner := tool.get("tools"), list | tuple) else ())
        elif kind not in _OWN_TOOLS and not _FREE_BUILT_IN.fullmatch(kind):
            yield tool


def _kind(tool: Any) -> str:  # noqa: ANN401 - JSON data
    kind = tool.get("type") if hasattr(tool, "get") else None
    return _OWN_TOOLS[0] if kind is None else str(kind)
