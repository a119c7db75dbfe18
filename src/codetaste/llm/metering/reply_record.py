"""Replies in the journal: the value of the effect for which a call was made.

A short reply is stored in the journal line, a long one under its hash beside the journal. In both cases
``usage`` is at the top level, so that readers of the journal need not load replies: the tokens by kind, or
null if the provider's count is unknown or implausible.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.core.hashing import canonical_json
from codetaste.errors import JournalError
from codetaste.llm.codec import reply_from_json, reply_to_json

if TYPE_CHECKING:
    from codetaste.llm.messages import Reply, Request
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json

INLINE_BYTES = 8192
"""A longer reply is stored by its hash beside the journal."""


async def load_reply(ctx: JobContext, name: str) -> Reply | None:
    """Return the reply recorded as effect ``name``, None if there is none.

    Raises:
        JournalError: it cannot be read.
    """
    if not ctx.is_recorded(name):
        return None
    value: Any = await ctx.effect(name, _must_not_run)
    try:
        if "stored" in value:
            # Even after the deadline, paid replies are replayed so that their patch can be extracted.
            with anyio.CancelScope(shield=True):
                value = json.loads(await ctx.load_text(value["stored"]))
        return reply_from_json(value["reply"])
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"job {ctx.key}: the recorded reply {name} cannot be read: {error}") from error


async def reply_record(
    reply: Reply, ctx: JobContext, call: str, *, usage_settled: bool, request: Request | None = None
) -> dict[str, Json]:
    """Return the value to record for ``reply``, the answer to ``call``.

    Args:
        reply: a long one is stored at once.
        ctx: of the job.
        call: the id of the call in the run.
        usage_settled: whether the call was settled at the reported usage.
        request: as it was sent, if known: a lowered cap is part of the record.
    """
    usage = None
    if usage_settled and reply.usage is not None:
        # Reasoning is not part of the price, so its count has not been checked before.
        usage = {
            kind: count
            for kind, count in reply.usage.counts().items()
            if type(count) is int and 0 <= count <= reply.usage.total
        }
    value: dict[str, Any] = {"reply": reply_to_json(reply), "call": call, "usage": usage}
    if request is not None:
        value["cap"] = request.max_output_tokens
        if "thinking" in request.options:
            value["thinking"] = request.options["thinking"]
    text = canonical_json(value)
    if len(text) <= INLINE_BYTES:
        return value
    stored: dict[str, Any] = {"stored": await ctx.store_text(text), "call": call, "usage": usage}
    return stored


async def _must_not_run() -> Json:
    raise JournalError("a recorded effect was executed again")
