"""Usage in OpenAI's protocols, whose totals include cached and reasoning tokens."""

from __future__ import annotations

from typing import Any, Literal

from codetaste.llm.messages import Usage


def usage_from(reported: object) -> Usage | None:
    """Return the usage that the provider reported, or None if it is missing, malformed or inconsistent.

    Decodes both Responses (``input_tokens``, ``output_tokens``) and Chat Completions (``prompt_tokens``,
    ``completion_tokens``). The prompt count includes cache reads and writes. Servers that exclude reasoning
    from the completion count include it in the total, and bill it.
    """
    if not isinstance(reported, dict):
        return None
    sides = ("input", "output") if "input_tokens" in reported else ("prompt", "completion")
    prompt, output = (_count(reported.get(f"{side}_tokens")) for side in sides)
    of_prompt, of_output = (_details(reported.get(f"{side}_tokens_details")) for side in sides)
    read = _count(of_prompt.get("cached_tokens", reported.get("prompt_cache_hit_tokens")) or 0)
    written = _count(of_prompt.get("cache_write_tokens") or 0)
    reasoning = _count(of_output.get("reasoning_tokens") or 0)
    if prompt is None or output is None or read is None or written is None or reasoning is None:
        return None
    output = max(output, (_count(reported.get("total_tokens")) or 0) - prompt)
    # No prompt is empty: a count of zero means that nothing was counted.
    if not prompt or read + written > prompt or reasoning > output:
        return None
    return Usage(prompt - read - written, read, written, output, reasoning)


def wire_usage(usage: Usage | None, prompt: Literal["input", "prompt"]) -> dict[str, Any] | None:
    """Return a usage in the format of Responses (``prompt`` is "input") or Chat Completions ("prompt")."""
    if usage is None:
        return None
    output = "output" if prompt == "input" else "completion"
    return {
        f"{prompt}_tokens": usage.prompt,
        f"{prompt}_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        f"{output}_tokens": usage.output,
        f"{output}_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }


def _details(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    """Return a count, or None for any other value, such as a float, a boolean or a negative number."""
    return value if type(value) is int and value >= 0 else None
