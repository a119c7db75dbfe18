"""A provider on the loopback that bills by the documented rules of three protocols.

It answers every request, however odd, with a short text, reports the tokens that it has counted, and writes
its own bill. It imports nothing of codetaste.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import anyio

from support.attacks.billing.charge import Charge
from support.attacks.billing.chat import charge_chat
from support.attacks.billing.messages import charge_messages
from support.attacks.billing.responses import charge_responses
from support.llm.provider.exchange import Exchange
from support.llm.provider.protocols import events_of, sse, whole_of
from support.llm.provider.server import serving

_RULES = {"anthropic": charge_messages, "openai": charge_responses, "openai-chat": charge_chat}

_NESTED = "[nested answer]"
"""Text of a conversation in which the model makes a deeply nested call."""


@dataclass
class BillingProvider:
    """The bill of a provider: a charge for each request."""

    url: str = ""
    charges: list[Charge] = field(default_factory=list)
    stored: dict[str, int] = field(default_factory=dict)
    delay_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)
    in_flight: int = 0
    most_in_flight: int = 0

    @property
    def usd(self) -> Decimal:
        """The whole bill, in US dollars."""
        return sum((charge.usd for charge in self.charges), Decimal(0))

    @property
    def highest_usd(self) -> Decimal:
        """The bill of the costliest request."""
        return max((charge.usd for charge in self.charges), default=Decimal(0))

    @property
    def features(self) -> Counter[str]:
        """The requests that were billed by each rule."""
        return sum((charge.features for charge in self.charges), Counter[str]())

    async def answer(self, exchange: Exchange) -> None:
        """Bill a request and answer it."""
        with self.lock:
            charge = _RULES[exchange.protocol](exchange.body, exchange.call.headers, self.stored)
            self.charges.append(charge)
            self.in_flight += 1
            self.most_in_flight = max(self.in_flight, self.most_in_flight)
        try:
            await self._reply(exchange, charge)
        finally:
            with self.lock:
                self.in_flight -= 1

    async def _reply(self, exchange: Exchange, charge: Charge) -> None:
        """Send the reply; a streamed one is begun at once, and ends after the delay."""
        text = {"type": "text", "text": charge.reply_text}
        blocks = [_nested_call() if _NESTED in str(exchange.body) else text]
        parts = (exchange.body, blocks, "end_turn", charge.usage)
        if exchange.streamed:
            events = events_of(*parts, protocol=exchange.protocol, name=exchange.name)
            await exchange.stream(events[:2], end=False)
            await anyio.sleep(self.delay_s)
            for event in events[2:]:
                await exchange.call.send(sse(exchange.protocol, event))
            return
        await anyio.sleep(self.delay_s)
        whole = json.dumps(whole_of(*parts, protocol=exchange.protocol, name=exchange.name))
        await exchange.respond(200, whole.encode(), "application/json", exchange.ids)


def _nested_call() -> dict[str, Any]:
    """Return a call whose arguments are nested more deeply than most programs accept."""
    nested: Any = "deep"
    for _ in range(250):
        nested = [nested]
    return {"type": "tool_use", "id": "t2", "name": "look", "input": {"list": nested}}


@contextmanager
def serve_billing(delay_s: float = 0.0) -> Iterator[BillingProvider]:
    """Serve a billing provider on a free port of the loopback."""
    provider = BillingProvider(delay_s=delay_s)
    with serving() as server:
        server.default = provider.answer
        provider.url = server.url
        yield provider
