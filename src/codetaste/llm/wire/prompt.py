"""What of a request as a program wrote it costs more than its bytes tell, and what has no bound at all.

No tokenizer makes more tokens than there are bytes of UTF-8, and JSON never has fewer bytes than its text: so
the JSON of a part, raw blocks, ids and signatures included, bounds its tokens. Pictures, and what a provider
says in its own words, have more tokens than bytes, but never more than is known. What has no such bound, or
is billed beside its tokens, is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.llm.bound import billed_apart, is_built_in
from codetaste.llm.pricing import ROUTES, STANDARD, lifetimes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PER_PICTURE = 50_000
"""Tokens of the dearest picture that a provider documents (gpt-4o-mini: 2,833 and 8 tiles of 5,667)."""
PER_BUILT_IN = 4096
"""Tokens allowed for a tool that is described to the model elsewhere than where it is named."""
_BEYOND = {
    **dict.fromkeys(("image", "input_image", "image_url", "computer_screenshot"), PER_PICTURE),
    "tool_reference": PER_BUILT_IN,
}
_BOUNDLESS = ("file", "input_file", "container_upload", "input_audio", "video", "video_url", "item_reference")
"""Parts that are not in the request itself, or whose tokens nobody can tell from their bytes."""
_SHORT = "5m"


def apart_in(body: Mapping[str, Any], said: str) -> tuple[str, ...]:
    """Return the names of what may cost more than the bytes of its prompt and a cap allow for."""
    found = billed_apart(body)
    found.extend(
        name
        for name, usual in STANDARD.items()
        if (value := body.get(name)) is not None and not (isinstance(value, str) and value in usual)
    )
    found.extend(name for name in ROUTES if body.get(name))
    everywhere = [body, *_tables(body.get("system")), *_tables(body.get("tools"))]
    for part in _parts(body.get(said)):
        blocks = [*blocks_in(part)]
        everywhere.extend(blocks)
        found.extend(f"a part of type {block['type']}" for block in blocks if _is_boundless(block))
    markers = [block["cache_control"] for block in everywhere if "cache_control" in block]
    found.extend(f"a cache for {ttl}" for ttl in lifetimes(markers) if ttl != _SHORT)
    return tuple(dict.fromkeys(found))


def blocks_in(part: object) -> Iterator[dict[str, Any]]:
    """Yield a message or item, and the blocks in it; arguments of tools are none, whatever they look like."""
    if not isinstance(part, dict):
        return
    yield part
    for name in ("content", "output"):
        for inner in _tables(part.get(name)):
            yield from blocks_in(inner)
    if isinstance(source := part.get("source"), dict):
        for inner in _tables(source.get("content")):
            yield from blocks_in(inner)


def beyond_bytes(said: object) -> int:
    """Return the tokens that a message or an item may have beyond the bytes of its JSON."""
    kinds = (block.get("type") for block in blocks_in(said))
    return sum(_BEYOND.get(kind, 0) for kind in kinds if isinstance(kind, str))


def beyond_bytes_of_tool(tool: object) -> int:
    """Return the tokens that a tool may have beyond the bytes of its JSON."""
    return PER_BUILT_IN if is_built_in(tool) else 0


def shown(content: object) -> str:
    """Return the words of a content, a text or a list of parts, with a mark for what are no words."""
    if isinstance(content, str):
        return content
    return "\n".join(map(_shown, _tables(content)))


def _shown(part: Mapping[str, Any]) -> str:
    text = part.get("refusal" if part.get("type") == "refusal" else "text")
    return text if isinstance(text, str) else f"[{part.get('type')}]"


def _is_boundless(block: Mapping[str, Any]) -> bool:
    kind, source = block.get("type"), block.get("source")
    if kind == "document":
        return not isinstance(source, dict) or source.get("type") not in ("text", "content")
    # A picture that the provider keeps is as large as any other.
    return kind in _BOUNDLESS


def _parts(said: object) -> list[Any]:
    return said if isinstance(said, list) else [said]


def _tables(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
