"""What is said between us and a language model, in nobody's wire format.

A message that came from a provider keeps the provider's own blocks beside the neutral ones (``raw``), so
that signatures and encrypted reasoning go back exactly as they came. These are values: frozen, and equal
when they say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model asks for a tool. ``fault`` says what is wrong with a call that could not be read."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered to the call ``call_id``."""

    call_id: str
    content: str
    is_error: bool = False


Block = Text | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Raw:
    """Blocks in the wire format of ``protocol``; only a client of that protocol may use them."""

    protocol: str
    blocks: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]
    raw: Raw | None = None

    @property
    def text(self) -> str:
        """All words of this message, without tool calls and results."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that this message asks for, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it; ``parameters`` is a JSON schema of type ``object``.

    ``raw`` is one block: how its protocol has the tool, where that says more.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    raw: Raw | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One call: the whole conversation so far. ``max_output_tokens`` is the cap that was asked for."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int = 8192
    options: Mapping[str, Any] = field(default_factory=dict)
    """The provider's own settings (temperature, thinking, …), from the model's config."""


class Stop(StrEnum):
    """Why a reply ended."""

    END = "end"
    TOOL_USE = "tool_use"
    LENGTH = "length"
    REFUSAL = "refusal"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a call used: disjoint kinds, but ``reasoning`` is part of ``output``."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        """All tokens of the prompt, however they were priced."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """All tokens."""
        return self.prompt + self.output


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered. ``usage`` is None where the provider did not say: then the cost is unknown."""

    message: Message
    stop: Stop
    usage: Usage | None
    model: str
    request_id: str = ""
