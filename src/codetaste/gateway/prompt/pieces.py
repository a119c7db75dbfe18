"""The pieces of a part of a prompt: what a provider counts in every request, and what in some only."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from codetaste.gateway.prompt.parts import (
    OVERHEAD_TOKENS,
    PartKind,
    hash_of,
    indentation_of,
    listed,
    to_json,
    tokens_of,
)
from codetaste.llm.wire.common.request import ADDED_TOOLS
from codetaste.llm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.gateway.prompt.parts import PromptPart

_COUNTED_TYPES = frozenset({None, "text", "input_text", "output_text", "refusal", "message"}).union(
    {"tool_use", "tool_result", "function_call", "function_call_output"},
    {"custom_tool_call", "custom_tool_call_output", "local_shell_call", "local_shell_call_output"},
    {"image", "input_image", "image_url"},
)
"""Types of messages, items and blocks that are counted in every request."""

_THINKING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})

_UNCOUNTED_KEYS = ("reasoning", "reasoning_content", "reasoning_details")
"""Keys of a message in Chat Completions whose content may be removed in later turns."""

_REASONING_MARK = re.compile(r"[<\[|◁]")
"""Beginnings of the marks by which chat templates find reasoning in the text of a reply, to remove it."""

_CALLING_TYPES = frozenset({"reasoning", "function_call", "custom_tool_call"})

_RESULT_TYPES = frozenset({"function_call_output", "custom_tool_call_output"})

_LONG_CHARS = 256
"""Texts that are shorter are bounded by their bytes."""

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
        value: its content, if a model writes such messages; otherwise None.
    """

    name: str
    kind: PartKind
    size: int
    counted: bool
    written: bool
    value: Any = None

    def size_with(self, reply_tokens: Mapping[str, int]) -> int:
        """Return an upper bound of its tokens; ``reply_tokens`` bound pieces and long texts of replies."""
        size = min(self.size, reply_tokens.get(self.name, self.size))
        known = [(name, text) for name, text in long_texts(self.value).items() if name in reply_tokens]
        rest = to_json(self.value) if known else ""
        for _, text in known:
            rest = rest.replace(to_json(text), '""', 1)
        return min(size, tokens_of(rest) + sum(reply_tokens[name] for name, _ in known)) if known else size


def long_texts(value: object) -> dict[str, str]:
    """Return the long texts in what a model wrote, by name: an agent may send them back in another form.

    A name has the key, as a template may write one in another way than another: arguments with more escapes.
    """
    found, left = dict[str, str](), [("", value)]
    while left:
        key, each = left.pop()
        if isinstance(each, str) and len(each) >= _LONG_CHARS:
            found[hash_of(f"{'text' if key == 'content' else key} {each}")] = each
        elif isinstance(each, dict):
            left += each.items()
        elif isinstance(each, list):
            left += [(key, inner) for inner in each]
    return found


class TurnStep(Enum):
    """What a message is in a turn: the model thinks and calls tools, and gets their results."""

    CALL = "call"
    RESULT = "result"
    OTHER = "other"


def split_part(part: PromptPart, protocol: str) -> Iterator[Piece]:
    """Yield what of a part is counted in every request, as one piece, and then each of its other blocks."""
    message = part.value
    if part.kind is not PartKind.MESSAGE or not isinstance(message, dict) or adds_tools(part):
        counted = _DEFERRED not in part.data
        indented = part.kind is PartKind.TOOL and PROTOCOLS[protocol].has_template
        size = part.size + indentation_of(to_json(part.value)) if indented else part.size
        size += OVERHEAD_TOKENS * _inner_tools(message)
        yield Piece(part.name, part.kind, size, counted, written=counted)
        return
    role, content = message.get("role"), message.get("content")
    by_model = role == "assistant" or message.get("type") in _CALLING_TYPES
    value = message if by_model else None
    if not _is_counted(message, inside=("output",)):
        yield Piece(
            part.name, part.kind, part.size, counted=False, written=_is_thinking(message), value=value
        )
        return
    by_template = PROTOCOLS[protocol].has_template and role == "assistant"
    apart: list[tuple[Any, bool]] = [
        ({name: message[name]}, True) for name in _UNCOUNTED_KEYS if name in message
    ]
    blocks = []
    for block in listed(content):
        if not _is_counted(block):
            apart.append((block, _is_thinking(block)))
        elif by_template and _REASONING_MARK.search(_text_of(block)):
            apart.append((block, True))
        else:
            blocks.append(block)
    if not apart:
        yield Piece(part.name, part.kind, part.size, counted=True, written=True, value=value)
        return
    rest = {name: each for name, each in message.items() if name not in _UNCOUNTED_KEYS}
    if "content" in rest:
        rest["content"] = blocks if isinstance(content, list) else content if blocks else None
    yield _piece(rest, counted=True, written=True, by_model=by_model)
    for block, written in apart:
        yield _piece([role, block], counted=False, written=written, by_model=by_model)


def adds_tools(part: PromptPart) -> bool:
    """Whether a part is an item that has tools, as in Codex's code mode."""
    return isinstance(part.value, dict) and part.value.get("type") == ADDED_TOOLS


def _inner_tools(value: object) -> int:
    """Return how many tools an item with tools or a namespace has, those of its namespaces included."""
    inner = listed(value.get("tools")) if isinstance(value, dict) else []
    return len(inner) + sum(len(listed(tool.get("tools"))) for tool in inner if isinstance(tool, dict))


def turn_step(part: PromptPart, protocol: str) -> TurnStep:
    """Return what a message is in a turn of which a provider certainly counts the thinking."""
    message = part.value if isinstance(part.value, dict) else {}
    role, content, kind = message.get("role"), message.get("content"), message.get("type")
    if protocol == "openai":
        if kind in _RESULT_TYPES:
            return TurnStep.RESULT
        return TurnStep.CALL if kind in _CALLING_TYPES or role == "assistant" else TurnStep.OTHER
    if protocol != "anthropic" or not isinstance(content, list) or not content:
        return TurnStep.OTHER
    # Without thinking at the beginning of the model's messages, a provider may switch it off.
    if role == "assistant" and _is_thinking(content[0]):
        return TurnStep.CALL
    results = role == "user" and all(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )
    return TurnStep.RESULT if results else TurnStep.OTHER


def counts_current_thinking(settings: Mapping[str, Any], protocol: str) -> bool:
    """Whether a provider certainly counts the thinking of the turn that a request continues."""
    if protocol != "anthropic":
        return protocol == "openai"
    thinking, management = settings.get("thinking"), settings.get("context_management")
    edits = listed(management.get("edits")) if isinstance(management, dict) else []
    return (
        isinstance(thinking, dict)
        and thinking.get("type") in ("enabled", "adaptive")
        and all(isinstance(edit, dict) and edit.get("keep") == "all" for edit in edits)
    )


def _piece(value: object, *, counted: bool, written: bool, by_model: bool) -> Piece:
    text = to_json(value)
    shown = value if by_model else None
    return Piece(hash_of(text), PartKind.MESSAGE, tokens_of(text), counted, written, shown)


def _text_of(block: object) -> str:
    return block if isinstance(block, str) else to_json(block)


def _is_thinking(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in _THINKING_TYPES


def _is_counted(block: object, inside: tuple[str, ...] = ("content", "output")) -> bool:
    """Whether an item or block, with the blocks in the lists ``inside``, is counted in every request."""
    if not isinstance(block, dict):
        return True
    if block.get("type") not in _COUNTED_TYPES:
        return False
    inner = (block.get(name) for name in inside)
    return all(_is_counted(each) for blocks in inner if isinstance(blocks, list) for each in blocks)
