"""What the prompt of a request as a program wrote it can have in tokens, and what in it cannot be bounded.

No tokenizer makes more tokens than there are bytes of UTF-8, and JSON in ASCII never has fewer bytes than the
text that it stands for. So a part is bounded by the length of its JSON, raw blocks, ids and signatures
included, and all that a body says beside its messages (instructions, tools, settings) is counted as its head.
Markers of a cache are left out: they are no part of a prompt, and move from message to message. Pictures have
more tokens than bytes, but never more than is known; what has no such limit is named.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.llm.bound import PER_CALL, PER_MESSAGE, PER_TOOL, billed_apart, is_built_in
from codetaste.llm.prefix import Prefix
from codetaste.llm.pricing import STANDARD, lifetimes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PER_PICTURE = 50_000
"""Tokens of the dearest picture that a provider documents (gpt-4o-mini: 2,833 and 8 tiles of 5,667)."""
_PER_BUILT_IN = 4096
"""Tokens allowed for a tool that a provider describes to the model in words of its own."""
_PICTURES = ("image", "input_image", "image_url", "computer_screenshot")
_BOUNDLESS = ("file", "input_file", "container_upload", "input_audio", "video", "video_url", "item_reference")
"""Parts that are not in the request itself, or whose tokens nobody can tell from their bytes."""
_SHORT = "5m"
_NO_PROMPT = frozenset(
    {"model", "stream", "stream_options", "store", "include", "user", "metadata", "client_metadata"}
    | {"safety_identifier", "prompt_cache_key", "prompt_cache_retention", "cache_control"}
    | {"max_tokens", "max_output_tokens", "max_completion_tokens"}
)
"""What a body says that no model reads."""


def prefixes_of(body: Mapping[str, Any], said: str) -> tuple[Prefix, ...]:
    """Return the beginnings of a prompt, from nothing of what stands under ``said`` to all of it."""
    head = {
        name: [_plain(each) for each in value] if isinstance(value, list) else value
        for name, value in body.items()
        if name != said and name not in _NO_PROMPT
    }
    written = _json(head)
    tools = _tables(body.get("tools"))
    size = PER_CALL + len(written) + PER_TOOL * len(tools) + _PER_BUILT_IN * sum(map(is_built_in, tools))
    key = sha256(written.encode()).digest()
    prefixes = [Prefix(key, size)]
    for part in _parts(body.get(said)):
        written = _json(_plain(part))
        key = sha256(key + written.encode()).digest()
        size += PER_MESSAGE + len(written) + sum(_unseen(block, tools) for block in blocks_in(part))
        prefixes.append(Prefix(key, size))
    return tuple(prefixes)


def apart_in(body: Mapping[str, Any], said: str) -> tuple[str, ...]:
    """Return the names of what may cost more than the tokens that ``prefixes_of`` and a cap allow for."""
    found = billed_apart(body)
    found.extend(
        name
        for name, usual in STANDARD.items()
        if (value := body.get(name)) is not None and not (isinstance(value, str) and value in usual)
    )
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


def shown(content: object) -> str:
    """Return the words of a content, a text or a list of parts, with a mark for what are no words."""
    if isinstance(content, str):
        return content
    return "\n".join(map(_shown, _tables(content)))


def _shown(part: Mapping[str, Any]) -> str:
    text = part.get("refusal" if part.get("type") == "refusal" else "text")
    return text if isinstance(text, str) else f"[{part.get('type')}]"


def _unseen(block: Mapping[str, Any], tools: list[dict[str, Any]]) -> int:
    """Return the tokens that a block may have beyond its bytes."""
    kind = block.get("type")
    if kind in _PICTURES:
        return PER_PICTURE
    # It stands for the description of a tool, which comes into the prompt once more.
    return max((len(_json(tool)) for tool in tools), default=0) if kind == "tool_reference" else 0


def _is_boundless(block: Mapping[str, Any]) -> bool:
    kind, source = block.get("type"), block.get("source")
    if kind == "document":
        return not isinstance(source, dict) or source.get("type") not in ("text", "content")
    # A picture that the provider keeps is as large as any other.
    return kind in _BOUNDLESS


def _plain(part: Any) -> Any:  # noqa: ANN401 - JSON data
    """Return a part without markers of the cache, its words always as a list of blocks."""
    if not isinstance(part, dict):
        return part
    plain = {name: value for name, value in part.items() if name != "cache_control"}
    for name in ("content", "output"):
        if isinstance(inner := plain.get(name), list):
            plain[name] = [_plain(each) for each in inner]
        elif isinstance(inner, str) and "role" in plain:
            plain[name] = [{"type": "text", "text": inner}]
    return plain


def _parts(said: object) -> list[Any]:
    return said if isinstance(said, list) else [said]


def _tables(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _json(value: Any) -> str:  # noqa: ANN401 - JSON data
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
