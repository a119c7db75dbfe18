"""Requests to language models and their replies, independent of any provider's wire format.

A message from a provider keeps the provider's own blocks beside the neutral ones (``raw``), so that
signatures and encrypted reasoning are sent back unchanged. All classes are immutable and compare by value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A text block."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool. ``fault`` is the reason why a malformed call could not be read."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The output of a tool for the call ``call_id``."""

    call_id: str
    content: str
    is_error: bool = False


Block = TextBlock | ToolCall | ToolResult


_BOUND_TO_PREFIX = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class ProviderBlocks:
    """Blocks in the wire format of ``protocol``; only code for that protocol may use them."""

    protocol: str
    blocks: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]
    raw: ProviderBlocks | None = None

    def without_thinking(self) -> Message:
        """Return it without blocks that providers take only after the messages that they followed."""
        if self.raw is None:
            return self
        others = tuple(block for block in self.raw.blocks if block.get("type") not in _BOUND_TO_PREFIX)
        return replace(self, raw=replace(self.raw, blocks=others) if others else None)

    @property
    def text(self) -> str:
        """The text of this message, without tool calls and results."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of this message, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it; ``parameters`` is a JSON schema of type ``object``.

    ``raw`` holds one block: the tool as a client sent it, if that contains more than the neutral fields.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    raw: ProviderBlocks | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One call with the whole conversation so far; ``max_output_tokens`` caps the reply."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int = 8192
    options: Mapping[str, Any] = field(default_factory=dict)
    """The provider's own settings (temperature, thinking, …), from the model's config."""


class StopReason(StrEnum):
    """Why a reply ended."""

    END = "end"
    TOOL_USE = "tool_use"
    LENGTH = "length"
    REFUSAL = "refusal"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens used by a call. The kinds are disjoint, except that ``reasoning`` is part of ``output``."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    KINDS: ClassVar[tuple[str, ...]] = ("input", "cache_read", "cache_write", "output", "reasoning")

    def __add__(self, other: Usage) -> Usage:
        """Add up tokens by kind."""
        more = other.counts()
        return Usage(**{kind: count + more[kind] for kind, count in self.counts().items()})

    def counts(self) -> dict[str, int]:
        """Return the tokens by kind."""
        return {kind: getattr(self, kind) for kind in self.KINDS}

    @property
    def prompt(self) -> int:
        """All tokens of the prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """All tokens."""
        return self.prompt + self.output


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer. ``usage`` is None if the provider reported none: the cost is then unknown."""

    message: Message
    stop: StopReason
    usage: Usage | None
    model: str
    request_id: str = ""
