"""A model whose every call is paid from a job's budget, recorded in its journal, and never bought twice.

Reserve (durable) → take a slot → ask → settle, reply and money in one journal line. What may have been billed
and is not known to have been stays charged at its reservation; what certainly was not is given back.
"""

from __future__ import annotations

import json
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.errors import BudgetExceeded, JournalError, ModelError
from codetaste.llm.asking import ask
from codetaste.llm.bound import BELIEVABLE, LEAST_OUTPUT, PromptBound, billed_apart, lower_output
from codetaste.llm.codec import canonical, reply_from_json, reply_to_json
from codetaste.llm.config import build_model
from codetaste.llm.pricing import price_of
from codetaste.orchestration.money import Cost
from codetaste.orchestration.retry import TABLE, delay_s, give_up

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from codetaste.errors import Cause
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Reply, Request, Usage
    from codetaste.llm.model import Model
    from codetaste.llm.pricing import Price
    from codetaste.orchestration.job import JobContext, Json, Paid
    from codetaste.orchestration.retry import Retry

INLINE_BYTES = 8192
"""A longer reply is stored by its hash beside the journal."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a call asks for, and what it will cost at most."""

    request: Request
    prompt: int
    wanted: Cost
    least: Cost


class MeteredModel:
    """A ``Model`` behind a price, slots, a budget and a journal; shared by all jobs that use the model.

    Args:
        model: who answers.
        price: what it costs; None counts tokens only, and refuses to work under a budget in dollars.
        slots: requests in flight at once; held for a request, never while a job waits or works.
        options: the model's own settings, under those of a request.
        max_output_tokens: an upper limit to every request's cap.
        retries: how often each cause is tried again.
        rng: for the jitter of the back-off.
    """

    def __init__(
        self,
        model: Model,
        price: Price | None,
        slots: anyio.CapacityLimiter,
        *,
        options: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
        retries: Mapping[Cause, Retry] = TABLE,
        rng: random.Random | None = None,
    ) -> None:
        self.model, self.price, self.slots = model, price, slots
        self._options = dict(options or {})
        self._max_output_tokens = max_output_tokens
        self._retries = retries
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._bound = PromptBound()

    @property
    def id(self) -> str:
        """What the config calls this model."""
        return self.model.id

    async def complete(self, request: Request, *, ctx: JobContext, name: str) -> Reply:
        """Answer ``request`` as effect ``name`` of the job: from the journal, or else by buying it.

        Raises:
            BudgetExceeded: not even the least useful reply fits into what is left; nothing was bought.
            ModelError: no reply after all the tries that its cause is worth.
            JournalError: the run directory cannot be written; StorageFull among them.
        """
        request = self._as_sent(request)
        reply = await self._known(ctx, name) or await self._recalled(ctx, name)
        if reply is None:
            reply = await self._bought(request, ctx, name)
        self._bound.learn(request, reply)
        return reply

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()

    def _as_sent(self, request: Request) -> Request:
        cap = min(request.max_output_tokens, self._max_output_tokens or request.max_output_tokens)
        return replace(request, max_output_tokens=cap, options={**self._options, **request.options})

    async def _known(self, ctx: JobContext, name: str) -> Reply | None:
        """Return the reply that the journal holds."""
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

    async def _recalled(self, ctx: JobContext, name: str) -> Reply | None:
        """Settle the calls that an earlier process lost, where the provider knows them; return a reply."""
        found: Reply | None = None
        for paid in ctx.dangling(name):
            reply = await self.model.recall(paid.call)
            if reply is None:
                if self.model.remembers:
                    await paid.settle(Cost())
                continue
            if found is None:
                await self._settle(reply, ctx, name, paid)
                found = reply
            elif (cost := self._cost(reply.usage, paid.granted)) is not None:
                await paid.settle(cost)
        return found

    async def _bought(self, request: Request, ctx: JobContext, name: str) -> Reply:
        """Buy the reply, trying again as long as its failures' causes are worth it."""
        offer = self._offer(request, ctx)
        failures: dict[Cause, int] = {}
        while True:
            try:
                return await self._attempt(offer, ctx, name)
            except ModelError as error:
                failures[error.cause] = failures.get(error.cause, 0) + 1
                wait_s = delay_s(
                    error.cause,
                    failures[error.cause],
                    retry_after_s=getattr(error, "retry_after_s", None),
                    rng=self._rng,
                    table=self._retries,
                )
                if wait_s is None:
                    raise give_up(error) from error.__cause__
                ctx.retrying(self.id, error, wait_s)
                with ctx.waiting(f"{self.id}: {error.cause.value.replace('_', ' ')}"):
                    await anyio.sleep(wait_s)
            if (reply := await self._recalled(ctx, name)) is not None:
                return reply

    def _offer(self, request: Request, ctx: JobContext) -> _Offer:
        """Work out what the call may cost.

        Raises:
            BudgetExceeded: the budget is in dollars, and no bound in dollars can be given.
        """
        if any(node.limits.usd is not None for node in ctx.budget.chain):
            if self.price is None:
                raise BudgetExceeded(
                    f"model {self.id} has no known price; write price = {{ … }} in [[models]]"
                )
            if apart := billed_apart(request.options):
                raise BudgetExceeded(
                    f"model {self.id}: {', '.join(apart)} is billed apart from tokens; remove it from options"
                )
        prompt, cap = self._bound.tokens(request), request.max_output_tokens
        return _Offer(
            request, prompt, self._bound_cost(prompt, cap), self._bound_cost(prompt, min(cap, LEAST_OUTPUT))
        )

    def _bound_cost(self, prompt: int, output: int) -> Cost:
        usd = Decimal(0) if self.price is None else self.price.bound_usd(prompt, output)
        return Cost(usd, prompt + output)

    async def _attempt(self, offer: _Offer, ctx: JobContext, name: str) -> Reply:
        note: Json = {"model": self.id, "prompt": offer.prompt, "output": offer.request.max_output_tokens}
        async with await ctx.pay(name, offer.wanted, offer.least, note) as paid:
            request = self._lowered(offer, paid.granted, ctx)
            async with self._slot(ctx, paid):
                try:
                    reply = await ask(self.model, request, ctx, paid, self._cost)
                except ModelError as error:
                    if error.unbilled:
                        paid.release()
                    raise
            # What is paid for is not to be lost to a deadline that strikes now.
            with ctx.cleaning_up():
                await self._settle(reply, ctx, name, paid, request)
        return reply

    def _lowered(self, offer: _Offer, granted: Cost, ctx: JobContext) -> Request:
        """Return the request with its output capped at what the granted money pays for."""
        asked = offer.request.max_output_tokens
        cap = min(asked, granted.tokens - offer.prompt)
        if self.price is not None:
            affordable = self.price.affordable_output(offer.prompt, granted.usd)
            cap = cap if affordable is None else min(cap, affordable)
        request = lower_output(offer.request, cap)
        if cap < asked:
            ctx.note(f"{self.id}: the budget has room for {cap} output tokens instead of {asked}")
        return request

    @asynccontextmanager
    async def _slot(self, ctx: JobContext, paid: Paid) -> AsyncIterator[None]:
        """Hold one of the model's slots; while it is waited for, the call is certainly not sent."""
        holder = object()
        try:
            self.slots.acquire_on_behalf_of_nowait(holder)
        except anyio.WouldBlock:
            try:
                with ctx.waiting(f"a slot of {self.id}"):
                    await self.slots.acquire_on_behalf_of(holder)
            except BaseException:
                paid.release()
                raise
        try:
            yield
        finally:
            self.slots.release_on_behalf_of(holder)

    async def _settle(
        self, reply: Reply, ctx: JobContext, name: str, paid: Paid, request: Request | None = None
    ) -> None:
        """Record the reply as effect ``name``, and its cost where it is known, in one line."""
        value = await self._value(reply, ctx, paid.call, request)
        cost = self._cost(reply.usage, paid.granted)
        if cost is not None:
            await paid.settle(cost, value)
            return
        # The reply counts although its cost is not known: the money stays charged when ``paid`` is left.
        told = "said nothing of" if reply.usage is None else f"reported an impossible {reply.usage}, not"
        ctx.note(f"{self.id}: the provider {told} what {paid.call} cost; charged ${paid.granted.usd}")

        async def recorded() -> Json:
            return value

        await ctx.effect(name, recorded)

    async def _value(
        self, reply: Reply, ctx: JobContext, call: str, request: Request | None = None
    ) -> dict[str, Json]:
        """Return a reply as the journal holds it: whole where it is short, else by its hash."""
        value: dict[str, Any] = {"reply": reply_to_json(reply), "call": call}
        if request is not None:
            value["cap"] = request.max_output_tokens
            if "thinking" in request.options:
                value["thinking"] = request.options["thinking"]
        text = canonical(value)
        if len(text) <= INLINE_BYTES:
            return value
        return {"kept": await ctx.keep(text), "call": call}

    def _cost(self, usage: Usage | None, granted: Cost) -> Cost | None:
        """Return what was billed, or None where the provider does not say, or says what cannot be."""
        if usage is None:
            return None
        counts = (usage.input, usage.cache_read, usage.cache_write, usage.output)
        if not all(type(count) is int and count >= 0 for count in counts):
            return None
        cost = Cost(Decimal(0) if self.price is None else self.price.cost_usd(usage), usage.total)
        most = Cost(granted.usd * BELIEVABLE, granted.tokens * BELIEVABLE)
        return cost if cost <= most else None


async def _never() -> Json:
    raise JournalError("a recorded effect was to be done again")


def metered(config: ModelConfig, *, base_dir: Path, record_dir: Path) -> MeteredModel:
    """Build the model of one ``[[models]]`` entry, metered, with slots of its own; the caller closes it.

    Raises:
        ConfigError: as ``build_model``.
    """
    return MeteredModel(
        build_model(config, base_dir=base_dir, record_dir=record_dir),
        price_of(config),
        anyio.CapacityLimiter(config.max_concurrency),
        options=config.options,
        max_output_tokens=config.max_output_tokens,
    )
