"""A model whose every call is paid from a job's budget, recorded in its journal, and never bought twice.

Take a slot → reserve (durable) → ask → settle, reply and money in one journal line. So nobody holds money
who waits for a slot or for a rate limit, and nobody holds either through a back-off. What may have been
billed and is not known to have been stays charged at its reservation; what certainly was not is given back.
"""

from __future__ import annotations

import random
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from codetaste.errors import Cause, ModelError
from codetaste.llm.asking import ask
from codetaste.llm.bound import PromptBound
from codetaste.llm.config import build_model
from codetaste.llm.limiters import Limiters
from codetaste.llm.offer import Offer, believed_cost, least_cost, lowered, offer_for
from codetaste.llm.pricing import price_of, served_otherwise
from codetaste.llm.recorded import recorded_reply, value_of
from codetaste.llm.tries import Tries
from codetaste.orchestration.money import Cost
from codetaste.orchestration.retry import TABLE, give_up, given_up

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Reply, Request, Usage
    from codetaste.llm.model import Model
    from codetaste.llm.pricing import Price
    from codetaste.llm.ratelimit import RateLimiter, Slot
    from codetaste.orchestration.budget import Reservation
    from codetaste.orchestration.job import JobContext, Json, Paid
    from codetaste.orchestration.retry import Retry

    Meanwhile = Callable[[Request], Awaitable[None]]

_TURNS = 8
"""How often a slot is given back for want of money before the money is waited for with a slot in hand."""


class Bound(Protocol):
    """Knows how long prompts can be at most."""

    def tokens(self, request: Request) -> int:
        """Return a number of tokens that the prompt of ``request`` cannot exceed."""
        ...

    def learn(self, request: Request, reply: Reply) -> None:
        """Remember what the provider counted."""
        ...


class MeteredModel:
    """A ``Model`` behind a price, a limiter, a budget and a journal; shared by all jobs that use the model.

    Args:
        model: who answers.
        price: what it costs; None counts tokens only, and refuses to work under a budget in dollars.
        limiter: whose slots it takes, one for each request; never held while a job waits or works.
        options: the model's own settings, under those of a request.
        max_output_tokens: an upper limit to every request's cap.
        retries: how often each cause is tried again.
        rng: for the jitter of the back-off.
        served_otherwise: says what is wrong with the price of the model that a reply names, "" if nothing is.
    """

    def __init__(
        self,
        model: Model,
        price: Price | None,
        limiter: RateLimiter,
        *,
        options: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
        retries: Mapping[Cause, Retry] = TABLE,
        rng: random.Random | None = None,
        served_otherwise: Callable[[str], str] = lambda _name: "",
    ) -> None:
        self.model, self.price, self.limiter = model, price, limiter
        self._options, self._max_output_tokens = dict(options or {}), max_output_tokens
        self._retries, self._served_otherwise = retries, served_otherwise
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self.bound: Bound = PromptBound()
        self._meanwhile: Meanwhile | None = None

    @property
    def id(self) -> str:
        """What the config calls this model."""
        return self.model.id

    def least_cost(self, request: Request) -> Cost:
        """Return what a call for ``request`` needs at the least: its prompt, and a reply of some use."""
        request = self._as_sent(request)
        return least_cost(request, self.bound.tokens(request), self.price)

    async def complete(self, request: Request, *, ctx: JobContext, name: str) -> Reply:
        """Answer ``request`` as effect ``name`` of the job: from the journal, or else by buying it.

        Raises:
            BudgetExceeded: not even the least useful reply fits into what is left; nothing was bought.
            ModelError: no reply after all the tries that its cause is worth.
            JournalError: the run directory cannot be written; StorageFull among them.
        """
        request = self._as_sent(request)
        reply = await recorded_reply(ctx, name) or await self._recalled(ctx, name)
        if reply is None:
            reply = await self._bought(request, ctx, name)
        self.bound.learn(request, reply)
        return reply

    def through(self, model: Model, bound: Bound, meanwhile: Meanwhile | None = None) -> MeteredModel:
        """Return this model with the same price, slots and retries, but asking ``model``.

        Args:
            model: has the same id; who sends what somebody else has written.
            bound: bounds the prompts.
            meanwhile: makes ready while a reservation is written down; who has it waits for no settlement.
        """
        other = copy(self)
        other.model, other.bound, other._meanwhile = model, bound, meanwhile  # noqa: SLF001 - of the same class
        return other

    async def settle_lost(self, ctx: JobContext, name: str) -> None:
        """Settle the calls for effect ``name`` that an earlier process lost, where the model knows them."""
        await self._recalled(ctx, name)

    async def aclose(self) -> None:
        """Close the model."""
        await self.model.aclose()

    def _as_sent(self, request: Request) -> Request:
        cap = min(request.max_output_tokens, self._max_output_tokens or request.max_output_tokens)
        return replace(request, max_output_tokens=cap, options={**self._options, **request.options})

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
        offer = offer_for(self.id, request, self.bound.tokens(request), self.price, ctx.budget)
        tries = Tries(self.limiter, self._retries, rng=self._rng)
        while True:
            try:
                return await self._attempt(offer, ctx, name)
            except ModelError as error:
                if given_up(error):
                    raise
                wait_s = tries.wait_s(error)
                if wait_s is None:
                    raise give_up(error) from error.__cause__
                ctx.retrying(self.id, error, wait_s or self.limiter.statistics().paused_s)
                if wait_s:
                    why = error.cause.value.replace("_", " ")
                    with ctx.waiting(f"{self.id}: {why}", working=not error.overloaded):
                        await anyio.sleep(wait_s)
            if (reply := await self._recalled(ctx, name)) is not None:
                return reply

    async def _attempt(self, offer: Offer, ctx: JobContext, name: str) -> Reply:
        note: Json = {"model": self.id, "prompt": offer.prompt, "output": offer.request.max_output_tokens}
        while True:
            slot, reservation = await self._seat(offer, ctx)
            try:
                request = lowered(offer, reservation.granted, self.price)
                ready = self._meanwhile and partial(self._meanwhile, request)
                async with await ctx.paid(name, reservation, note, meanwhile=ready) as paid:
                    if not slot.current:
                        paid.release()  # all must pause, or fewer may go, since the reservation was begun
                        continue
                    self._note_lowered(offer, request, ctx)
                    reply = await self._ask(request, ctx, paid, slot)
                    # What is paid for is not to be lost to a deadline that strikes now.
                    with ctx.cleaning_up():
                        await self._settle(reply, ctx, name, paid, request)
                    return reply
            finally:
                slot.end()

    async def _seat(self, offer: Offer, ctx: JobContext) -> tuple[Slot, Reservation]:
        """Return a slot and the money for one request.

        Neither is held while the other is waited for, so that jobs of a small budget do not sit on the slots
        of others. Only whoever was outrun to one of them again and again waits for the money in the end with
        a slot in hand: those who have the money all have slots, so that this ends.

        Raises:
            BudgetExceeded: the money will never be there.
            RateLimited: the provider is given up.
        """
        slot = await self.limiter.take(lambda: self._waiting(ctx))
        try:
            for _ in range(_TURNS):
                if (now := ctx.set_aside_now(offer.wanted, offer.least)) is not None:
                    return slot, now
                slot.end()
                reservation = await ctx.set_aside(offer.wanted, offer.least)
                if (free := self.limiter.take_nowait()) is not None:
                    return free, reservation
                reservation.release()
                slot = await self.limiter.take(lambda: self._waiting(ctx))
            return slot, await ctx.set_aside(offer.wanted, offer.least)
        except BaseException:
            slot.end()
            raise

    def _waiting(self, ctx: JobContext) -> AbstractContextManager[None]:
        why = self.limiter.why_waiting
        return ctx.waiting(f"{self.id}: {why}" if why else f"a slot of {self.id}")

    async def _ask(self, request: Request, ctx: JobContext, paid: Paid, slot: Slot) -> Reply:
        """Send the request, and tell the limiter and the budget what became of it."""
        try:
            reply = await ask(self.model, request, ctx, paid, self._cost)
        except ModelError as error:
            if error.unbilled:
                paid.release()
            if error.overloaded:
                rule = self._retries.get(Cause.RATE_LIMIT, TABLE[Cause.RATE_LIMIT])
                self._tell(slot.refused(error, rule), ctx)
            raise
        self._tell(slot.answered(), ctx)
        return reply

    def _tell(self, said: str, ctx: JobContext) -> None:
        """Tell those who watch how the limiter has adapted, if it has."""
        if said:
            ctx.note(said)
            ctx.capacity(f"model {self.id}", self.limiter.statistics().limit)

    def _note_lowered(self, offer: Offer, request: Request, ctx: JobContext) -> None:
        asked, cap = offer.request.max_output_tokens, request.max_output_tokens
        if cap < asked:
            ctx.note(f"{self.id}: the budget has room for {cap} output tokens instead of {asked}")

    async def _settle(
        self, reply: Reply, ctx: JobContext, name: str, paid: Paid, request: Request | None = None
    ) -> None:
        """Record the reply as effect ``name``, and its cost where it is known, in one line."""
        if said := self._served_otherwise(reply.model):
            ctx.note(f"{self.id}: {said}")
        cost = self._cost(reply.usage, paid.granted)
        value = await value_of(reply, ctx, paid.call, believed=cost is not None, request=request)
        if cost is not None:
            if not cost <= paid.granted:
                ctx.note(f"{self.id}: {paid.call} was bounded by ${paid.granted.usd} and cost ${cost.usd}")
            await paid.settle(cost, value, soon=self._meanwhile is not None)
            return
        # The reply counts although its cost is not known: the money stays charged when ``paid`` is left.
        told = "said nothing of" if reply.usage is None else f"reported an impossible {reply.usage}, not"
        ctx.note(f"{self.id}: the provider {told} what {paid.call} cost; charged ${paid.granted.usd}")

        async def recorded() -> Json:
            return value

        await ctx.effect(name, recorded)

    def _cost(self, usage: Usage | None, granted: Cost) -> Cost | None:
        return believed_cost(usage, granted, self.price)


def metered(
    config: ModelConfig, *, base_dir: Path, record_dir: Path, limiters: Limiters | None = None
) -> MeteredModel:
    """Build the model of one ``[[models]]`` entry, metered; the caller closes it.

    ``limiters`` are the run's: models that a provider counts together share one of them.

    Raises:
        ConfigError: as ``build_model``.
    """
    return MeteredModel(
        build_model(config, base_dir=base_dir, record_dir=record_dir),
        price_of(config),
        (limiters or Limiters()).limiter_for(config),
        options=config.options,
        max_output_tokens=config.max_output_tokens,
        served_otherwise=served_otherwise(config),
    )
