"""One request of a program, from its body to the last byte of its answer: paid, counted and written down.

It runs in a task of its own, so that a program that hangs up does not make a paid call unknown: what is in
flight then is read to its end.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from codetaste.errors import BudgetExceeded, JournalError, ModelError, ModelRefused
from codetaste.gateway.bound import WireBound, raw_said
from codetaste.gateway.parts import parts_of, said_parts, written
from codetaste.gateway.passage import REFUSED, Passage
from codetaste.gateway.told import turn_told
from codetaste.llm.wire.http import one_line
from codetaste.llm.wire.lowering import lowered
from codetaste.llm.wire.refusal import Refused, refusal
from codetaste.llm.wire.serving import SERVING
from codetaste.orchestration.retry import give_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import anyio

    from codetaste.gateway.access import Access
    from codetaste.gateway.asked import Asked
    from codetaste.gateway.outlet import Outlet
    from codetaste.gateway.parts import Part
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.model import Model
    from codetaste.orchestration.budget import Budget

_PASSED_ON = frozenset({400, 413, 422})
"""A provider's refusals that are about the request: the program may know what to do about them."""


class _Flight:
    """A model that knows whether a request is on its way, and to whom nobody listens in vain.

    Attributes:
        flying: a call may be billed at this moment.
        landed: it was answered.
        cap: the most tokens that the last call's reply could have.
    """

    def __init__(self, model: Model, outlet: Outlet, budget: Budget) -> None:
        self._model, self._outlet, self._budget = model, outlet, budget
        self.id, self.remembers = model.id, model.remembers
        self.flying = self.landed = False
        self.cap = 0

    async def complete(self, request: Request, *, call: str) -> Reply:
        self.flying, self.cap = True, request.max_output_tokens
        try:
            # A program may ask for much at once: it is at work while any of it is answered.
            with self._budget.busy():
                reply = await self._model.complete(request, call=call)
        except ModelError as error:
            if self._outlet.gone:
                give_up(error)
            raise
        finally:
            self.flying = False
        self.landed = True
        return reply

    async def recall(self, call: str) -> Reply | None:
        return await self._model.recall(call)

    async def aclose(self) -> None:
        """It is somebody else's."""


class Exchange:
    """One request and what becomes of it."""

    def __init__(self, access: Access, asked: Asked, outlet: Outlet) -> None:
        self._access, self._asked, self._outlet = access, asked, outlet
        access.tally.requests += 1
        self._number = access.tally.requests
        self._name = access.name_call()
        self._began_s = time.monotonic()
        self._parts = parts_of(asked.wire.protocol, asked.wire.body)
        self._passage = self._way()
        model = self._passage or asked.model.metered.model
        self._flight = _Flight(model, outlet, access.ctx.budget)

    def _way(self) -> Passage | None:
        asked, upstream = self._asked, self._asked.model.upstream
        if upstream is None:
            return None
        return Passage(
            asked.model.id,
            upstream,
            partial(_body, asked, self._parts),
            headers=asked.headers,
            query=asked.query,
            streamed=asked.wire.stream,
            outlet=self._outlet,
        )

    async def run(self) -> None:
        """Answer the request; whatever happens, the program is told in its own protocol."""
        with self._access.under_way(lambda: self._flight.flying or self._flight.landed) as scope:
            self._outlet.on_leaving = lambda: self._left(scope)
            try:
                await self._answer()
            except BudgetExceeded as error:
                self._access.tally.refuse(one_line(str(error)))
                await self._refuse(Refused.BUDGET, str(error))
            except ModelError as error:
                await self._failed(error)
            except JournalError as error:
                self._access.broke(error)
                await self._refuse(Refused.BUDGET, f"nothing can be recorded any more: {error}")
            except Exception as error:  # noqa: BLE001 - a fault of ours ends the job, with its traceback there
                self._access.broke(error)
                await self._refuse(Refused.GIVEN_UP, "the gateway failed; the run's log says how")
        if scope.cancelled_caught:
            self._written(499, error="given up before it was sent" if not self._flight.cap else "given up")
        self._outlet.close()
        if self._passage is not None:
            await self._passage.aclose()

    def _left(self, scope: anyio.CancelScope) -> None:
        """Give up what was not sent yet, as nobody waits for it any more."""
        if not (self._flight.flying or self._flight.landed):
            scope.cancel()

    async def _answer(self) -> None:
        access, asked, wire = self._access, self._asked, self._asked.wire
        self._write_request()
        bound = WireBound(self._parts, access.counts_of(asked.model))
        self._parts = ()
        ready = None if self._passage is None else self._passage.get_ready
        metered = asked.model.metered.through(self._flight, bound, meanwhile=ready)
        reply = await metered.complete(wire.request, ctx=access.ctx, name=self._name)
        access.tally.answered(reply, main=wire.main)
        if wire.main:
            access.ctx.note(turn_told(access.tally.turns, reply))
        if self._passage is None:
            said = await self._give(reply)
        else:
            said = raw_said(reply)
        price = asked.model.metered.price
        usage = reply.usage
        cost = None if usage is None or price is None else str(price.cost_usd(usage))
        counts = None if usage is None else {kind: getattr(usage, kind) for kind in _KINDS}
        self._written(
            200,
            said,
            stop=reply.stop.value,
            usage=counts,
            cost_usd=cost,
            model=reply.model,
            request_id=reply.request_id,
        )

    async def _give(self, reply: Reply) -> list[Any]:
        """Write a model's reply in the program's protocol; returns it as a conversation has it."""
        wire, serving = self._asked.wire, SERVING[self._asked.wire.protocol]
        name = f"{self._access.ctx.attempt}-{self._number}"
        head = {serving.request_id: f"req_{name}", "cache-control": "no-store"}
        whole = serving.write_reply(reply, wire, name=name)
        if wire.stream:
            self._outlet.begin(200, {"content-type": "text/event-stream", **head})
            for event in serving.stream_reply(reply, wire, name=name):
                await self._outlet.write(event)
        else:
            body = json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace")
            await self._outlet.respond(200, {"content-type": "application/json", **head}, body)
        return _said(wire.protocol, whole)

    async def _failed(self, error: ModelError) -> None:
        """Tell the program what went wrong with its provider, so that it does not try on and on."""
        own = getattr(error, REFUSED, None)
        if isinstance(error, ModelRefused) and own is not None and own[0] in _PASSED_ON:
            status, kind, body = own
            await self._outlet.respond(status, {"content-type": kind, "x-should-retry": "false"}, body)
            self._written(status, error=str(error))
            return
        self._access.tally.failed = one_line(str(error))
        # What had begun may go better another time; what had not was tried often enough here.
        kind = Refused.UNAVAILABLE if self._outlet.begun.is_set() else Refused.GIVEN_UP
        await self._refuse(kind, f"the model cannot be had: {error}")

    async def _refuse(self, kind: Refused, message: str) -> None:
        started = self._outlet.begun.is_set()
        said = refusal(
            self._asked.wire.protocol, kind, one_line(message), retry=False, stream_started=started
        )
        if not started:
            await self._outlet.respond(said.status, said.headers, said.body)
        elif self._passage is None or not self._passage.told:
            await self._outlet.write(said.body)
        self._written(said.status, error=message)

    def _write_request(self) -> None:
        asked, wire = self._asked, self._asked.wire
        line = {
            "t": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "side": not wire.main,
            "model": asked.model.id,
            "asked": wire.model,
            "effect": self._name,
            "stream": wire.stream,
            "cap": wire.cap,
        }
        self._access.transcript.request(self._number, self._parts, line)

    def _written(self, status: int, said: list[Any] | None = None, **line: Any) -> None:  # noqa: ANN401 - JSON
        took_s = round(time.monotonic() - self._began_s, 3)
        known = {name: value for name, value in line.items() if value != ""}
        cap = {"cap": self._flight.cap} if self._flight.cap else {}
        self._access.transcript.reply(
            self._number, said_parts(said or []), {"status": status, **known, **cap, "took_s": took_s}
        )


_KINDS = ("input", "cache_read", "cache_write", "output", "reasoning")


def _body(asked: Asked, parts: Sequence[Part], request: Request) -> bytes:
    """Return what a provider is sent: the program's own body, with what decides the money."""
    wire, upstream = asked.wire, asked.model.upstream
    caps = () if upstream is None else upstream.caps
    used = tuple(name for name in caps if wire.body.get(name) is not None)
    body = lowered(wire, request.max_output_tokens, model=asked.model.name, caps=used or caps)
    return written(wire.protocol, wire.body, parts, {**body, **asked.model.fixed})


def _said(protocol: str, whole: Mapping[str, Any]) -> list[Any]:
    """Return a reply as a conversation in its protocol has it."""
    if protocol == "anthropic":
        return [{"role": "assistant", "content": whole["content"]}]
    return whole["output"] if protocol == "openai" else [whole["choices"][0]["message"]]
