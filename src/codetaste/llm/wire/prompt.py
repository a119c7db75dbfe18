"""Features of a client's request whose cost its bytes and its output cap do not bound.

No tokenizer makes more tokens than there are UTF-8 bytes, and JSON never has fewer bytes than its text, so
the JSON of a part, with raw blocks, ids and signatures, bounds its tokens. Pictures may have more tokens than
bytes, but at most ``PER_PICTURE``. Parts without such a bound, and features that are billed in addition to
tokens, are reported by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.llm.bound import separately_billed_options
from codetaste.llm.pricing import ROUTING_OPTIONS, STANDARD_OPTIONS, cache_ttls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    return "\n".join(map(_part_text, _objects(content)))


def _part_text(part: Mapping[str, Any]) -> str:
    text = part.get("refusal" if part.get("type") == "refusal" else "text")
    return text if isinstance(text, str) else f"[{part.get('type')}]"


def _is_unbounded(block: Mapping[str, Any]) -> bool:
    kind, source = block.get("type"), block.get("source")
    if kind == "document":
        return not isinstance(source, dict) or source.get("type") not in ("text", "content")
    # A picture stored at the provider is bounded like any other.
    return kind in _UNBOUNDED_PARTS


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
