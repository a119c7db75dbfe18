"""Send one request to a model and publish the observer events: sent, then answered or failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import Cause, ModelError
from codetaste.orchestration.events import CallAnswered, CallFailed, CallSent

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.llm.messages import Reply, Request, Usage
    from codetaste.llm.model import Model
    from codetaste.orchestration.budget.cost import Cost
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.paid_call import PaidCall

_ID_LIMIT = 200


async def call_model(
    model: Model,
    request: Request,
    ctx: JobContext,
    paid: PaidCall,
    cost_of: Callable[[Usage | None, Cost], Cost | None],
) -> Reply:
    """Return the model's reply to ``request``, paid by ``paid``, and publish events to the job's observers.

    Raises:
        ModelError: there is no usable reply.
    """
    began_s, call = time.monotonic(), paid.call
    ctx.publish(CallSent(ctx.key, call, model.id))

    def failed(cause: Cause, error: str) -> None:
        ctx.publish(CallFailed(ctx.key, call, model.id, time.monotonic() - began_s, cause, error))

    try:
        reply = await model.complete(request, call=call)
    except ModelError as error:
        failed(error.cause, str(error))
        raise
    except anyio.get_cancelled_exc_class():
        failed(Cause.CANCELLED, "given up while it was in flight")
        raise
    cost = cost_of(reply.usage, paid.granted)
    ctx.publish(
        CallAnswered(
            ctx.key,
            call,
            model.id,
            time.monotonic() - began_s,
            _counts(reply.usage),
            None if cost is None else cost.usd,
            reply.request_id[:_ID_LIMIT],
        )
    )
    return reply


def _counts(usage: Usage | None) -> dict[str, int]:
    """Return the counts that are integers; a provider may report anything."""
    reported = {} if usage is None else usage.counts()
    return {kind: count for kind, count in reported.items() if type(count) is int}
