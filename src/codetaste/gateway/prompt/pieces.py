"""The pieces of a part of a prompt: what a provider counts in every request, and what in some only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from codetaste.gateway.prompt.parts import PartKind, hash_of, listed, to_json, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.gateway.prompt.parts import PromptPart

_COUNTED_TYPES = frozenset({None, "text", "input_text", "output_text", "refusal", "message"}).union(
    {"tool_use", "tool_result", "function_call", "function_call_output"},
    {"custom_tool_call", "custom_tool_call_output", "local_shell_call", "local_shell_call_output"},
    {"image", "input_image", "image_url"},
)
"""Types of messages, items and blocks that are counted in every request."""

_THINKING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})

_UNCOUNTED_KEYS = frozenset({"reasoning", "reasoning_content", "reasoning_details"})
"""Keys of a message in Chat Completions whose content may be removed in later turns."""

_DEFERRED = b'"defer_loading"'
"""Key of a tool that is counted only once it is loaded."""


class Piece(NamedTuple):
    """A part of a prompt, or a block of it.

    Attributes:
        name: hash of its content.
        kind: of the part.
        size: upper bound of its tokens.
        counted: whether the provider counts it in every request that contains it; otherwise it may count it
            in one request and not in another, such as the thinking of earlier turns.
        written: whether the model writes such pieces. A count is not stored if there are others, such as
            results of hosted tools, deferred tools and summaries that replace earlier messages.
    """

    name: str
    kind: PartKind
    size: int
    counted: bool
    written: bool


def split_part(part: PromptPart, protocol: str) -> Iterator[Piece]:
    """Yield a part as one piece if all of it is counted in every request; otherwise its blocks."""
    message = part.value
    if part.kind is not PartKind.MESSAGE or not isinstance(message, dict):
        counted = _DEFERRED not in part.data
        yield Piece(part.name, part.kind, part.size, counted, written=counted)
        return
    role = message.get("role")
    # Chat templates remove reasoning from the text of earlier turns.
    text_counted = protocol != "openai-chat" or role != "assistant"
    if _is_counted(message) and (text_counted or not message.get("content")):
        yield Piece(part.name, part.kind, part.size, counted=True, written=True)
        return
    rest = dict(message)
    for block in listed(rest.pop("content", None)):
        counted = _is_counted(block)
        yield _piece([role, block], counted and text_counted, counted or _is_thinking(block))
    for call in listed(rest.pop("tool_calls", None)):
        yield _piece(["tool_calls", call], counted=True, written=True)
    counted = _is_counted(rest)
    yield _piece(rest, counted, counted or _is_thinking(rest) or not _UNCOUNTED_KEYS.isdisjoint(rest))


def _piece(value: object, counted: bool, written: bool) -> Piece:
    text = to_json(value)
    return Piece(hash_of(text), PartKind.MESSAGE, tokens_of(text), counted, written)


def _is_thinking(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in _THINKING_TYPES


def _is_counted(block: object) -> bool:
    """Whether a message, item or block, with all blocks in it, is counted in every request."""
    if not isinstance(block, dict):
        return True
    if block.get("type") not in _COUNTED_TYPES or not _UNCOUNTED_KEYS.isdisjoint(block):
        return False
    inner = (block.get(name) for name in ("content", "output"))
    return all(_is_counted(each) for blocks in inner if isinstance(blocks, list) for each in blocks)
