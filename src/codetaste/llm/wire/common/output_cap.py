"""The output cap of a call, and the thinking budget below it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codetaste.llm.messages import Request


MIN_OUTPUT_TOKENS = 1024
"""Output tokens below which a cap is never lowered, since a shorter reply is useless."""


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
