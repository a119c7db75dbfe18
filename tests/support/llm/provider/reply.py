"""A reply without a protocol: blocks and counts, under Anthropic's names.

Blocks are ``text``, ``thinking``, ``redacted_thinking`` and ``tool_use``; ``partial`` in a tool block is the
raw text of its arguments. Counts are ``input_tokens`` without those read from or written to a cache,
``cache_read_input_tokens``, ``cache_creation_input_tokens``, ``output_tokens``, and ``reasoning_tokens``
among the output.
"""

from __future__ import annotations

import json
from typing import Any

Block = dict[str, Any]
Event = dict[str, Any]
CREATED = 1_700_000_000


def pieces(text: str) -> list[str]:
    """Cut a text into deltas."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def arguments(block: Block) -> str:
    """Return the raw text of a tool call's arguments."""
    return block["partial"] if "partial" in block else json.dumps(block["input"])


def parse_arguments(block: Block) -> Any:
    """Return the arguments parsed as JSON; invalid JSON stays a text."""
    try:
        return json.loads(arguments(block))
    except ValueError:
        return arguments(block)
