"""``MeteredModel``: every call is paid from a job's budget, journalled, and never bought twice.

Acquire a permit → reserve (durable) → call → settle, with reply and cost in one journal line. So no job holds
money while it waits for a permit or a rate limit, and none holds either during a back-off. A call that may
have been billed, but whose cost is unknown, stays charged at its reservation; the reservation of a call that
was certainly not billed is released.

A reply that costs more than was reserved shows that the reservations of its model are no upper bounds. It is
charged as reported and marked as disputed, and the run makes no further call to the model.
"""

from __future__ import annotations

import random
import time
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.errors import BudgetExceeded, Cause, ModelError, ModelSetupError
from codetaste.llm.messages import StopReason, Usage
from codetaste.llm.metering.prompt_bound import PromptBound
from codetaste.llm.metering.reply_record import load_reply, reply_record
from codetaste.llm.metering.worst_case_cost import (
    PricedRequest,
    TokenBound,
    billed_cost,
    bound_cost,
    cap_to_budget,
    format_cost,
    min_cost,
    price_request,
)
from codetaste.llm.ratelimit.retries import CallRetries
from codetaste.orchestration.budget.cost import Cost
from codetaste.orchestration.events import CallAnswered, CallFailed, CallSent
from codetaste.orchestration.retry import RETRY_TABLE, is_given_up, mark_given_up
from codetaste.orchestration.wait import Wait, WaitReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.model import Model
    from codetaste.llm.price import Price
    from codetaste.llm.ratelimit.limiter import Permit, RateLimiter
    from codetaste.orchestration.budget.reservation import Reservation
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.orchestration.paid_call import PaidCall
    from codetaste.orchestration.retry import RetryRule


_TURNS = 8
"""How often a permit is released for lack of money before a job waits for money while holding a permit."""

_LEAST_SHARE = 10
"""A count below this part of the bound of the prompt may be one that the server has yet to make."""

_ID_LIMIT = 200
"""Characters of a provider's request id that observers get."""


@dataclass(eq=False)
class MeteredModel:
    """A ``Model`` behind a price, a limiter, a budget and a journal; shared by all jobs that use the model.

    Attributes:
        model: the backend that answers.
        price: None counts tokens only, and raises under a budget in dollars.
        limiter: gives one permit per request; never held while a job waits or works.
        options: the model's own settings; those of a request override them.
        max_output_tokens: an upper limit to every request's cap.
        context_window: tokens of prompt and reply together that it can take; None if it is not known.
        retries: how often each cause is retried.
        rng: for the jitter of the back-off.
        price_mismatch: returns why the price may not apply to the model named in a reply, "" if it does.
        bound: bounds the tokens of prompts.
    """

    model: Model
    price: Price | None
    limiter: RateLimiter
    options: Mapping[str, Any] = field(default_factory=dict)
    max_output_tokens: int | None = None
    context_window: int | None = None
    retries: Mapping[Cause, RetryRule] = field(default_factory=lambda: RETRY_TABLE)
    rng: random.Random = field(default_factory=random.Random)
    price_mismatch: Callable[[str], str] = lambda _name: ""
    bound: TokenBound = field(default_factory=PromptBound)

    @property
    def id(self) -> str:
        """The model's id in the config."""
        return self.model.id

    def min_cost(self, request: Request) -> Cost:
        """Return the minimum cost of a call for ``request``: its prompt and the shortest useful reply."""
        request = self._effective_request(request)
        return min_cost(request, self.bound.tokens(request), self.price)

    async def complete(self, request: Request, *, ctx: JobContext, name: str) -> Reply:
        """Answer ``request`` as effect ``name`` of the job, from the journal or by a paid call.

        Raises:
            BudgetExceeded: the remaining budget does not cover the shortest useful reply; no call was made.
            ModelError: no reply after all retries that its cause allows.
            JournalError: the run directory cannot be written, for example ``StorageFull``.
        """
        request = self._effective_request(request)
        reply = await load_reply(ctx, name) or await self.recover(ctx, name)
        if reply is None:
            reply = await self._call_with_retries(request, ctx, name)
        self.bound.learn(request, reply)
        return reply

    async def complete_whole(
        self,
        request: Request,
        *,
        ctx: JobContext,
        name: str,
        usable: Callable[[str], object] = lambda _text: False,
        on_reply: Callable[[Reply], object] = lambda _reply: None,
    ) -> Reply:
        """Answer like ``complete``; if a reply is cut and not ``usable``, ask once more, with a larger cap.

        A reply that is cut then, too, is returned: no caller asks in the same way again.
        """
        reply = await self.complete(request, ctx=ctx, name=name)
        on_reply(reply)
        if reply.stop is not StopReason.LENGTH or usable(reply.message.text):
            return reply
        cap, recorded = self._effective_request(request).max_output_tokens, ctx.recorded(name)
        if isinstance(recorded, dict) and (lowered := int(str(recorded.get("cap", cap)))) < cap:
            raise BudgetExceeded(
                f"{self.id}: the budget has room for {lowered:,} output tokens, too few for the reply"
            )
        room = 4 * cap if self.context_window is None else min(4 * cap, self.context_window // 2)
        larger = self._effective_request(replace(request, max_output_tokens=room))
        if larger.max_output_tokens > cap:
            ctx.note(
                f"{self.id}: a reply was cut at its cap of {cap:,} tokens; it is asked for with a larger one"
            )
            reply = await self.complete(larger, ctx=ctx, name=f"{name}/larger")
            on_reply(reply)
        return reply

    def with_backend(self, model: Model, bound: TokenBound) -> MeteredModel:
        """Return this model with another backend of the same id, whose prompts ``bound`` bounds."""
        return replace(self, model=model, bound=bound)

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()

    def _effective_request(self, request: Request) -> Request:
        cap = min(request.max_output_tokens, self.max_output_tokens or request.max_output_tokens)
        return replace(request, max_output_tokens=cap, options={**self.options, **request.options})

    async def recover(self, ctx: JobContext, name: str) -> Reply | None:
        """Settle unsettled calls for effect ``name`` that the model has on record; return a reply to one."""
        found: Reply | None = None
        for paid in ctx.unsettled_calls(name):
            reply = await self.model.lookup(paid.call)
            if reply is None:
                if self.model.has_ledger:
                    await paid.settle(Cost())
                continue
            if found is None:
                await self._settle(reply, ctx, name, paid)
                found = reply
            elif (cost := billed_cost(reply.usage, self.price)) is not None:
                self._dispute_excess(reply.usage, cost, paid, ctx)
                await paid.settle(cost)
        return found

    async def _call_with_retries(self, request: Request, ctx: JobContext, name: str) -> Reply:
        """Call the model, with as many retries as the causes of its failures allow."""
        priced = price_request(self.id, request, self.bound, self.price, ctx.budget)
        attempts = CallRetries(self.limiter, self.retries, rng=self.rng)
        while True:
            try:
                return await self._attempt(priced, ctx, name)
            except ModelError as error:
                if is_given_up(error):
                    raise
                wait_s = attempts.wait_s(error)
                if wait_s is None:
                    raise mark_given_up(error) from error.__cause__
                ctx.note_retry(self.id, error, wait_s or self.limiter.statistics().paused_s)
                if wait_s:
                    wait = Wait(WaitReason.CALL_RETRY, self.id, wait_s)
                    with ctx.waiting(wait, keep_clock_running=not error.overloaded):
                        await anyio.sleep(wait_s)
            if (reply := await self.recover(ctx, name)) is not None:
                return reply

    async def _attempt(self, priced: PricedRequest, ctx: JobContext, name: str) -> Reply:
        note: Json = {
            "model": self.id,
            "prompt_tokens": priced.prompt_tokens,
            "max_output_tokens": priced.request.max_output_tokens,
        }
        while True:
            self._check_callable(ctx)
            unanswered = self.limiter.unanswered
            if (ended := unanswered.error_of(ctx.key)) is not None:
                raise ended
            try:
                permit, reservation = await self._acquire(priced, ctx)
            except BudgetExceeded as error:
                # Not the budget ends the job, but the provider, whose missing replies hold the money.
                if (ended := unanswered.end(ctx.key, f"no money for another try: {error}")) is None:
                    raise
                raise ended from error
            try:
                request = cap_to_budget(priced, reservation.granted, self.price)
                async with await ctx.start_call(name, reservation, note) as paid:
                    if not permit.valid or ctx.disputed(self._disputed_name) or self.limiter.setup_error:
                        # A pause began, the limit fell or the model ended while the reservation was written.
                        paid.release()
                        continue
                    requested, cap = priced.request.max_output_tokens, request.max_output_tokens
                    if cap < requested:
                        ctx.note(
                            f"{self.id}: the budget has room for {cap} output tokens instead of {requested}"
                        )
                    reply = await self._send(request, ctx, paid, permit)
                    # A deadline that expires now must not lose a paid reply.
                    with ctx.cleanup_scope():
                        await self._settle(reply, ctx, name, paid, request)
                    return reply
            finally:
                permit.release()

    async def _acquire(self, priced: PricedRequest, ctx: JobContext) -> tuple[Permit, Reservation]:
        """Return a permit and the money for one request.

        Neither is held during a wait for the other, so that jobs with a small budget do not block the permits
        of others. Only after ``_TURNS`` attempts does a job wait for money while holding a permit. This ends,
        because every job that holds money then also holds a permit.

        Raises:
            BudgetExceeded: the budget can never cover the request.
            ModelError: the provider is given up.
        """

        def waiting() -> AbstractContextManager[None]:
            return ctx.waiting(self.limiter.wait_of(self.id))

        permit = await self.limiter.acquire(waiting)
        try:
            for _ in range(_TURNS):
                now = ctx.try_hold(priced.max_cost, priced.min_cost, risk=priced.risk)
                if now is not None:
                    return permit, now
                permit.release()
                reservation = await ctx.hold(priced.max_cost, priced.min_cost, risk=priced.risk)
                if (free := self.limiter.acquire_nowait()) is not None:
                    return free, reservation
                reservation.release()
                permit = await self.limiter.acquire(waiting)
            return permit, await ctx.hold(priced.max_cost, priced.min_cost, risk=priced.risk)
        except BaseException:
            permit.release()
            raise

    async def _send(self, request: Request, ctx: JobContext, paid: PaidCall, permit: Permit) -> Reply:
        """Send the request, and report the outcome to the job's observers, the limiter and the budget."""
        began_s, call = time.monotonic(), paid.call

        def failed(cause: Cause, error: str) -> None:
            ctx.publish(CallFailed(ctx.key, call, self.id, time.monotonic() - began_s, cause, error))

        ctx.publish(CallSent(ctx.key, call, self.id))
        try:
            reply = await self.model.complete(request, call=call)
        except anyio.get_cancelled_exc_class():
            failed(Cause.CANCELLED, "given up while it was in flight")
            raise
        except ModelError as error:
            if isinstance(error, ModelSetupError):
                error.model_id = self.id
                # A script, options or a cap may suit another request.
                if error.setting not in {"options", "max_output_tokens"} and not self.model.has_ledger:
                    self.limiter.setup_error = error
            failed(error.cause, str(error))
            if error.unbilled:
                paid.release()
            elif isinstance(error.usage, Usage):
                await self._charge_unusable(error.usage, request, paid, ctx)
            unanswered = self.limiter.unanswered
            is_down = not error.unbilled and unanswered.record_failure(ctx.key, began_s, error)
            if is_down or error.overloaded:
                cause = Cause.RATE_LIMIT if error.overloaded else Cause.UNAVAILABLE
                rule = self.retries.get(cause, RETRY_TABLE[cause])
                self._notify(permit.refused(error, rule), ctx)
            raise

        duration_s, cost = time.monotonic() - began_s, billed_cost(reply.usage, self.price)
        # A provider may report anything: observers get only counts.
        reported = {} if reply.usage is None else reply.usage.counts()
        counts = {kind: count for kind, count in reported.items() if type(count) is int}
        usd, request_id = None if cost is None else cost.usd, reply.request_id[:_ID_LIMIT]
        ctx.publish(CallAnswered(ctx.key, call, self.id, duration_s, counts, usd, request_id))
        self.limiter.unanswered.record_answer(ctx.key)
        self._notify(permit.succeeded(), ctx)
        return reply

    @property
    def _disputed_name(self) -> str:
        """The name by which the run remembers a dispute; another setting gives the model another one."""
        return f"{self.id} (prompt_overhead_tokens = {self.bound.overhead_tokens})"

    async def _charge_unusable(self, usage: Usage, request: Request, paid: PaidCall, ctx: JobContext) -> None:
        """Charge a reply that is cut or malformed as reported if it exceeds its reservation.

        Otherwise its prompt is charged as counted; its output may have become as long as its cap.
        """
        cost = billed_cost(usage, self.price)
        if self._dispute_excess(usage, cost, paid, ctx):
            if cost is not None:
                with ctx.cleanup_scope():
                    await paid.settle(cost)
        elif cost is not None and usage.prompt * _LEAST_SHARE >= self.bound.tokens(request):
            paid.mark_unknown(bound_cost(self.price, usage.prompt, request.max_output_tokens))

    def _dispute_excess(
        self, usage: Usage | None, cost: Cost | None, paid: PaidCall, ctx: JobContext
    ) -> bool:
        """End the model for the run if a reported usage exceeds a reservation that protects a budget.

        Return whether it does.
        """
        if usage is None:
            return False
        chain, granted = ctx.budget.chain, paid.granted
        over_usd = cost is None or cost.usd > granted.usd
        over_tokens = cost is None or cost.tokens > granted.tokens
        is_excess = (over_usd and any(node.limits.usd is not None for node in chain)) or (
            over_tokens and any(node.limits.tokens is not None for node in chain)
        )
        if is_excess:
            reported = f"an impossible {usage}" if cost is None else format_cost(cost)
            ctx.note(
                f"{self.id}: the provider reported {reported} for {paid.call}, with {format_cost(granted)} "
                f"reserved; the run does not call {self.id} again"
            )
            ctx.dispute(self._disputed_name, paid.call)
        return is_excess

    def _check_callable(self, ctx: JobContext) -> None:
        """Raise ModelSetupError if the run must not call this model again."""
        error = self.limiter.setup_error and copy(self.limiter.setup_error)
        if (call := ctx.disputed(self._disputed_name)) is not None:
            error = ModelSetupError(
                f"model {self.id} is not called again in this run: for {call.call} the provider reported "
                f"more than the reserved {format_cost(call.granted)}; compare its bill, then raise "
                "prompt_overhead_tokens, or start another run",
                "prompt_overhead_tokens",
            )
        if error is not None:
            error.model_id = self.id
            raise error

    def _notify(self, change: str, ctx: JobContext) -> None:
        """Journal how the limiter has adapted, if it has."""
        if change:
            ctx.note(change)
            ctx.note_capacity(f"model {self.id}", self.limiter.statistics().limit)

    async def _settle(
        self, reply: Reply, ctx: JobContext, name: str, paid: PaidCall, request: Request | None = None
    ) -> None:
        """Record the reply as effect ``name`` and its cost, if known, in one journal line."""
        if mismatch := self.price_mismatch(reply.model):
            ctx.note(f"{self.id}: {mismatch}")
        cost = billed_cost(reply.usage, self.price)
        value = await reply_record(reply, ctx, paid.call, usage_settled=cost is not None, request=request)
        self._dispute_excess(reply.usage, cost, paid, ctx)
        if cost is not None:
            await paid.settle(cost, value)
            return
        # The reply is valid although its cost is unknown. A provider that has counted before and does not now
        # may have counted more: the charge rests on no earlier count.
        paid.mark_unknown(paid.worst)
        problem = "no usage" if reply.usage is None else f"an impossible {reply.usage}"
        ctx.note(f"{self.id}: the provider reported {problem} for {paid.call}; charged ${paid.granted.usd}")

        async def recorded() -> Json:
            return value

        await ctx.effect(name, recorded)
