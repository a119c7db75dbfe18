"""How the journal holds a reply: as the value of the effect that the call was made for.

A short reply stands in the line, a long one beside the journal under its hash. What was counted stands at
the top either way, so that whoever reads the journal need not fetch replies: ``usage`` with the tokens by
kind, or null where the provider's count is not known or not believed. Journals from before it had a name
are read too.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.errors import JournalError
from codetaste.llm.codec import canonical, reply_from_json, reply_to_json
from codetaste.llm.messages import Usage

if TYPE_CHECKING:
    from codetaste.llm.messages import Reply, Request
    from codetaste.orchestration.job import JobContext, Json

INLINE_BYTES = 8192
"""A longer reply is stored by its hash beside the journal."""
_KINDS = tuple(field.name for field in fields(Usage))


async def recorded_reply(ctx: JobContext, name: str) -> Reply | None:
    """Return the reply that the journal holds as effect ``name``, None where it holds none.

    Raises:
        JournalError: it cannot be read.
    """
    if not ctx.recorded(name):
        return None
    value: Any = await ctx.effect(name, _never)
    try:
        if "kept" in value:
            # Time may be up already: what was bought is run through all the same, and so harvested.
            with anyio.CancelScope(shield=True):
                value = json.loads(await ctx.fetch(value["kept"]))
        return reply_from_json(value["reply"])
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"job {ctx.key}: the recorded reply {name} cannot be read: {error}") from error


async def value_of(
    reply: Reply, ctx: JobContext, call: str, *, believed: bool, request: Request | None = None
) -> dict[str, Json]:
    """Return what the journal is to hold of ``reply``, the answer to ``call``.

    Args:
        reply: what was answered; a long one is stored here and now.
        ctx: the job's.
        call: the call's name in the run.
        believed: whether its usage was settled.
        request: what was sent, where that is known: a lowered cap is part of the record.
    """
    usage = _counts(reply.usage) if believed else None
    value: dict[str, Any] = {"reply": reply_to_json(reply), "call": call, "usage": usage}
    if request is not None:
        value["cap"] = request.max_output_tokens
        if "thinking" in request.options:
            value["thinking"] = request.options["thinking"]
    text = canonical(value)
    if len(text) <= INLINE_BYTES:
        return value
    kept: dict[str, Any] = {"kept": await ctx.keep(text), "call": call, "usage": usage}
    return kept


def _counts(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    counts = {kind: getattr(usage, kind) for kind in _KINDS}
    # Reasoning is no part of the price, so that nobody has looked at it yet.
    return {kind: count for kind, count in counts.items() if type(count) is int and 0 <= count <= usage.total}


async def _never() -> Json:
    raise JournalError("a recorded effect was to be done again")
